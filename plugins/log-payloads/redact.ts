import { boundedPattern } from '../lib/bounded-pattern.ts'

/** Pattern of the operator that is redacted as well: a regular expression whose repetitions have an end. */
export type OwnPattern = { name: string; pattern: string; ignore_case?: boolean }

/**
 * Makes copies of JSON without secrets, without the matches of the patterns, and without texts beyond so many characters. Throws for a
 * pattern that may take long.
 */
export function redactor(patterns: readonly OwnPattern[], mostCharacters = Number.POSITIVE_INFINITY) {
  const own = patterns.map(({ name, pattern, ignore_case }) => ({
    find: boundedPattern(`the pattern '${name}'`, pattern, ignore_case ? 'giu' : 'gu'),
    shown: `[${name}]`,
  }))
  const textOf = (text: string) => {
    const left = text.replace(secrets, (_, name = '') => `${name}[secret]`)
    return own.reduce((changed, { find, shown }) => changed.replace(find, () => shown), left)
  }
  let left = 0
  const bounded = (text: string) => {
    left -= text.length
    return left < 0 ? `[${text.length} characters]` : textOf(text)
  }
  const copyOf = (value: unknown, name = ''): unknown => {
    if (typeof value === 'string') return secretNames.test(name) ? '[secret]' : mediaOr(value, name, bounded)
    if (Array.isArray(value)) return value.map((item) => copyOf(item, name))
    if (typeof value !== 'object' || value === null) return value
    // Names of members may hold what texts may.
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [textOf(name), copyOf(member, name)]))
  }
  return (value: object): object => {
    left = mostCharacters
    return copyOf(value) as object
  }
}

/** Keys with known beginnings, tokens of the web, private keys, credentials of addresses, and values that a text sets as a secret. */
const secrets =
  /\b(?:sk|rk|pk|ir|gsk|xai|ghp|gho|ghs|github_pat|glpat|xox[abp])[-_][\w-]{16,256}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,60}|\beyJ[\w-]{8,2000}\.[\w-]{4,4000}\.[\w-]{0,1000}|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{1,8000}-----END [A-Z ]{0,30}PRIVATE KEY-----|(\b(?:api[_-]?key|access[_-]?token|secret|password|passwd|authorization|bearer)\b["']{0,2}\s{0,3}[:=]\s{0,3}["']?(?:Bearer\s{1,3})?|\bBearer\s{1,3}|:\/\/[^\s:@/]{1,64}:)[^\s"',;&@]{6,512}/gi

const secretNames =
  /^(?:api[_-]?key|access[_-]?token|authorization|password|passwd|secret|client[_-]?secret|private[_-]?key)$/i

/** Replaces images and sound by their size. */
function mediaOr(text: string, name: string, textOf: (text: string) => string): string {
  if (name === 'data' && text.length > longestData) return `[${text.length} characters of data]`
  const [head = ''] = text.startsWith('data:') ? text.split(',', 1) : []
  if (head.endsWith(';base64')) return `${head.slice(0, 100)},[${text.length - head.length - 1} characters of data]`
  return textOf(text)
}

const longestData = 1_000
