import { isDeepStrictEqual } from 'node:util'
import { isObject, parseJson } from '../../core/json.ts'
import type { Difference, Facts } from './difference.ts'
import type { Exchange } from './exchange.ts'
import { explanation, isWritten } from './explanations.ts'
import { type Leaves, leavesOf, replyOf } from './reply.ts'

type Value = string | number | boolean | null

/** Part by which costs may differ: they are rounded. */
const costTolerance = 0.01

/** Finds all differences between two answers to one request; `exact` explains no difference in texts. */
export function differencesOf(here: Exchange, there: Exchange, { exact }: { exact: boolean }): Difference[] {
  const failed = ([here, there] as const).some(({ failure }) => failure !== undefined)
  if (failed) return [{ kind: 'failure', here: here.failure ?? 'answered', there: there.failure ?? 'answered' }]
  if (here.status !== there.status) return [{ kind: 'status', here: here.status, there: there.status }]
  const isStream = (one: Exchange) => one.events !== undefined
  if (isStream(here) !== isStream(there) || here.isWhole !== there.isWhole)
    return [{ kind: 'stream', here: streamState(here), there: streamState(there) }]
  const [own, other] = [leavesOf(replyOf(here)), leavesOf(replyOf(there))]
  const found = memberDifferences(own, other)
  const facts: Facts = {
    isError: here.status >= 400,
    textDiffers: found.some(({ kind, path = '' }) => kind === 'value' && isWritten(path)),
    usageDiffers: found.some(({ kind, path = '' }) => kind === 'value' && path.startsWith('usage')),
    exact,
  }
  const all = [...found, ...costDifferences(here, there), ...droppedFields(here)]
  return all.map((one) => {
    const explained = explanation(one, facts)
    return explained === undefined ? one : { ...one, explained }
  })
}

function streamState({ events, isWhole }: Exchange): string {
  if (!events) return 'no stream'
  return isWhole ? 'a complete stream' : 'a stream without its end'
}

/** Finds members that differ, each path once. */
function memberDifferences(own: Leaves, other: Leaves): Difference[] {
  const found = new Map<string, Difference>()
  for (const path of new Set([...own.keys(), ...other.keys()])) {
    const plain = path.replace(/\[\d+\]/g, '[]')
    if (plain === 'usage.cost') continue
    const [here, there] = [own.get(path), other.get(path)]
    if (isSame(here, there, plain)) continue
    const kind = here === undefined ? 'only_there' : there === undefined ? 'only_here' : 'value'
    const id = `${kind} ${plain}`
    if (!found.has(id))
      found.set(id, { kind, path: plain, ...(here !== undefined && { here }), ...(there !== undefined && { there }) })
  }
  return [...found.values()]
}

/** Checks whether two members say the same. One that is missing says the same as one that is null, empty, or a count of 0. */
function isSame(here: Value | undefined, there: Value | undefined, path: string): boolean {
  if (here === there) return true
  const isNothing = (one: Value | undefined) =>
    one === undefined || one === null || one === '' || (one === 0 && path.startsWith('usage'))
  if (isNothing(here) && isNothing(there)) return true
  if (typeof here === 'number' && typeof there === 'number')
    return Math.abs(here - there) <= 1e-6 * Math.max(Math.abs(here), Math.abs(there))
  if (typeof here !== 'string' || typeof there !== 'string' || !path.endsWith('arguments')) return false
  // Spaces between the tokens of JSON mean nothing.
  const [one, other] = [parseJson(here), parseJson(there)]
  return one !== undefined && isDeepStrictEqual(one, other)
}

/** Returns what an answer cost in USD, by its usage or by a header. */
export function costOf(answer: Exchange): number | undefined {
  const reply = replyOf(answer)
  const usage = isObject(reply) && isObject(reply.usage) ? reply.usage : {}
  const headers = ['x-router-cost', 'x-litellm-response-cost'].map((name) => answer.headers[name])
  const costs = [usage.cost, ...headers].map((cost) => (typeof cost === 'string' && cost !== '' ? Number(cost) : cost))
  return costs.filter((cost) => typeof cost === 'number').find(Number.isFinite)
}

function costDifferences(here: Exchange, there: Exchange): Difference[] {
  const [own, other] = [costOf(here), costOf(there)]
  if (own === undefined || other === undefined) return []
  const isNear = Math.abs(own - other) <= costTolerance * Math.max(own, other) + 1e-9
  return isNear ? [] : [{ kind: 'cost', here: own, there: other }]
}

function droppedFields({ headers }: Exchange): Difference[] {
  const dropped = headers['x-router-dropped']
  return dropped ? [{ kind: 'dropped', here: dropped }] : []
}
