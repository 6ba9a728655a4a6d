import type { SecretScanner } from '../lib/secrets.ts'
import { findCards } from './cards.ts'
import { findEmails } from './emails.ts'
import { findIbans } from './ibans.ts'
import { keyFinder } from './keys.ts'
import { type OwnPattern, patternFinder } from './own-patterns.ts'
import { findPhones } from './phones.ts'
import { type Span, withoutOverlaps } from './spans.ts'

/** The kinds that are known without patterns; of two in one place the first is meant. */
export const kinds = ['key', 'email', 'iban', 'card', 'phone'] as const
export type Kind = (typeof kinds)[number]

/** Finds personal data in a text: spans that do not overlap, in their order. */
export type Find = (text: string) => readonly Span[]

const finders: { readonly [kind in Exclude<Kind, 'key'>]: (text: string) => Span[] } = {
  email: findEmails,
  iban: findIbans,
  card: findCards,
  phone: findPhones,
}

/**
 * Finds data of these kinds; patterns of the operator's own go before them, and a scanner knows further keys. Throws an Error for a
 * pattern that may take long.
 */
export function finder(wanted: readonly Kind[], patterns: readonly OwnPattern[] = [], scan?: SecretScanner): Find {
  const chosen = [
    ...patterns.map(patternFinder),
    ...kinds.filter((kind) => wanted.includes(kind)).map((kind) => (kind === 'key' ? keyFinder(scan) : finders[kind])),
  ]
  return (text) => withoutOverlaps(chosen.flatMap((find) => find(text)))
}
