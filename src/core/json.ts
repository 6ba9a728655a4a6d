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

/** Does the same as `exceeded` in steps: between them others run. */
export async function exceededInSteps(
  text: string,
  bounds: JsonBounds,
  betweenSteps: () => Promise<void>,
  perStep = charactersInStep,
): Promise<keyof JsonBounds | undefined> {
  return (await scanInSteps(text, bounds, { betweenSteps, perStep })).bound
}

/** Counts the values in a JSON text. */
export function valuesIn(text: string): number {
  return scan(text, unbounded(text)).values
}

/** Counts the values in a JSON text, in steps: between them others run. */
export async function valuesInSteps(text: string, betweenSteps: () => Promise<void>): Promise<number> {
  return (await scanInSteps(text, unbounded(text), { betweenSteps, perStep: charactersInStep })).values
}

function unbounded({ length }: string): JsonBounds {
  return { values: length, depth: length, members: length }
}

type Found = { values: number; bound?: keyof JsonBounds }

function scan(text: string, bounds: JsonBounds): Found {
  return new Scan(text, bounds).upTo(text.length) as Found
}

async function scanInSteps(
  text: string,
  bounds: JsonBounds,
  { betweenSteps, perStep }: { betweenSteps: () => Promise<void>; perStep: number },
): Promise<Found> {
  const scanning = new Scan(text, bounds)
  for (let end = perStep; ; end += perStep) {
    const found = scanning.upTo(end)
    if (found) return found
    await betweenSteps()
  }
}

const charactersInStep = 512 * 1024

/** A look through a JSON text, which goes on where it stopped. */
class Scan {
  readonly #text: string
  readonly #bounds: JsonBounds
  #at = 0
  #values = 1
  #depth = 0
  /** Numbers of members that may still follow in the objects and lists around the place; a list takes any number. */
  readonly #left: number[] = []
  /** Right after a bracket: the next thing is a first value, or the closing bracket. */
  #opened = false
  #isInString = false

  constructor(text: string, bounds: JsonBounds) {
    this.#text = text
    this.#bounds = bounds
  }

  /** Looks on to a place, or a little further; returns what has been found once that is the end of the text, or a bound is exceeded. */
  upTo(place: number): Found | undefined {
    const text = this.#text
    const left = this.#left
    const { values: most, depth: deep, members: wide } = this.#bounds
    const end = Math.min(place, text.length)
    let [at, values, depth, opened] = [this.#at, this.#values, this.#depth, this.#opened]
    if (this.#isInString) {
      at = endOfString(text, at, end)
      if (at < 0) return this.#pauseInString(~at)
      at++
    }
    for (; at < end; at++) {
      const code = text.charCodeAt(at)
      // Of numbers, words and colons only the first character matters, and only after a bracket.
      if (code <= space || (!opened && code > comma && code < openBracket)) continue
      const closes = code === closeBrace || code === closeBracket
      if (code === comma || (opened && !closes)) {
        if (++values > most) return { values, bound: 'values' }
        if (--(left[depth] as number) < 0) return { values, bound: 'members' }
      }
      opened = code === openBrace || code === openBracket
      if (code === quote) {
        at = endOfString(text, at + 1, end)
        if (at >= 0) continue
        this.#values = values
        this.#depth = depth
        this.#opened = opened
        return this.#pauseInString(~at)
      }
      if (opened) {
        if (++depth > deep) return { values, bound: 'depth' }
        left[depth] = code === openBrace ? wide : most
      } else if (closes) {
        // Not JSON: that is left to the parser.
        if (--depth < 0) return { values }
      }
    }
    if (at >= text.length) return { values }
    this.#isInString = false
    this.#at = at
    this.#values = values
    this.#depth = depth
    this.#opened = opened
    return undefined
  }

  #pauseInString(at: number): undefined {
    this.#isInString = true
    this.#at = at
    return undefined
  }
}

/**
 * The position of the quote that ends a string, or the complement of the place to go on from, at `limit` or a little after it. Names are
 * short, and read character by character; in anything else the quotes are searched for, whatever escapes are between them. Where one is
 * escaped, so may the next ones be: what follows is read by characters, and so are long runs of backslashes.
 */
function endOfString(text: string, from: number, limit: number): number {
  let at = from
  let end = -1
  for (let length = maxShortLength; ; ) {
    for (const near = Math.min(at + length, text.length); at < near; at++) {
      const code = text.charCodeAt(at)
      if (code === quote) return at
      if (code === backslash) at++
    }
    if (at >= limit && limit < text.length) return ~at
    length = maxNearLength
    if (end < at) end = text.indexOf('"', at)
    if (end < 0) return text.length
    const first = Math.max(at, end - maxNearLength)
    let escapes = end
    while (escapes > first && text.charCodeAt(escapes - 1) === backslash) escapes--
    if (escapes === first && first > at) length = maxRunLength
    else if ((end - escapes) % 2 === 0) return end
    else at = end + 1
  }
}

/** Characters that are read one by one: of any string, after an escaped quote, and before a quote after many backslashes. */
const [maxShortLength, maxNearLength, maxRunLength] = [24, 64, 64 * 1_024]

const [space, quote, comma] = [32, 34, 44]

const [openBracket, backslash, closeBracket, openBrace, closeBrace] = [91, 92, 93, 123, 125]

/** Checks whether an object anywhere in a JSON value has a member of this name. */
export function hasMember(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => hasMember(item, name))
  if (!isObject(value)) return false
  if (Object.hasOwn(value, name)) return true
  for (const other in value) if (hasMember(value[other], name)) return true
  return false
}
