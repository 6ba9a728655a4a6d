/** Header values as Node gives them, by lower-case name. */
export type Headers = { readonly [name: string]: string | string[] | undefined }

/**
 * The secret a client sent as `Authorization: Bearer <key>` or `x-api-key: <key>`; undefined when it sent none. An
 * Authorization header that says something else gives a text that is no key, so that it is refused, not overlooked.
 */
export function secretOf(headers: Headers): string | undefined {
  const authorization = textOf(headers.authorization)
  const [, token] = /^bearer(?:\s+(.*))?$/is.exec(authorization) ?? []
  const secret = token?.trim() || textOf(headers['x-api-key'])
  if (secret) return secret
  const onlyScheme = /^bearer$/i.test(authorization)
  return authorization === '' || onlyScheme ? undefined : notAKey
}

/** No key has a space in it. */
const notAKey = 'not a bearer token'

function textOf(value: string | string[] | undefined): string {
  const first = Array.isArray(value) ? value[0] : value
  return first?.trim() ?? ''
}
