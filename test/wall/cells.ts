import { chat } from './clients/chat.ts'
import type { ClientApi } from './clients/client.ts'
import { messages } from './clients/messages.ts'
import { responses } from './clients/responses.ts'
import type { Expectation, Expected, Scenario } from './scenarios.ts'

/** A scenario under one of its conditions. `id` is unique. */
export type Cell = {
  id: string
  scenario: Scenario
  targets: 'two' | 'one'
  mode: 'streamed' | 'whole'
  api: ClientApi
  /** What the providers speak; never the same, so that a second attempt is translated. */
  formats: { first: Format; second: Format }
  expected: Expectation
}

export const formats = ['openai-chat', 'anthropic-messages', 'openai-responses'] as const
export type Format = (typeof formats)[number]

export const apis: readonly ClientApi[] = [chat, messages, responses]

/**
 * The scenarios with two targets and with one, streamed and whole, asked for in each API. The first provider speaks the client's
 * format where `turn` is 0, else the next one, or the one after it.
 */
export function cellsOf(scenarios: readonly Scenario[], turn: 0 | 1 | 2 = 0): Cell[] {
  return scenarios.flatMap((scenario) =>
    (['two', 'one'] as const).flatMap((targets) =>
      (['streamed', 'whole'] as const).flatMap((mode) =>
        apis.map((api, place) => {
          const format = (at: number) => formats[at % formats.length] as Format
          const first = format(place + turn)
          const id = `${scenario.name}-${targets}-${mode}-${api.name}${turn === 0 ? '' : `-from-${first}`}`
          const expected = expectationOf(scenario[targets], mode)
          return { id, scenario, targets, mode, api, formats: { first, second: format(place + turn + 1) }, expected }
        }),
      ),
    ),
  )
}

function expectationOf(expected: Expected, mode: Cell['mode']): Expectation {
  return 'streamed' in expected ? expected[mode] : expected
}
