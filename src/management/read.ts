import { type Check, filledText, integer, list, listOf, mapOf, object, refuse, text } from '../api/check.ts'
import type { CreationLimits } from '../core/creation-limits.ts'
import { RouterError } from '../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { aliasNameProblem, policyIdProblem } from '../core/names.ts'
import { dayMs, durationMs, maxMs, parseTime } from '../core/time.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'

/** Reads the members of a body that may have only the `known` ones. Throws RouterError 400. */
export function membersOf(body: unknown, known: readonly string[]): JsonObject {
  if (!isObject(body)) throw invalid(`The body must be a JSON object with: ${known.join(', ')}.`)
  return onlyMembers(body, known)
}

/**
 * Requires at least one member: an empty body is a mistake, not a request to change nothing or to remove everything. Throws RouterError
 * 400.
 */
export function requireAny(members: JsonObject, known: readonly string[]): void {
  if (Object.keys(members).length > 0) return
  throw invalid(`The body is empty. Name what to change, with null to remove it: ${known.join(', ')}.`)
}

/** Returns an object that may have only the `known` members; `within` is its path. Throws RouterError 400. */
export function onlyMembers(value: JsonObject, known: readonly string[], within = ''): JsonObject {
  refuseUnknown(Object.keys(value), known, { kind: 'field', within })
  return value
}

/** Requires a body that is absent or empty. Throws RouterError 400. */
export function requireEmpty(body: unknown): void {
  if (body === undefined) return
  const [name] = isObject(body) ? Object.keys(body) : []
  if (name !== undefined) throw invalid(`There is no field '${name.slice(0, 60)}' here; the body must be empty.`, name)
  if (!isObject(body)) throw invalid('The body must be empty.')
}

/** Reads the parameters of a query that may have only the `known` ones, each once. Throws RouterError 400. */
export function parametersOf<Name extends string>(
  query: { readonly [name: string]: string | string[] | undefined },
  known: readonly Name[],
): { [name in Name]?: string } {
  refuseUnknown(Object.keys(query), known, { kind: 'parameter' })
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) throw invalid(`'${name}' is given ${value.length} times; give it once.`, name)
  }
  return query as { [name in Name]?: string }
}

/** Returns a 400 for invalid input; `param` names the field. */
export function invalid(message: string, param?: string): RouterError {
  return new RouterError('invalid_request', message, param === undefined ? {} : { param })
}

/** An amount of USD, converted to nano-USD. */
export const usd: Check<bigint> = (value, path) => {
  const fits = typeof value === 'number' && Math.abs(value) <= maxUsd
  if (!fits) refuse(path, `a number of USD, at most ${maxUsd}`, value)
  const nano = Math.round(value * 1e9)
  if (nano === 0 && value !== 0) refuse(path, 'a number of USD with at most nine decimals', value)
  return BigInt(nano)
}

/** A limit in USD, converted to nano-USD; 0 is unlimited and becomes null. */
export const usdLimit: Check<bigint | null> = (value, path) => {
  const nano = usd(value, path)
  if (nano < 0n) refuse(path, 'a number of USD of at least 0, where 0 means unlimited', value)
  return nano === 0n ? null : nano
}

/** A limit on a count; 0 is unlimited and becomes null. */
export const countLimit: Check<number | null> = (value, path) => integer(0, maxCount)(value, path) || null

/** A display name: one line of text, trimmed. */
export const title: Check<string> = (value, path) => {
  const name = filledText(value, path).trim()
  const fits = name !== '' && name.length <= maxTitleLength && !/\p{Cc}/u.test(name) && name.isWellFormed()
  return fits ? name : refuse(path, `a single line of at most ${maxTitleLength} characters`, value)
}

/** Text of bounded length. */
export const remark: Check<string> = textWithin(1_000)

/** Checks labels: an object of strings. */
export function labelsWithin({
  labels: most,
  labelLength,
}: Pick<CreationLimits, 'labels' | 'labelLength'>): Check<Record<string, string>> {
  return (value, path) => {
    const count = Object.keys(object(value, path)).length
    if (count > most)
      throw invalid(`'${path}' has ${count} labels; manage.limits.labels of this server is ${most}.`, path)
    const members = mapOf(textWithin(labelLength, 'manage.limits.label_length'))(value, path)
    for (const name of Object.keys(members)) title(name, `${path}: the name of a label`)
    return members as Record<string, string>
  }
}

/** An RFC 3339 time in the future, as Unix milliseconds. */
export const futureTime: Check<number> = (value, path) => {
  const time = typeof value === 'string' ? parseTime(value) : undefined
  if (time === undefined) refuse(path, 'an RFC 3339 time such as 2027-01-31T00:00:00Z, or null for none', value)
  if (time <= Date.now()) throw invalid(`'${path}' is ${value}, which has passed; write a time in the future.`, path)
  return time
}

/**
 * Returns the Unix milliseconds of a time or a date; a date is its beginning, or as `end` the beginning of the next day. Throws RouterError
 * 400.
 */
export function rangeTime(text: string, name: 'start' | 'end'): number {
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text)
  // An unencoded plus sign in a query arrives as a space.
  const time = parseTime(isDate ? `${text}T00:00:00Z` : text.replace(/ (?=\d\d:\d\d$)/, '+'))
  if (time !== undefined && time >= 0) return isDate && name === 'end' ? time + dayMs : time
  throw invalid(
    `'${name}' must be a date such as 2026-11-30 or an RFC 3339 time such as 2026-11-30T12:00:00Z, not '${text.slice(0, 60)}'.`,
    name,
  )
}

/** Checks a time such as `500ms`, `10s` or `5m`, as it is written; of at least so many milliseconds. */
export function duration(leastMs: number): Check<string> {
  return (value, path) => {
    const ms = typeof value === 'string' ? durationMs(value) : undefined
    const fits = ms !== undefined && ms >= leastMs && ms <= maxMs
    const bounds = leastMs > 0 ? 'more than 0 and at most 24h' : 'at most 24h'
    return fits ? (value as string) : refuse(path, `a time such as 500ms, 10s or 5m, ${bounds}`, value)
  }
}

/** A name that an alias may have. */
export const aliasName: Check<string> = nameWithout(aliasNameProblem)

/** An id that a policy may have. */
export const policyId: Check<string> = nameWithout(policyIdProblem)

/** Checks names of models. Repetitions are removed. */
export function namesOfModels({ models: most }: Pick<CreationLimits, 'models'>): Check<string[]> {
  return (value, path) => {
    const { length: count } = list(value, path)
    if (count > most)
      throw invalid(`'${path}' has ${count} names; manage.limits.models of this server is ${most}.`, path)
    return [...new Set(listOf(filledText)(value, path))]
  }
}

/** Makes a check that passes an absent or null value on as null. */
export function orNull<T>(check: Check<T>): (value: Json | undefined, path: string) => T | null {
  return (value, path) => (value === undefined || value === null ? null : check(value, path))
}

/** Checks text of at most so many characters, as a setting of the server says. */
function textWithin(most: number, setting?: string): Check<string> {
  return (value, path) => {
    const content = text(value, path)
    const source = setting === undefined ? '' : `, the ${setting} of this server`
    const fits = content.length <= most && content.isWellFormed()
    return fits ? content : refuse(path, `text of at most ${most} characters${source}`, value)
  }
}

function nameWithout(problemOf: (name: string) => string | undefined): Check<string> {
  return (value, path) => {
    const name = filledText(value, path)
    const problem = problemOf(name)
    if (problem === undefined) return name
    throw invalid(`'${path}' ${problem}; it is '${name.slice(0, 60)}'.`, path)
  }
}

function refuseUnknown(
  names: readonly string[],
  known: readonly string[],
  { kind, within = '' }: { kind: string; within?: string },
): void {
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return
  const name = unknown.slice(0, 60)
  const hint = didYouMean(name, known) || `; known: ${known.join(', ')}.`
  throw invalid(`There is no ${kind} '${within}${name}' here${hint}`, within + name)
}

/** The largest amount of USD that a JSON number holds exactly to the nano-dollar. */
const maxUsd = 9_000_000
const maxCount = 1_000_000_000_000
const maxTitleLength = 200
