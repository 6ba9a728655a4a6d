import type { ProviderEvent } from '../core/events.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { ReadFrame } from '../manifest/run/translate.ts'
import type { Frame } from '../wire/frame.ts'

/** An event that is one piece of text: its name, its JSON before and after the text, and how it was read. */
export type TextPattern = ReadFrame & {
  name: string | undefined
  before: string
  after: string
  path: readonly string[]
}

/**
 * Reader of the events of a stream that repeat an earlier one but for their text: most are such, and need not be parsed and mapped again.
 * `path` is where the text stands in an event.
 */
export class TextPatterns {
  readonly #path: readonly string[]
  #pattern: TextPattern | undefined
  #triesLeft = maxTries

  constructor(path: readonly string[]) {
    this.#path = path
  }

  /** Returns the event of a frame that repeats the last pattern; undefined for any other frame. */
  read({ event: name, data }: Frame): RepeatedFrame | undefined {
    const pattern = this.#pattern
    if (!pattern || name !== pattern.name) return undefined
    const { before, after } = pattern
    const end = data.length - after.length
    // Equal slices are found faster than by startsWith.
    if (end <= before.length || data.slice(0, before.length) !== before || data.slice(end) !== after) return undefined
    const text = data.slice(before.length, end)
    if (!isPlain(text)) return undefined
    this.#triesLeft = maxTries
    return new RepeatedFrame(pattern, text)
  }

  /** Returns the pattern of a frame that is one piece of text; undefined for any other frame. */
  learn({ event: name, data }: Frame, read: ReadFrame): TextPattern | undefined {
    // Streams whose events have more than a text of their own are not tried for long.
    if (this.#triesLeft === 0) this.#pattern = undefined
    if (this.#triesLeft === 0 || !isText(read)) return undefined
    const [{ text }] = read.events
    const at = data.indexOf(`"${text}"`) + 1
    if (at === 0) return undefined
    this.#triesLeft--
    const [before, after] = [copied(data.slice(0, at)), copied(data.slice(at + text.length))]
    const other = `${text}!`
    // The same letters may stand elsewhere in the event, or begin in one string and end in the next.
    const isThere = textAt(parsed(before + other + after), this.#path) === other
    if (!isThere || textAt(read.payload, this.#path) !== text) return undefined
    this.#pattern = { ...read, name, before, after, path: this.#path }
    return this.#pattern
  }
}

/** A frame that differs in its text alone from the one that its pattern was learned from. */
export class RepeatedFrame {
  readonly pattern: TextPattern
  readonly events: readonly [ProviderEvent & { text: string }]

  constructor(pattern: TextPattern, text: string) {
    this.pattern = pattern
    this.events = [{ ...pattern.events[0], text }]
  }

  get payload(): JsonObject {
    const [{ text }] = this.events
    return withText(this.pattern.payload, this.pattern.path, text) as JsonObject
  }
}

type TextFrame = ReadFrame & { events: [ProviderEvent & { text: string }] }

function isText(read: ReadFrame): read is TextFrame {
  const [event, ...others] = read.events
  if (!event?.text || others.length > 0) return false
  return isPlain(event.text) && Object.keys(event).every(isRepeated)
}

/** Checks whether JSON writes a text unchanged. */
function isPlain(text: string): boolean {
  return !needsEscape.test(text)
}

const needsEscape = /["\\\p{Cc}\p{Cs}]/u

/** Returns a text of its own: a slice keeps the whole text that it was cut from, and is slower to compare. */
function copied(text: string): string {
  return Buffer.from(text).toString()
}

const maxTries = 4

/** The members of an event that is one piece of text: all but the text are the same when it is repeated. */
const repeatedMembers: ReadonlySet<string> = new Set<keyof ProviderEvent>(['id', 'model', 'created', 'at', 'text'])

function isRepeated(member: string): boolean {
  return repeatedMembers.has(member)
}

function parsed(json: string): Json | undefined {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function textAt(value: Json | undefined, path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((found, name) => (found as JsonObject | null | undefined)?.[name], value)
}

function withText(value: Json | undefined, [name, ...rest]: readonly string[], text: string): Json {
  if (name === undefined) return text
  const copy = (Array.isArray(value) ? [...value] : { ...(value as JsonObject) }) as JsonObject
  copy[name] = withText(copy[name], rest, text)
  return copy
}
