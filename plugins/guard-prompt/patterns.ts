import { boundedPattern } from '../lib/bounded-pattern.ts'

/** Pattern that is refused, and the message that the client gets instead of the default one. */
export type Denied = { pattern: string; message?: string }

/** Pattern by which a text was refused, counted from 0; -1 for a phrase of the plugin's own. */
export type Match = { index: number; message?: string }

/** Returns a function that finds denied texts which are not within allowed ones. Throws an Error for patterns that may take long. */
export function denier(denied: readonly Denied[], allowed: readonly string[], phrases: readonly string[]) {
  const rules = [
    ...denied.map(({ pattern, message }, index) => ({
      compiled: boundedPattern(`deny[${index}]`, pattern, 'giu'),
      match: { index, ...(message !== undefined && { message }) },
    })),
    ...phrases.map((phrase) => ({ compiled: new RegExp(phrase, 'giu'), match: { index: -1 } })),
  ]
  const exceptions = allowed.map((pattern, index) => boundedPattern(`allow[${index}]`, pattern, 'giu'))
  return (text: string): Match | undefined => {
    const seen = plain(text)
    let excepted: readonly Range[] | undefined
    for (const { compiled, match } of rules) {
      for (const found of rangesOf(compiled, seen)) {
        excepted ??= exceptions.flatMap((exception) => [...rangesOf(exception, seen)])
        if (!excepted.some(({ start, end }) => start <= found.start && found.end <= end)) return match
      }
    }
    return undefined
  }
}

type Range = { start: number; end: number }

function* rangesOf(pattern: RegExp, text: string): Generator<Range> {
  for (const { index, 0: match } of text.matchAll(pattern)) {
    if (match) yield { start: index, end: index + match.length }
  }
}

/** Returns a text without what hides words: compatible forms of letters, signs without width, more than one space. */
export function plain(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\p{Cf}\p{Mn}]/gu, '')
    .replace(/\s+/g, ' ')
}
