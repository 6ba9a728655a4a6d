import type { Cell } from './cells.ts'
import { call, type Gateway, type Seen } from './clients/client.ts'
import type { Entry } from './simulator/journal.ts'

/** Where a wall is run, and under which names. */
export type World = {
  gateway: Gateway
  /** The factor of the simulator's times. */
  time: number
  /** How much longer than its time a call may take, whatever the factor. */
  slackMs: number
  /** How many threads or processes of the gateway find out by themselves that a target is down (1). */
  judges?: number
  /** The name of the model for a cell, and that of a model at the same provider that answers. */
  modelOf(cell: Cell): string
  healthyOf(cell: Cell): string
  /** What the simulator was asked by one caller. */
  requestsOf(caller: string): Promise<readonly Entry[]>
}

/** A call for the model of a cell. The simulator finds the caller in the text, whatever the gateway makes of the request. */
export function callFor(cell: Cell, world: World, caller: string, model = world.modelOf(cell)): Promise<Seen> {
  const text = `Count to sixty. (case:${caller})`
  return call(world.gateway, cell.api, { model, text, stream: cell.mode === 'streamed', id: caller })
}
