import { describe, expect, test } from 'vitest'
import { simulatorOnly, testRouter } from '../helpers/router.ts'
import { whatABodyIs, whoMayCall } from './access-steps.ts'
import { whereItMayGo } from './allowed-steps.ts'
import { howItIsAsked, howItIsAskedAgain } from './attempt-steps.ts'
import { paths, routeAt, routes } from './examples.ts'
import { howLargeAnAnswerIs, howManyAtOnce, howManyOfAll, whatIsKnown } from './health-steps.ts'
import { whatItMayUse } from './money-steps.ts'
import { whatPluginsSee } from './plugin-steps.ts'
import { whileItWaits } from './quota-steps.ts'
import { whereItGoes } from './routing-steps.ts'
import { howStreamsBegin, howStreamsEnd, whatIsLeft } from './row-steps.ts'
import { whileItStops, withoutALedger } from './state-steps.ts'
import { type Scenario, staleExceptions, tests } from './table.ts'

// Every step of a call crossed with every route for calls: no kind of call may lack a step that the others have.

const scenarios: readonly Scenario[] = [
  whoMayCall,
  whatABodyIs,
  whereItMayGo,
  whereItGoes,
  whatItMayUse,
  howItIsAsked,
  howItIsAskedAgain,
  howLargeAnAnswerIs,
  whatIsKnown,
  howManyAtOnce,
  howManyOfAll,
  whatIsLeft,
  howStreamsEnd,
  howStreamsBegin,
  whatPluginsSee,
  withoutALedger,
  whileItStops,
  whileItWaits,
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
