import type { Cell } from './cells.ts'
import { Report } from './report.ts'
import { runCells } from './run.ts'
import type { Entry } from './simulator/journal.ts'
import type { World } from './world.ts'

export type Options = {
  cells: readonly Cell[]
  gateway: string
  key: string
  /** Names of models at the gateway, with `{scenario}`, `{targets}`, `{mode}` and `{api}` for what a cell is. */
  models: string
  healthy: string
  /** The address of a simulator that is running. */
  simulator: string
  atOnce: number
  /** How much longer than its time a call may take (2 s). */
  slackMs?: number
}

/** Runs the wall against a gateway, and prints what came of it. Whether all passed. Throws if there is no simulator, or no gateway. */
export async function against(options: Options, print: (line: string) => void): Promise<boolean> {
  const { cells, gateway, key, simulator, atOnce, slackMs = 2_000 } = options
  const { time } = await ask<{ time: number }>(simulator, '/wall')
  await ask(simulator, '/wall/requests', 'DELETE')
  await fetch(gateway).catch(() => {
    throw new Error(`Nothing answers at ${gateway}.`)
  })
  const world: World = {
    gateway: { url: gateway.replace(/\/(?:v1\/?)?$/, ''), key, limitMs: 400_000 * time + 10_000 },
    time,
    slackMs,
    modelOf: (cell) => named(options.models, cell),
    healthyOf: (cell) => named(options.healthy, cell),
    requestsOf: async (caller) => {
      const query = new URLSearchParams({ caller })
      return (await ask<{ requests: Entry[] }>(simulator, `/wall/requests?${query}`)).requests
    },
  }
  const report = new Report(
    cells.map(({ scenario }) => scenario.name),
    print,
  )
  await runCells(cells, world, { atOnce, waitingAtOnce: atOnce, onResult: (result) => report.add(result) })
  return report.end()
}

/** The name of a model for a cell. */
function named(template: string, { scenario, targets, mode, api }: Cell): string {
  const values: { [name: string]: string } = { scenario: scenario.name, targets, mode, api: api.name }
  return template.replace(/\{(\w+)\}/g, (text, name) => values[name] ?? text)
}

async function ask<T>(simulator: string, path: string, method = 'GET'): Promise<T> {
  const response = await fetch(simulator.replace(/\/$/, '') + path, { method }).catch(() => undefined)
  if (!response?.ok)
    throw new Error(`There is no simulator at ${simulator}: start it with \`npm run wall -- --serve\`.`)
  return (await response.json()) as T
}
