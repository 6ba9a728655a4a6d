/** A JSON value. */
export type Json = string | number | boolean | null | Json[] | JsonObject

/** A JSON object whose members may also be missing. */
export type JsonObject = { [name: string]: Json | undefined }

/** Checks whether a value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** The value of a JSON text; undefined when the text is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Limits on the contents of a JSON text: values of any kind, members and items alike, levels of lists and objects, and members of one
 * object, whose names cost more than values.
 */
export type JsonBounds = { values: number; depth: number; members: number }

/** Maximum number of members of an object, more than any real one has; a list has no such bound. */
export const maxMembers = 10_000

/** Maximum depth: real documents stay below 50 levels; readers and writers recurse once per level. */
export const deepest = 200

/**
 * Returns the bound that a JSON text exceeds, found without parsing it: millions of small values cost many times their text in time and
 * memory. For a text that is not JSON the result is arbitrary.
 */
export function exceeded(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  // Each value takes two characters: most texts are too short for anything but depth.
  const isShort = text.length < 2 * Math.min(bounds.values, bounds.members)
  return isShort && bracketsIn(text, bounds.depth) <= bounds.depth ? undefined : scan(text, bounds).bound
}

/** Returns the bound that several JSON texts exceed; their values count together. */
export function exceededTogether(texts: readonly string[], bounds: JsonBounds): keyof JsonBounds | undefined {
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  const isShort = length < 2 * bounds.values
  let { values } = bounds
  for (const text of texts) {
    const bound = exceeded(text, { ...bounds, values })
    if (bound) return bound
    if (!isShort) values -= valuesIn(text)
  }
  return undefined
}

/** Counts the brackets that a text opens, those in strings included; it stops at one more than `most`. */
function bracketsIn(text: string, most: number): number {
  let count = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at >= 0 && count <= most; at = text.indexOf(bracket, at + 1)) count++
  }
  return count
}

/** Counts the values in a JSON text. */
export function valuesIn(text: string): number {
  return scan(text, { values: text.length, depth: text.length, members: text.length }).values
}

function scan(
  text: string,
  { values: most, depth: deep, members: wide }: JsonBounds,
): { values: number; bound?: keyof JsonBounds } {
  let values = 1
  let depth = 0
  // Of the objects and lists around the place: how many members may still follow; a list takes any number.
  const left: number[] = []
  // Right after a bracket: the next thing is a first value, or the closing bracket.
  let opened = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    // Of numbers, words and colons only the first character matters, and only after a bracket.
    if (code <= space || (!opened && code > comma && code < openBracket)) continue
    const closes = code === closeBrace || code === closeBracket
    if (code === comma || (opened && !closes)) {
      if (++values > most) return { values, bound: 'values' }
      if (--(left[depth] as number) < 0) return { values, bound: 'members' }
    }
    opened = code === openBrace || code === openBracket
    if (code === quote) at = endOfString(text, at + 1)
    else if (opened) {
      if (++depth > deep) return { values, bound: 'depth' }
      left[depth] = code === openBrace ? wide : most
    } else if (closes) {
      // Not JSON: that is left to the parser.
      if (--depth < 0) return { values }
    }
  }
  return { values }
}

/**
 * The position of the quote that ends a string. Names are short, and read character by character; in anything else the quotes are
 * searched for, whatever escapes are between them: each is examined once, and so is each backslash before one.
 */
function endOfString(text: string, from: number): number {
  const short = Math.min(from + maxShortLength, text.length)
  let at = from
  for (; at < short; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at
    if (code === backslash) break
  }
  for (let end = text.indexOf('"', at); end >= 0; end = text.indexOf('"', at)) {
    let escapes = end
    while (escapes > at && text.charCodeAt(escapes - 1) === backslash) escapes--
    if ((end - escapes) % 2 === 0) return end
    at = end + 1
  }
  return text.length
}

/** Characters after which searching for the quote is faster. */
const maxShortLength = 24

const [space, quote, comma] = [32, 34, 44]

const [openBracket, backslash, closeBracket, openBrace, closeBrace] = [91, 92, 93, 123, 125]
