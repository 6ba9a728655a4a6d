import { join } from 'node:path'
import { clients, type Place } from './clients.ts'
import { type Fault, type LoopbackProvider, startProvider } from './provider.ts'
import { startRouter } from './router.ts'
import { helperAnswer } from './script.ts'
import { sdks } from './sdks.ts'
import { isComplete, runSession, type SessionSettings } from './session.ts'
import { targets } from './targets.ts'

/** A client and a provider that fails. */
export type Cell = { client: string; fault: Fault; rate: number }

/** The calls of a cell that succeeded without and with the router, and the requests that reached the provider. */
export type Result = Cell & { calls: number; direct: Side; routed: Side }
export type Side = { succeeded: number; requests: number; failures: readonly string[] }

export type ReliabilitySettings = SessionSettings & { calls: number; parallel: number; seed: number }

/** The target of each client: one that speaks its own format. */
const targetNames: Readonly<Record<string, string>> = {
  'claude-code': 'anthropic',
  'anthropic-sdk': 'anthropic',
  codex: 'openai-responses',
  'openai-sdk': 'openai-responses',
}

/** Calls a failing provider directly and through a router that has only just started. */
export async function measureCell(cell: Cell, settings: ReliabilitySettings): Promise<Result> {
  const target = targets[targetNames[cell.client] ?? '']
  if (!target) throw new Error(`Reliability can be measured for ${Object.keys(targetNames).join(', ')}`)
  const provider = await startProvider(target)
  const router = await startRouter({ [target.provider]: provider.url })
  try {
    const model = target.model.slice(target.provider.length + 1)
    const direct = { url: provider.url.slice(0, provider.url.length - target.base.length), key: 'loopback', model }
    const routed = { url: router.url, key: router.key, model: target.model }
    return {
      ...cell,
      calls: settings.calls,
      direct: await sideOf(cell, provider, direct, settings),
      routed: await sideOf(cell, provider, routed, settings),
    }
  } finally {
    await router.stop()
    provider.close()
  }
}

/** Makes all calls of one side. Both sides draw the same numbers. */
async function sideOf(
  { client, fault, rate }: Cell,
  provider: LoopbackProvider,
  place: Omit<Place, 'home'>,
  settings: ReliabilitySettings,
): Promise<Side> {
  provider.failing = { fault, rate, random: randomFrom(settings.seed) }
  provider.seen.length = 0
  const failures: string[] = []
  let next = 0
  const worker = async () => {
    while (next < settings.calls) {
      const problem = await callOnce(client, next++, place, settings)
      if (problem) failures.push(problem)
    }
  }
  await Promise.all(Array.from({ length: settings.parallel }, worker))
  return { succeeded: settings.calls - failures.length, requests: provider.seen.length, failures }
}

/** Makes one call or runs one session; returns what went wrong. */
async function callOnce(
  name: string,
  number: number,
  place: Omit<Place, 'home'>,
  settings: ReliabilitySettings,
): Promise<string | undefined> {
  const client = clients[name]
  if (client) {
    const home = join(settings.folder, 'sessions', `${name}-${Date.now()}-${number}`)
    const session = await runSession(client, { ...place, home }, settings)
    return isComplete(session) ? undefined : session.output.slice(-400)
  }
  try {
    const text = await sdks[name]?.(place, number % 2 === 0)
    return text === helperAnswer ? undefined : `answered ${JSON.stringify(text)}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Numbers from 0 to 1 that a seed determines. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** One line of the report. */
export function resultLine({ client, fault, rate, calls, direct, routed }: Result): string {
  const side = ({ succeeded, requests }: Side) => `${succeeded} of ${calls} (${requests} requests)`
  const verdict =
    routed.succeeded < direct.succeeded ? `  LESS: ${routed.failures[0]?.replaceAll(/\s+/g, ' ').slice(-200)}` : ''
  return `${client}, ${rate * 100} % ${fault}: direct ${side(direct)}, routed ${side(routed)}${verdict}`
}
