import { boundedPattern, matchesIn, type Range, withSource } from './bounded-pattern.ts'
import { bare, plain, skeleton } from './plain-text.ts'

/** Pattern that is refused, and the message that the client gets instead of the default one. */
export type Denied = { pattern: string; message?: string }

/** Pattern by which a text was refused, counted from 0; -1 for a phrase of the plugin's own. */
export type Match = { index: number; message?: string }

/** A pattern as it is, and by the shapes of its letters. */
type Compiled = { exact: RegExp; bare: RegExp }

/** Returns a function that finds denied texts which are not within allowed ones. Throws an Error for patterns that may take long. */
export function denier(denied: readonly Denied[], allowed: readonly string[], phrases: readonly string[]) {
  const rules = [
    ...denied.map(({ pattern, message }, index) => ({
      compiled: compiledBounded(`deny[${index}]`, pattern),
      match: { index, ...(message !== undefined && { message }) },
    })),
    ...phrases.map((phrase) => ({ compiled: compiled(new RegExp(phrase, 'giu')), match: { index: -1 } })),
  ]
  const exceptions = allowed.map((pattern, index) => compiledBounded(`allow[${index}]`, pattern))
  const found = (text: string, form: keyof Compiled): Match | undefined => {
    let excepted: readonly Range[] | undefined
    for (const { compiled, match } of rules) {
      for (const place of matchesIn(text, compiled[form])) {
        excepted ??= exceptions.flatMap((exception) => [...matchesIn(text, exception[form])])
        if (!excepted.some(({ start, end }) => start <= place.start && place.end <= end)) return match
      }
    }
    return undefined
  }
  return (text: string): Match | undefined => found(plain(text), 'exact') ?? found(skeleton(text), 'bare')
}

function compiledBounded(name: string, pattern: string): Compiled {
  return compiled(boundedPattern(name, pattern, 'giu'))
}

/** Adds the form that is compared with the shapes of letters; where that is no pattern any more, the pattern itself. */
function compiled(exact: RegExp): Compiled {
  const source = bare(exact.source)
  if (source === exact.source) return { exact, bare: exact }
  try {
    return { exact, bare: withSource(exact, source) }
  } catch {
    return { exact, bare: exact }
  }
}
