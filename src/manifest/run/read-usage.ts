import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { impossibleCount, type ReportedUsage, type Total, totalsMissing, totalsUncounted } from '../../core/usage.ts'
import type { Mapping, Variables } from '../../mapping/mapping.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { Provider } from '../provider.ts'
import { isExhausted, runMapping } from './run-mapping.ts'

/**
 * Reads a provider's usage as counts by class; without a mapping it is read as it is. Usage never fails a call: a value that cannot be a
 * count is absent, as is one that the mapping fails on, and the counts are marked, with the totals that it may be part of.
 */
export function readCounts(
  provider: Provider,
  mapping: Mapping | undefined,
  reported: Json,
  variables?: Variables,
): ReportedUsage | Promise<ReportedUsage> {
  const { usage = {}, absent } = readableUsage(reported)
  const isDamaged = !isObject(reported) || damaged.has(reported)
  const run = (input: Json) => (mapping ? runMapping(provider, 'usage', mapping, input, variables) : input)
  const salvaged = () => salvage(run, {}, membersOf(usage)).then((counts) => uncounted(countsFrom(counts, usage)))
  return orElse(
    () =>
      andThen(run(usage), (counts) => {
        const read = countsFrom(counts, usage)
        if (isDamaged) return uncounted(read)
        if (absent.length === 0) return read
        return withUnread(read, absent, (member) => run(withMember(isObject(usage) ? usage : {}, member, probe)))
      }),
    (thrown) => (isExhausted(thrown) ? unread : salvaged().catch(() => unread)),
  )
}

/** Marks counts of a usage without the members that could not be read: a total is unread where a count for one of them would raise it. */
async function withUnread(
  counts: ReportedUsage,
  absent: readonly Path[],
  runWith: (member: Path) => unknown | Promise<unknown>,
): Promise<ReportedUsage> {
  const totals = new Set<Total>()
  for (const member of absent.slice(0, maxProbes)) {
    const fuller = await Promise.resolve(member)
      .then(runWith)
      .catch(() => undefined)
    if (isObject(fuller)) for (const total of totalsMissing(counts, fuller)) totals.add(total)
  }
  return { ...counts, corrected: true, ...(totals.size > 0 && { unread: [...totals] }) }
}

const maxProbes = 20

/** Count in place of one that could not be read, to see what depends on it. */
const probe = 1_000_000

/** Marks counts of a usage of which it is not known what could not be read. */
function uncounted(counts: ReportedUsage): ReportedUsage {
  const totals = totalsUncounted(counts)
  return { ...counts, corrected: true, ...(totals.length > 0 && { unread: totals }) }
}

/**
 * Runs a mapping that reads a provider's answer or event. Where it fails, it is run again without the usage in its input: what fails
 * then is the answer itself. Members of the usage with which it works are added again. Throws RouterError.
 */
export function runReading(
  provider: Provider,
  name: string,
  mapping: Mapping,
  input: JsonObject | string,
  variables?: Variables,
): unknown | Promise<unknown> {
  const run = (body: Json) => runMapping(provider, name, mapping, body, variables)
  // Patches may compute with what is read only afterwards.
  if (name.startsWith('patch.')) input = withReadableUsage(input)
  return orElse(
    () => (isObject(input) && damaged.has(input) ? andThen(run(input), markDamaged) : run(input)),
    async (thrown) => {
      const members = isObject(input) ? usagesIn(input) : []
      if (!isObject(input) || members.length === 0 || isExhausted(thrown)) throw thrown
      const base = members.reduce((body, { path }) => withMember(body, path, undefined), input)
      const result = await salvage(run, base, members).catch(() => {
        throw thrown
      })
      return markDamaged(result)
    },
  )
}

const unread: Promise<ReportedUsage> = Promise.resolve({ corrected: true, unread: ['input', 'output'] })

/** Usages of which members had to be left out before they could be read, and the answers and events that they stand in. */
const damaged = new WeakSet<object>()

function withReadableUsage(body: JsonObject | string): JsonObject | string {
  if (!isObject(body) || !isObject(body.usage)) return body
  const { usage = {}, absent } = readableUsage(body.usage)
  if (usage === body.usage) return body
  const readable = { ...body, usage }
  if (absent.length > 0) damaged.add(readable)
  return readable
}

function markDamaged(result: unknown): unknown {
  for (const made of [result].flat()) {
    if (!isObject(made)) continue
    damaged.add(made)
    if (isObject(made.usage)) damaged.add(made.usage)
  }
  return result
}

type Path = readonly string[]
type Member = { path: Path; value: Json }

/**
 * Runs a mapping on as many of these members as it works with: those of an object are tried one by one if the whole fails. Rejects where
 * it fails without any.
 */
async function salvage(
  run: (input: Json) => unknown | Promise<unknown>,
  base: JsonObject,
  members: readonly Member[],
): Promise<unknown> {
  let input = base
  let result = await run(base)
  let tries = maxTries
  const add = async ({ path, value }: Member): Promise<void> => {
    if (tries-- <= 0) return
    const more = withMember(input, path, value)
    try {
      result = await run(more)
      input = more
    } catch (thrown) {
      if (isExhausted(thrown)) tries = 0
      for (const member of membersOf(value, path)) await add(member)
    }
  }
  for (const { path, value } of members) {
    const { usage } = readableUsage(value, path.at(-1))
    if (usage !== undefined) await add({ path, value: usage })
  }
  return result
}

/** Usage objects have some twenty members; what a provider sends beyond that is not worth its time. */
const maxTries = 100

function membersOf(value: Json, path: Path = []): Member[] {
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    inner === undefined ? [] : { path: [...path, name], value: inner },
  )
}

/** Returns the members of an answer or event that hold usage, and the counts that stand in it directly. */
function usagesIn(body: JsonObject, path: Path = []): Member[] {
  return membersOf(body, path).flatMap((member) => {
    const name = member.path.at(-1) ?? ''
    if (usageName.test(name) || (path.length === 0 && tokenName.test(name))) return [member]
    return isObject(member.value) && member.path.length < maxDepth ? usagesIn(member.value, member.path) : []
  })
}

const usageName = /usage|billed_units|statistics|timings/i
const maxDepth = 4

/** Returns a copy in which a member has a value; none where that is undefined. */
function withMember(object: JsonObject, [name = '', ...rest]: Path, value: Json | undefined): JsonObject {
  const inner = object[name]
  const changed = rest.length === 0 ? value : withMember(isObject(inner) ? inner : {}, rest, value)
  const others = Object.entries(object).filter(([other]) => other !== name)
  // Entries, not assignments: a provider may call a member `__proto__`.
  return Object.fromEntries(changed === undefined ? others : [...others, [name, changed]])
}

function countsFrom(counts: unknown, usage: Json | undefined): ReportedUsage {
  const read: ReportedUsage = isObject(counts) ? { ...counts } : {}
  const total = isObject(usage) && totals.map((name) => usage[name]).find((count) => typeof count === 'number')
  if (typeof total === 'number') read.total ??= total
  return read
}

/** The names that formats have for the sum of all tokens. */
const totals = ['total_tokens', 'totalTokens', 'totalTokenCount'] as const

/**
 * Returns a usage without the values that cannot be counts. Digits in a string are read as their number: protobuf writes 64-bit integers
 * so. Null is a count that was not made. `absent` are the paths of counts that were left out.
 */
function readableUsage(reported: Json, name = ''): { usage: Json | undefined; absent: readonly Path[] } {
  if (isPlain(reported, name)) return { usage: reported, absent: [] }
  const absent: Path[] = []
  const leaveOut = (path: Path) => {
    if (countName.test(path.at(-1) ?? '')) absent.push(path)
    return undefined
  }
  const read = (value: Json, path: Path): Json | undefined => {
    const name = path.at(-1) ?? ''
    const isTokens = tokenName.test(name)
    if (typeof value === 'string' && digits.test(value)) return read(Number(value), path)
    if (typeof value === 'number') return canBe(value, isTokens) ? value : leaveOut(path)
    if (value === null) return undefined
    if (typeof value !== 'object') return countName.test(name) ? leaveOut(path) : value
    if (isTokens) return leaveOut(path)
    if (Array.isArray(value)) return value.map((item) => read(item, [...path, ''])).filter((item) => item !== undefined)
    const members = Object.entries(value).map(([inner, item = null]) => [inner, read(item, [...path, inner])] as const)
    return Object.fromEntries(members.filter(([, item]) => item !== undefined)) as JsonObject
  }
  return { usage: read(reported, name ? [name] : []), absent }
}

/** Checks whether nothing is to be changed, as in nearly all answers: without copies, and with few patterns. */
function isPlain(value: Json | undefined, name: string): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 0 && value < impossibleCount
  if (typeof value === 'string' || typeof value === 'boolean') {
    return !countName.test(name) && !(typeof value === 'string' && digits.test(value))
  }
  if (value === undefined) return true
  if (value === null || tokenName.test(name)) return false
  if (Array.isArray(value)) return value.every((item) => isPlain(item, ''))
  for (const member in value) if (!isPlain(value[member], member)) return false
  return true
}

function canBe(count: number, isTokens: boolean): boolean {
  return Number.isFinite(count) && count >= 0 && !(isTokens && (!Number.isInteger(count) || count >= impossibleCount))
}

const digits = /^\d{1,15}(?:\.\d{1,15})?$/
/** Names of counts of any kind; a value that is none of them is what it is: a tier, a modality. */
const countName = /(?:tokens?|count|units?|requests|calls|queries|images|characters|seconds|cost|ticks)$/i
/** Names of counts that are whole numbers, never objects. */
const tokenName = /[a-z](?:_tokens|Tokens|_count|Count)$/

/** Returns a value, or what another function makes of the reason for which it cannot be had. */
function orElse<T>(value: () => T | Promise<T>, other: (thrown: unknown) => Promise<T>): T | Promise<T> {
  try {
    const known = value()
    return known instanceof Promise ? known.catch(other) : known
  } catch (thrown) {
    return other(thrown)
  }
}
