import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest'
import { slow } from '../helpers/slow.ts'
import { type Route, routes, slowPaths } from './examples.ts'
import type { World } from './world.ts'

// The table: a row for each route, a column for each step of a call. A cell is a test, or has the reason why there is none.

/** A step that every kind of call has, as the fact that holds at every route. */
export type Step = {
  fact: string
  check(route: Route, world: World): Promise<void>
  /** Routes to which the step does not apply. */
  except?: readonly Exception[]
}

/** Routes to which a step does not apply, with the reason; `instead` checks what holds there. */
export type Exception = {
  at(route: Route): boolean
  because: string
  instead?(route: Route, world: World): Promise<void>
}

/** Steps that are checked with one router. */
export type Scenario = { name: string; start(): Promise<World>; steps: readonly Step[] }

/** An exception for routes that only count tokens. */
export function counting(because: string, instead?: Exception['instead']): Exception {
  return { at: ({ isFree }) => isFree === true, because, ...(instead && { instead }) }
}

/** An exception for routes that have not what a step is about. */
export function without(member: 'linked' | 'stream' | 'lost' | 'isConversation', because: string): Exception {
  return { at: (route) => route[member] === undefined, because }
}

/** An exception for routes whose body is a form. */
export function forms(because: string, instead?: Exception['instead']): Exception {
  return { at: ({ file }) => file !== undefined, because, ...(instead && { instead }) }
}

/** The worlds of scenarios: those that are started in the same way are one, as long as a scenario is left that needs it. */
class Worlds {
  readonly #left: Map<Scenario['start'], number>
  readonly #started = new Map<Scenario['start'], Promise<World>>()

  constructor(scenarios: readonly Scenario[]) {
    const groups = Map.groupBy(scenarios, ({ start }) => start)
    this.#left = new Map([...groups].map(([start, { length }]) => [start, length]))
  }

  of(start: Scenario['start']): Promise<World> {
    const started = this.#started.get(start) ?? start()
    this.#started.set(start, started)
    return started
  }

  async leave(start: Scenario['start']): Promise<void> {
    const left = (this.#left.get(start) ?? 1) - 1
    this.#left.set(start, left)
    if (left === 0) await (await this.#started.get(start))?.end()
  }
}

/** Makes a test of each cell. */
export function tests(scenarios: readonly Scenario[], rows: readonly Route[] = routes): void {
  const worlds = new Worlds(scenarios)
  for (const { name, start, steps } of scenarios) {
    describe(name, () => {
      let world: World
      beforeAll(async () => {
        world = await worlds.of(start)
      })
      beforeEach(() => world.clear())
      afterAll(() => worlds.leave(start))

      for (const step of steps) {
        const cells = rows.flatMap((route) => cellOf(step, route) ?? [])
        if (cells.length === 0) continue
        describe(step.fact, () => {
          for (const { name, path, check } of cells) test(name, slowPaths.has(path) ? slow : {}, () => check(world))
        })
      }
    })
  }
}

/** The test of a cell; undefined where there is none. */
function cellOf({ check, except = [] }: Step, route: Route) {
  const { path } = route
  const exception = except.find(({ at }) => at(route))
  if (!exception) return { name: path, path, check: (world: World) => check(route, world) }
  const { instead, because } = exception
  return instead && { name: `${path}: ${because}`, path, check: (world: World) => instead(route, world) }
}

/** The exceptions that are about no route, by the step that has them: they must go. */
export function staleExceptions(scenarios: readonly Scenario[]): string[] {
  const steps = scenarios.flatMap(({ steps }) => steps)
  return steps.flatMap(({ fact, except = [] }) =>
    except.filter(({ at }) => !routes.some(at)).map(({ because }) => `${fact}: ${because}`),
  )
}
