import { chat } from './clients/chat.ts'
import type { ClientApi } from './clients/client.ts'
import { messages } from './clients/messages.ts'
import { responses } from './clients/responses.ts'
import type { Expectation, Expected, OnCut, Scenario } from './scenarios.ts'

/** A scenario under one of its conditions. `id` is unique. */
export type Cell = {
  id: string
  scenario: Scenario
  targets: 'two' | 'one'
  mode: 'streamed' | 'whole'
  api: ClientApi
  /** What the providers speak; never the same, so that a second attempt is translated. */
  formats: { first: Format; second: Format }
  /** What follows a stream that breaks off; the usual is an error. */
  onCut?: OnCut | undefined
  expected: Expectation
}

/** What is the same for all cells of a list; the usual are those of a gateway that is asked in its providers' format. */
export type Variant = {
  /** How far the format of the first provider is from the client's: 0 is the same, 1 the next one. */
  turn?: 0 | 1 | 2
  onCut?: OnCut
}

export const formats = ['openai-chat', 'anthropic-messages', 'openai-responses'] as const
export type Format = (typeof formats)[number]

export const apis: readonly ClientApi[] = [chat, messages, responses]

/** The scenarios with two targets and with one, streamed and whole, asked for in each API. */
export function cellsOf(scenarios: readonly Scenario[], { turn = 0, onCut }: Variant = {}): Cell[] {
  const format = (at: number) => formats[at % formats.length] as Format
  return scenarios.flatMap((scenario) =>
    (['two', 'one'] as const).flatMap((targets) =>
      (['streamed', 'whole'] as const).flatMap((mode) =>
        apis.map((api, place) => {
          const first = format(place + turn)
          const id = [scenario.name, targets, mode, api.name, onCut, turn === 0 ? undefined : `from-${first}`]
          return {
            id: id.filter((part) => part !== undefined).join('-'),
            scenario,
            targets,
            mode,
            api,
            formats: { first, second: format(place + turn + 1) },
            onCut,
            expected: expectationOf(scenario, { targets, mode, onCut }),
          }
        }),
      ),
    ),
  )
}

function expectationOf(
  scenario: Scenario,
  { targets, mode, onCut }: Pick<Cell, 'targets' | 'mode' | 'onCut'>,
): Expectation {
  const expected: Expected = scenario[targets]
  const usual = 'streamed' in expected ? expected[mode] : expected
  const other = onCut && targets === 'two' && mode === 'streamed' ? scenario.onCut?.[onCut] : undefined
  return { ...usual, ...other }
}
