import { boundedPattern, matchesIn } from '../lib/bounded-pattern.ts'
import { denier } from '../lib/denied.ts'
import type { SecretScanner } from '../lib/secrets.ts'
import { finder, type Kind } from '../mask-pii/find.ts'

/** Effect on an answer in which a rule finds something. */
export type Action = 'refuse' | 'mask'

/** Words or a pattern that answers must not have. */
export type DenyRule = { words?: string[]; pattern?: string; action: Action; message?: string }

/** Kinds of personal data. */
export const piiKinds = ['email', 'phone', 'card', 'iban'] as const satisfies readonly Kind[]

export type RuleOptions = {
  deny: readonly DenyRule[]
  pii: Action | 'pass'
  pii_kinds: readonly (typeof piiKinds)[number][]
  secrets: Action | 'pass'
}

/** A range of a text, and the name of the rule that found it. */
export type Found = { by: string; start: number; end: number; message?: string }

/** Finds in a text what has to be masked: ranges in their order, without overlaps. */
export type FindMasked = (text: string) => readonly Found[]

/** Returns the first rule by which a text is refused; `before` is the end of what the client has of it. */
export type FindRefused = (text: string, before: string) => Omit<Found, 'start' | 'end'> | undefined

/** Builds the rules. A search is undefined if no rule has its action. Throws an Error for a pattern that may take long. */
export function rulesOf(options: RuleOptions, scan?: SecretScanner): { masked?: FindMasked; refused?: FindRefused } {
  const masked = maskedBy(options, scan)
  const refused = refusedBy(options, scan)
  return { ...(masked && { masked }), ...(refused && { refused }) }
}

function maskedBy(options: RuleOptions, scan?: SecretScanner): FindMasked | undefined {
  const patterns = options.deny.flatMap((rule, index) =>
    rule.action === 'mask' ? sourcesOf(rule).map((source) => boundedPattern(`deny[${index}]`, source, 'giu')) : [],
  )
  const known = kindsWith('mask', options)
  const find = known.length > 0 ? finder(known, [], scan) : undefined
  if (!find && patterns.length === 0) return undefined
  return (text) => {
    const found: Found[] = find ? find(text).map(({ kind, start, end }) => ({ by: nameOf(kind), start, end })) : []
    for (const pattern of patterns) {
      for (const range of matchesIn(text, pattern)) found.push({ by: 'blocked', ...range })
    }
    return withoutOverlaps(found)
  }
}

function refusedBy(options: RuleOptions, scan?: SecretScanner): FindRefused | undefined {
  const deny = options.deny.flatMap((rule, index) => {
    if (rule.action !== 'refuse') return []
    const { message } = rule
    return sourcesOf(rule).map((pattern) => ({ pattern, index, ...(message !== undefined && { message }) }))
  })
  const denied = deny.length > 0 ? denier(deny, [], []) : undefined
  const known = kindsWith('refuse', options)
  const find = known.length > 0 ? finder(known, [], scan) : undefined
  if (!denied && !find) return undefined
  return (text, earlier) => {
    // Where the end of a long text begins within a word, that is no word.
    const before = earlier.length < maxBefore ? earlier : earlier.slice(earlier.search(/\s/) + 1)
    const whole = before + text
    const match = denied?.(whole)
    const rule = match && deny[match.index]
    if (rule) return { by: `deny[${rule.index}]`, ...(rule.message !== undefined && { message: rule.message }) }
    // What the client has already was looked at when it was sent.
    const found = find?.(whole).find(({ end }) => end > before.length)
    return found && { by: nameOf(found.kind) }
  }
}

function kindsWith(action: Action, { pii, pii_kinds, secrets }: RuleOptions): Kind[] {
  return [...(secrets === action ? (['key'] as const) : []), ...(pii === action ? pii_kinds : [])]
}

function nameOf(kind: string): string {
  return kind === 'key' ? 'secret' : kind
}

/** Returns the sources of the patterns of a rule: words stand alone. */
function sourcesOf({ words = [], pattern }: DenyRule): string[] {
  const escaped = words.map((word) => {
    const text = word.trim().replace(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
    return String.raw`(?<![\p{L}\p{N}])${text.replace(/\s+/g, String.raw`\s`)}(?![\p{L}\p{N}])`
  })
  return pattern === undefined ? escaped : [...escaped, pattern]
}

function withoutOverlaps(found: Found[]): Found[] {
  const kept: Found[] = []
  for (const one of found.sort((one, other) => one.start - other.start || other.end - one.end)) {
    const last = kept.at(-1)
    if (!last || one.start >= last.end) kept.push(one)
    else last.end = Math.max(last.end, one.end)
  }
  return kept
}

/** Characters that a plugin gets of what has been sent, at most. */
const maxBefore = 1_000
