import { describe, expect, test } from 'vitest'
import { whatABodyIs, whoMayCall } from './access-steps.ts'
import { howItIsAsked, howManyAtOnce, whatIsKnown } from './attempt-steps.ts'
import { paths, routeAt, routes } from './examples.ts'
import { whatItMayUse } from './money-steps.ts'
import { whatPluginsSee } from './plugin-steps.ts'
import { whereItGoes, whereItMayGo } from './routing-steps.ts'
import { howStreamsBegin, howStreamsEnd, whatIsLeft } from './row-steps.ts'
import { type Scenario, staleExceptions, tests } from './table.ts'

// Every step of a call crossed with every route for calls: no kind of call may lack a step that the others have.

const scenarios: readonly Scenario[] = [
  whoMayCall,
  whatABodyIs,
  whereItMayGo,
  whereItGoes,
  whatItMayUse,
  howItIsAsked,
  whatIsKnown,
  howManyAtOnce,
  whatIsLeft,
  howStreamsEnd,
  howStreamsBegin,
  whatPluginsSee,
]

describe('the routes of the table', () => {
  test.each(paths)('%s has an example', (path) => {
    expect(routeAt(path).path).toBe(path)
  })

  test('are all that there are', () => {
    expect(routes.map(({ path }) => path)).toEqual(paths)
  })

  test('are what exceptions are about', () => {
    expect(staleExceptions(scenarios)).toEqual([])
  })
})

for (const scenario of scenarios) tests(scenario)
