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
  expected: Expectation
}

export const apis: readonly ClientApi[] = [chat, messages, responses]

/** The scenarios with two targets and with one, streamed and whole, asked for in each API. */
export function cellsOf(scenarios: readonly Scenario[]): Cell[] {
  return scenarios.flatMap((scenario) =>
    (['two', 'one'] as const).flatMap((targets) =>
      (['streamed', 'whole'] as const).flatMap((mode) =>
        apis.map((api) => {
          const id = `${scenario.name}-${targets}-${mode}-${api.name}`
          return { id, scenario, targets, mode, api, expected: expectationOf(scenario[targets], mode) }
        }),
      ),
    ),
  )
}

function expectationOf(expected: Expected, mode: Cell['mode']): Expectation {
  return 'streamed' in expected ? expected[mode] : expected
}
