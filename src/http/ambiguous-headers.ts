import type { IncomingMessage } from 'node:http'
import { RouterError } from '../core/errors.ts'

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
