import type { Span } from './spans.ts'

const local = /[\p{L}\p{N}._%+'&=~!#-]/u
/** `from=ann@example.com` */
const assignment = /^[\p{L}_-]{1,24}=/u
const quoted = /"[^"@\n]{1,62}"$/
const label = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?`
const domain = new RegExp(String.raw`(?:${label}\.){1,8}(?:xn--[a-z0-9-]{1,59}|\p{L}{2,24})(?![\p{L}\p{N}])`, 'uy')

/** Finds e-mail addresses: for each `@` the text around it. */
export function findEmails(text: string): Span[] {
  const found: Span[] = []
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    domain.lastIndex = at + 1
    const after = domain.exec(text)?.[0]
    const before = after && !isFileName(after) ? localPart(text, at) : ''
    if (!after || !before) continue
    const end = at + 1 + after.length
    // An address of a repository.
    if (before === 'git' && text[end] === ':') continue
    found.push({ kind: 'email', start: at - before.length, end })
  }
  return found
}

function localPart(text: string, end: number): string {
  if (text[end - 1] === '"') return quoted.exec(text.slice(Math.max(0, end - 64), end))?.[0] ?? ''
  let start = end
  while (start > 0 && end - start < 64 && local.test(text.charAt(start - 1))) start--
  const part = text
    .slice(start, end)
    .replace(assignment, '')
    .replace(/^['!#&=.]+/, '')
  return part.endsWith('.') ? '' : part
}

/** Checks whether it is the name of an image for screens of several densities: `logo@2x.png`. */
function isFileName(domain: string): boolean {
  return /^\dx\.\p{L}+$/u.test(domain)
}
