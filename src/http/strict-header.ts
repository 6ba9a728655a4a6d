import type { IncomingHttpHeaders } from 'node:http'
import { RouterError } from '../core/errors.ts'

/** Whether a request asks to be refused rather than to lose a field. Throws RouterError 400. */
export function isStrict({ 'x-router-strict': value }: IncomingHttpHeaders): boolean {
  if (value === undefined) return false
  const known = values.get(String(value).trim().toLowerCase())
  if (known !== undefined) return known
  const message = 'The header x-router-strict must be true or false.'
  throw new RouterError('invalid_request', message, { param: 'x-router-strict' })
}

const values: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])
