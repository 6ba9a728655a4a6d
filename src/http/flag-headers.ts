import type { IncomingHttpHeaders } from 'node:http'
import { RouterError } from '../core/errors.ts'

/** Whether a request asks to be refused rather than to lose a field. Throws RouterError 400. */
export function isStrict({ 'x-router-strict': value }: IncomingHttpHeaders): boolean {
  return value !== undefined && flagOf('x-router-strict', value)
}

/** Whether a request asks why its targets were chosen. Throws RouterError 400. */
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
