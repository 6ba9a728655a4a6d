import { expect, test } from 'vitest'
import { answerBounds, routerConcurrency, targetConcurrency, targetHealth } from './health-steps.ts'
import { pluginHooks } from './plugin-steps.ts'
import { earlyStreams, streams } from './row-steps.ts'
import { ledgerFailure, shutdown } from './state-steps.ts'
import { type Scenario, staleExceptions, tests } from './table.ts'

// The rest of the table: what is known beyond one call, streams, plugins, and calls while the router can do less than usual.

const scenarios: readonly Scenario[] = [
  answerBounds,
  targetHealth,
  targetConcurrency,
  routerConcurrency,
  streams,
  earlyStreams,
  pluginHooks,
  ledgerFailure,
  shutdown,
]

test('exceptions of the table are about routes that there are', () => {
  expect(staleExceptions(scenarios)).toEqual([])
})

tests(scenarios)
