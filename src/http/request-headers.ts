import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { RouterError } from '../core/errors.ts'
import { durationMs, maxMs } from '../core/time.ts'

/** Checks whether a request asks to be refused rather than to lose a field. Throws RouterError 400. */
export function isStrict({ 'x-router-strict': value }: IncomingHttpHeaders): boolean {
  return value !== undefined && flagOf('x-router-strict', value)
}

/** Checks whether a request asks why its targets were chosen. Throws RouterError 400. */
export function wantsExplanation({ 'x-router-explain': value }: IncomingHttpHeaders): boolean {
  return value !== undefined && flagOf('x-router-explain', value)
}

function flagOf(name: string, value: string | string[]): boolean {
  const known = values.get(String(value).trim().toLowerCase())
  if (known !== undefined) return known
  throw new RouterError('invalid_request', `The header ${name} must be true or false.`, { param: name })
}

const values: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** Returns the time that a request gives to the whole call, in milliseconds; undefined where it says nothing. Throws RouterError 400. */
export function timeoutOf({ 'x-router-timeout': value }: IncomingHttpHeaders): number | undefined {
  if (value === undefined) return undefined
  const ms = durationMs(String(value).trim())
  if (ms !== undefined && ms > 0 && ms <= maxMs) return ms
  const message = 'The header x-router-timeout must be a time such as 500ms, 30s or 1m, more than 0 and at most 24h.'
  throw new RouterError('invalid_request', message, { param: 'x-router-timeout' })
}

/**
 * Refuses a request that has one of these headers twice. Which of them counts would depend on who reads it: a proxy may check the
 * first where we use the last. Throws RouterError 400.
 */
export function refuseDoubledHeaders({ rawHeaders }: IncomingMessage): void {
  const seen: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const written = rawHeaders[at] ?? ''
    if (!lengths.has(written.length)) continue
    const name = written.toLowerCase()
    if (!singles.has(name)) continue
    if (seen.includes(name))
      throw new RouterError('invalid_request', `There are two ${name} headers: send one.`, { param: name })
    seen.push(name)
  }
}

/** Node keeps the first of some of these, and joins the others. */
const singles: ReadonlySet<string> = new Set([
  'authorization',
  'host',
  'x-api-key',
  'content-type',
  'x-router-strict',
  'x-router-explain',
  'x-router-timeout',
  'anthropic-version',
])
const lengths: ReadonlySet<number> = new Set([...singles].map(({ length }) => length))
