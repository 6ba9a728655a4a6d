import { boundedPattern, matchesIn } from '../lib/bounded-pattern.ts'
import type { Span } from './spans.ts'

/** A pattern of the operator's own: `name` is that of its placeholders. */
export type OwnPattern = { name: string; pattern: string; ignore_case?: boolean }

/** Finds what matches. Throws an Error where a match may be of any length, or there are too many ways to try one. */
export function patternFinder({ name, pattern, ignore_case }: OwnPattern): (text: string) => Span[] {
  const compiled = boundedPattern(`the pattern ${name}`, pattern, ignore_case ? 'giu' : 'gu')
  return (text) => Array.from(matchesIn(text, compiled), (range) => ({ kind: name, ...range }))
}
