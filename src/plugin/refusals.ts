import { type ErrorCode, RouterError } from '../core/errors.ts'
import type { Refusal } from './contract.ts'
import { WrongResult } from './members.ts'

/** Codes of the router for refusals that name none. */
const codes: { readonly [status: number]: ErrorCode } = {
  400: 'invalid_request',
  402: 'budget_exhausted',
  403: 'forbidden',
  404: 'not_found',
  429: 'rate_limited',
}

const usualStatus = 403
const isCode = /^[A-Za-z][\w.-]{0,63}$/

/** Returns the error for the client whose call a plugin refuses. A refusal that is not well formed refuses nevertheless. */
export function refusalError({ status: given, message, code: named, param }: Refusal): RouterError {
  const status = isStatus(given) ? given : usualStatus
  const code = isNamed(named) ? named : undefined
  const own = code === undefined ? codes[status] : undefined
  return new RouterError(own ?? 'plugin_refused', String(message), {
    pluginRefusal: { status, code },
    ...(param !== undefined && { param: String(param) }),
  })
}

/** Returns what is wrong with a refusal; undefined where nothing is. */
export function wrongInRefusal({ status, code }: Refusal): WrongResult | undefined {
  if (!isStatus(status)) return new WrongResult(`a refusal has the status ${status}, which is not one of 400 to 599`)
  if (code !== undefined && !isNamed(code))
    return new WrongResult(`a refusal has the code '${code}': letters, digits, _, . and -, at most 64`)
  return undefined
}

function isStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599
}

function isNamed(code: unknown): code is string {
  return typeof code === 'string' && isCode.test(code)
}
