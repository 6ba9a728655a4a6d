/** Why a text cannot be an address we send to; undefined when it can. `name` is the field; what it says may contain a password. */
export function wrongAddress(name: string, text: string): string | undefined {
  const isHttp = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  return isHttp ? undefined : `\`${name}\` must be an http or https address`
}

/** RFC 9110: a name is a token, a value has no control characters. What a value says is not told: it may be a secret. */
export function wrongHeader(name: string, text: string): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return `\`${name}\` cannot be the name of a header`
  return /^[\t\x20-\x7E\x80-\xFF]*$/.test(text) ? undefined : 'the value has characters that a header cannot have'
}
