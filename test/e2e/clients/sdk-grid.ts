import { describe, expect, test } from 'vitest'
import { within } from '../../helpers/provider.ts'
import type { TestRouter } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'
import type { Arrived, FakeProvider, Lack, Step, Wire } from './sdk-wire.ts'
import { messagesWire } from './sdk-wire-messages.ts'
import { responsesWire } from './sdk-wire-responses.ts'
import { chatWire, mistralWire } from './sdk-wires-chat.ts'
import { converseWire, geminiWire } from './sdk-wires-cloud.ts'
import { cohereWire, ollamaWire } from './sdk-wires-open.ts'

/** The columns of the grid. */
export const wires: readonly Wire[] = [
  chatWire,
  responsesWire,
  messagesWire,
  geminiWire,
  converseWire,
  cohereWire,
  ollamaWire,
  mistralWire,
]

/** The columns whose providers sign their thoughts: the router knows these by their calls. */
export const signing = wires.filter(({ thoughtSent }) => thoughtSent('thought') !== 'thought')

/** One column at work: the router with its clients, and its fake provider. */
export type Way = {
  wire: Wire
  provider: FakeProvider
  router: TestRouter
  /** A `fetch` for clients that remembers the fields that the router reports as lost. */
  fetch: typeof fetch
  lost: string[]
}

/** A cell: 'loss' with a field where the format cannot do it. */
export type Cell = (way: Way) => Promise<unknown>

/** The column of the simulator inside the router, which answers by itself. */
export const simulator = 'demo'

const results = new Map<string, Map<string, string>>()

let rows = 0

/**
 * A row of the grid: one feature of one client, behind every format. The provider replies in these `steps`, and must be called for all
 * of them. The fast suite has one cell of each row, and the next row has it behind the next format.
 */
export function row(name: string, steps: Step[], wayTo: (wire: Wire) => Way, cell: Cell, columns = wires): void {
  const fast = columns[rows++ % columns.length]
  describe(name, () => {
    for (const wire of columns) {
      const run = async () => {
        const way = wayTo(wire)
        way.provider.play(...steps)
        way.lost.length = 0
        const result = await cell(way)
        expect(way.provider.done(), 'the provider was asked for all of it').toBe(true)
        expectAddressed(way)
        return result
      }
      cellOf(name, wire.dialect, run, wire === fast ? {} : slow)
    }
  })
}

/** One test of the grid, and its result in the printed table. */
export function cellOf(name: string, column: string, run: () => Promise<unknown>, speed: object = {}): void {
  test(column, speed, async () => {
    const line = results.get(name) ?? new Map<string, string>()
    results.set(name, line.set(column, 'FAILED'))
    const result = await within(10_000, `${name} by ${column}`, run())
    line.set(column, typeof result === 'string' ? result : 'ok')
  })
}

/** Every request came to the right path, with the right key. */
function expectAddressed({ wire, provider }: Way): void {
  const headers = { 'content-type': 'application/json', ...wire.address.headers }
  for (const request of provider.received) {
    expect(request.method).toBe('POST')
    expect(request.path).toMatch(wire.address.path)
    for (const [name, value] of Object.entries(headers)) expect(request.headers[name]).toMatch(value)
  }
}

/** A format of another provider, for conversations that move. */
export function elsewhere(wire: Wire): Wire {
  const at = wires.indexOf(wire)
  return wires[(at + 3) % wires.length] as Wire
}

/** A feature that the format carries, or whose loss is reported: then the cell names the field. */
export function carriedOrReported(way: Way, lack: Lack, has: boolean, field: RegExp): string | undefined {
  expect(has, `${lack} reaches ${way.wire.dialect}`).toBe(!way.wire.lacks[lack])
  const reported = way.lost.find((name) => field.test(name))
  if (has) {
    expect(reported).toBeUndefined()
    return undefined
  }
  expect(reported, `the loss of ${lack} is reported (${way.lost})`).toBeDefined()
  return `loss ${reported}`
}

/** A `fetch` that keeps the fields of `x-router-dropped`. */
export function watchingFetch(lost: string[]): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    lost.push(...(response.headers.get('x-router-dropped')?.split(',') ?? []))
    return response
  }
}

/** The calls of a turn and the results of the next belong together, by id and in number. */
export function expectPaired(arrived: Arrived): void {
  const waiting: string[] = []
  for (const { role, calls, results } of arrived.turns) {
    for (const { id } of results) {
      expect(waiting, 'a result for a call that was made').toContain(String(id))
      waiting.splice(waiting.indexOf(String(id)), 1)
    }
    if (role === 'user') expect(waiting, 'every call is answered').toEqual([])
    waiting.push(...calls.map(({ id }) => String(id)))
  }
  expect(waiting).toEqual([])
}

/** The grid as text. */
export function printed(): string {
  const columns = [...wires.map(({ dialect }) => dialect), simulator]
  const rows = [...results].map(([name, line]) => [name, ...columns.map((column) => line.get(column) ?? '-')])
  const table = [['', ...columns], ...rows]
  const widths = table[0]?.map((_, at) => Math.max(...table.map((cells) => cells[at]?.length ?? 0))) ?? []
  return ['', ...table.map((cells) => cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')), ''].join('\n')
}
