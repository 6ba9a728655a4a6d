import { requireMembers, WrongResult } from './members.ts'

/** What a `send` hook returned: headers, by lower-case name. Throws `WrongResult`. */
export function sentHeaders(result: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  if (typeof result !== 'object' || result === null || Array.isArray(result)) requireMembers(result, 'the result', {})
  for (const [given, value] of Object.entries(result as object)) {
    const name = given.toLowerCase()
    if (!isName.test(name)) throw new WrongResult(`'${given}' is no name of a header`)
    if (refused.test(name)) throw new WrongResult(`a plugin may not send the header '${name}'`)
    if (typeof value !== 'string' || !isValue.test(value))
      throw new WrongResult(`the header '${name}' is no plain text`)
    headers[name] = value
  }
  return headers
}

const isName = /^[a-z0-9!#$%&'*+.^_`|~-]+$/
const isValue = /^[\t\x20-\x7e]*$/

/** What authenticates, what says where a request goes and how it is written, and what is about its connection. */
const refused =
  /^(?:.*authorization|.*api-key|.*-token|.*-secret|cookie2?|host|content-.*|accept(?:-encoding)?|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|x-amz-.*)$/
