import { describe, expect, test } from 'vitest'
import { simulatorOnly, testRouter } from '../helpers/router.ts'
import { authentication, bodyBounds } from './access-steps.ts'
import { allowedTargets, unprefixedModels } from './allowed-steps.ts'
import { attempts, retries } from './attempt-steps.ts'
import { paths, routeAt, routes } from './examples.ts'
import { limitsAndMoney } from './money-steps.ts'
import { routing } from './routing-steps.ts'
import { rowsAndMetrics } from './row-steps.ts'
import { type Scenario, staleExceptions, tests } from './table.ts'

// Every step of a call crossed with every route for calls: no kind of call may lack a step that the others have. What is about more than
// one call, streams and plugins is in a file of its own, which runs beside this one.

const scenarios: readonly Scenario[] = [
  authentication,
  bodyBounds,
  allowedTargets,
  unprefixedModels,
  routing,
  limitsAndMoney,
  attempts,
  rowsAndMetrics,
  retries,
]

describe('the routes of the table', () => {
  test.each(paths)('%s has an example', (path) => {
    expect(routeAt(path).path).toBe(path)
  })

  test('are all that a router serves', async () => {
    const router = await testRouter({ files: simulatorOnly })
    const served = router.endpoints.filter(({ method, path }) => method === 'POST' && !/:|\/manage\//.test(path))
    await router.end()
    expect(routes.map(({ path }) => path).toSorted()).toEqual(served.map(({ path }) => path).toSorted())
  })

  test('are what exceptions are about', () => {
    expect(staleExceptions(scenarios)).toEqual([])
  })
})

tests(scenarios)
