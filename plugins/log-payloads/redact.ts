import { boundedPattern, withoutMatches } from '../lib/bounded-pattern.ts'
import { findAssignedSecrets, findKnownSecrets, mergedRanges, namesSecret, type SecretScanner } from '../lib/secrets.ts'

/** Pattern of the operator that is redacted as well: a regular expression whose repetitions have an end. */
export type OwnPattern = { name: string; pattern: string; ignore_case?: boolean }

/**
 * Makes copies of JSON without secrets, without the matches of the patterns, and without texts beyond so many characters. Throws for a
 * pattern that may take long.
 */
export function redactor(
  patterns: readonly OwnPattern[],
  mostCharacters = Number.POSITIVE_INFINITY,
  scan?: SecretScanner,
) {
  const own = patterns.map(({ name, pattern, ignore_case }) => ({
    find: boundedPattern(`the pattern '${name}'`, pattern, ignore_case ? 'giu' : 'gu'),
    shown: `[${name}]`,
  }))
  const textOf = (text: string) => {
    const left = withoutSecrets(text, scan)
    return own.reduce((changed, { find, shown }) => withoutMatches(changed, find, shown), left)
  }
  let left = 0
  const bounded = (text: string) => {
    left -= text.length
    return left < 0 ? `[${text.length} characters]` : textOf(text)
  }
  const copyOf = (value: unknown, name = '', isFile = false): unknown => {
    if (typeof value === 'string') return namesSecret(name) ? '[secret]' : mediaOr(value, isFile, bounded)
    if (typeof value === 'number') return namesSecret(name) ? '[secret]' : value
    if (Array.isArray(value)) return value.map((item) => copyOf(item, name))
    if (typeof value !== 'object' || value === null) return value
    const hasType = 'media_type' in value || 'mime_type' in value
    // Names of members may hold what texts may.
    return Object.fromEntries(
      Object.entries(value).map(([member, one]) => {
        const isData = member === 'data' && (hasType || (typeof one === 'string' && one.length > maxData))
        return [textOf(member), copyOf(one, member, isData)]
      }),
    )
  }
  return (value: object): object => {
    left = mostCharacters
    return copyOf(value) as object
  }
}

/** Returns a text with a word in the place of each secret. */
function withoutSecrets(text: string, scan: SecretScanner | undefined): string {
  let shown = ''
  let from = 0
  for (const { start, end } of mergedRanges([...findKnownSecrets(text, scan), ...findAssignedSecrets(text)])) {
    shown += `${text.slice(from, start)}[secret]`
    from = end
  }
  return from === 0 ? text : shown + text.slice(from)
}

/** Replaces images, sound and files by their size. */
function mediaOr(text: string, isFile: boolean, textOf: (text: string) => string): string {
  if (isFile) return `[${text.length} characters of data]`
  const [head = ''] = text.startsWith('data:') ? text.split(',', 1) : []
  if (head.endsWith(';base64')) return `${head.slice(0, 100)},[${text.length - head.length - 1} characters of data]`
  return textOf(text)
}

/** Characters of data without a type that may be a word. */
const maxData = 1_000
