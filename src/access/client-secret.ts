/** Headers as Node parses them, by lower-case name. */
export type Headers = { readonly [name: string]: string | string[] | undefined }

/**
 * The secret of `Authorization: Bearer <key>` or `x-api-key: <key>`; undefined when the client sent none. Another
 * Authorization header yields a string that is no key, so that it is rejected instead of ignored.
 */
export function secretOf(headers: Headers): string | undefined {
  const authorization = textOf(headers.authorization)
  const [, token] = /^bearer(?:\s+(.*))?$/is.exec(authorization) ?? []
  const secret = token?.trim() || textOf(headers['x-api-key'])
  if (secret) return secret
  const onlyScheme = /^bearer$/i.test(authorization)
  return authorization === '' || onlyScheme ? undefined : notAKey
}

/** Never a valid key, as keys contain no spaces. */
const notAKey = 'not a bearer token'

function textOf(value: string | string[] | undefined): string {
  const first = Array.isArray(value) ? value[0] : value
  return first?.trim() ?? ''
}
