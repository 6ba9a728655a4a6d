import { isPlainHeader } from '../core/secrets.ts'

/**
 * Returns the text of a manifest without literal secrets: values of members that are named like one, of headers, and the passwords and
 * keys in addresses. Secrets are references to the environment; a value in place of one is a mistake that is shown to nobody.
 */
export function withoutLiterals(text: string): string {
  let headersAt: number | undefined
  return text
    .split('\n')
    .map((line) => {
      const indent = line.search(/\S/)
      if (indent >= 0 && headersAt !== undefined && indent <= headersAt && !/^[}\]]/.test(line.trim()))
        headersAt = undefined
      const begins = /^[\s-]*(?:[^#]*[{,\s])?["']?headers["']?\s*:/.exec(line)
      if (begins) headersAt = indent
      const shown = withoutLiteral(line)
      if (headersAt === undefined) return shown
      const from = begins?.[0].length ?? 0
      return shown.slice(0, from) + withoutHeaders(shown.slice(from))
    })
    .join('\n')
}

function withoutLiteral(line: string): string {
  return line
    .replace(secretMember, (whole, name: string, value: string) => (isReference(value) ? whole : `${name}[secret]`))
    .replace(passwordInUrl, (whole, before: string, password: string) =>
      isReference(password) ? whole : `${before}[secret]@`,
    )
    .replace(keyInUrl, (whole, before: string, value: string) => (isReference(value) ? whole : `${before}[secret]`))
}

/** Hides the values in a line of headers; a line without a name continues the value before it. */
function withoutHeaders(line: string): string {
  if (!/[\w"']\s*:/.test(line)) return /^[\s{}\],#]*$/.test(line) ? line : line.replace(/\S.*$/, '[secret]')
  return line.replace(headerMember, (whole, name: string, colon: string, value: string) => {
    return isReference(value.trim()) || isPlainHeader(name.replace(/["']/g, '')) ? whole : `${name}${colon}[secret]`
  })
}

function isReference(value: string): boolean {
  return /^["']?(?:\$\{\w+(?::-)?\})*["']?$/.test(value)
}

const secretMember =
  /((?:\b|_)(?:secret|access_key|secret_key|session_token|client_secret|credentials|bearer|password)["']?\s*:\s*)("[^"]*"|'[^']*'|(?:\$\{[^}]*\}|[^\s,}#])+)/gi
const passwordInUrl = /(\/\/[^\s/:@"']*:)((?:\$\{[^}]*\}|[^\s/@"'])+)@/g
const keyInUrl = /([?&][\w-]*(?:key|token|secret|password|signature|sig)[\w-]*=)((?:\$\{[^}]*\}|[^\s&"'#,}])+)/gi
const headerMember = /(["']?[\w-]+["']?)(\s*:\s+)("(?:[^"\\]|\\.)*"|'[^']*'|(?:\$\{[^}]*\}|[^,}#])+)/g
