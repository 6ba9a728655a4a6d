import type { Json } from './json.ts'

/** Steps of long work: called between them, it lets others run. */
type BetweenSteps = () => Promise<void>

/** Returns a JSON text without lone surrogates, which a text cut inside a character leaves: strict parsers refuse them. */
export function jsonText(value: Json): string {
  const json = JSON.stringify(value)
  return json.includes('\\ud') ? withoutLoneEscapes(JSON.stringify(value, wellFormedText)) : json
}

/** Replaces lone surrogates in texts, which takes a moment however many there are; those in names of members stay. */
export function wellFormedText(_: string, item: unknown): unknown {
  return typeof item === 'string' ? item.toWellFormed() : item
}

/** Replaces the escapes of lone surrogates. */
export function withoutLoneEscapes(json: string): string {
  return json.includes('\\ud') ? json.replace(loneSurrogate, '\\ufffd') : json
}

/** An escape after an even number of backslashes: after an odd one it is the letters `ud`. They are counted last, as few places need it. */
const loneSurrogate = /\\ud[89a-f][\da-f]{2}(?<=(?<!\\)(?:\\\\)*\\u.{4})/g

/** Checks whether the JSON text of a value has more than about so many characters, by looking at no more than that many. */
export function isLongerThan(value: Json | undefined, characters: number): boolean {
  return charactersLeft(value, characters) < 0
}

/** Returns about how many characters the JSON text of a value has, without making it: long strings cost nothing. */
export function jsonLength(value: Json | undefined): number {
  return Number.MAX_SAFE_INTEGER - charactersLeft(value, Number.MAX_SAFE_INTEGER)
}

/** Subtracts the length of the JSON text of a value; stops below zero. */
function charactersLeft(value: Json | undefined, left: number): number {
  if (typeof value === 'string') return left - value.length - 2
  if (typeof value !== 'object' || value === null) return left - charactersPerScalar
  let rest = left - 2
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && rest >= 0; at++) rest = charactersLeft(value[at], rest - 1)
    return rest
  }
  for (const name in value) {
    rest = charactersLeft(value[name], rest - name.length - 4)
    if (rest < 0) return rest
  }
  return rest
}

const charactersPerScalar = 4

/**
 * Returns the pieces of the JSON text that `jsonText` returns, made in steps: a text of many megabytes, escaped in one, would hold everything
 * else up.
 */
export async function jsonPieces(value: Json, betweenSteps: BetweenSteps, perStep = maxInStep): Promise<string[]> {
  const writer = new PieceWriter(betweenSteps, perStep)
  await writer.write(value)
  return writer.pieces
}

/** Returns the JSON text of a value; that of a long one is made in steps. */
export function jsonTextInSteps(value: Json, most: number, betweenSteps: BetweenSteps): string | Promise<string> {
  if (!isLongerThan(value, most)) return JSON.stringify(value)
  return jsonPieces(value, betweenSteps).then((pieces) => pieces.join(''))
}

/** Characters that are written in one step: a millisecond's work, whatever must be escaped. */
const maxInStep = 64 * 1024

class PieceWriter {
  readonly pieces: string[] = []
  readonly #betweenSteps: BetweenSteps
  readonly #perStep: number

  constructor(betweenSteps: BetweenSteps, perStep: number) {
    this.#betweenSteps = betweenSteps
    this.#perStep = perStep
  }

  async write(value: Json): Promise<void> {
    if (!isLongerThan(value, this.#perStep)) return await this.#add(jsonText(value))
    if (typeof value === 'string') await this.#writeText(value)
    else if (Array.isArray(value)) await this.#writeList(value)
    else if (typeof value === 'object' && value !== null) await this.#writeObject(value)
    else await this.#add(jsonText(value))
  }

  async #add(piece: string): Promise<void> {
    this.pieces.push(piece)
    await this.#betweenSteps()
  }

  async #writeText(text: string): Promise<void> {
    await this.#add('"')
    for (let at = 0; at < text.length; ) {
      // A pair of surrogates is one character.
      const isSplit = isHighSurrogate(text.charCodeAt(at + this.#perStep - 1))
      const end = at + this.#perStep - (isSplit ? 1 : 0)
      await this.#add(JSON.stringify(text.slice(at, end).toWellFormed()).slice(1, -1))
      at = end
    }
    await this.#add('"')
  }

  async #writeList(list: readonly Json[]): Promise<void> {
    let separator = '['
    let small: Json[] = []
    let left = this.#perStep
    const flush = async () => {
      if (small.length === 0) return
      const text = jsonText(small)
      small = []
      left = this.#perStep
      await this.#add(separator + text.slice(1, -1))
      separator = ','
    }
    for (const item of list) {
      if (isLongerThan(item, this.#perStep)) {
        await flush()
        await this.#add(separator)
        separator = ','
        await this.write(item)
        continue
      }
      small.push(item)
      left = charactersLeft(item, left)
      if (left < 0) await flush()
    }
    await flush()
    await this.#add(list.length === 0 ? '[]' : ']')
  }

  async #writeObject(object: { readonly [name: string]: Json | undefined }): Promise<void> {
    let separator = '{'
    let small = noMembers()
    let left = this.#perStep
    const flush = async () => {
      const text = jsonText(small)
      small = noMembers()
      left = this.#perStep
      if (text === '{}') return
      await this.#add(separator + text.slice(1, -1))
      separator = ','
    }
    for (const name of Object.keys(object)) {
      const member = object[name]
      if (member !== undefined && isLongerThan(member, this.#perStep)) {
        await flush()
        await this.#add(`${separator}${jsonText(name)}:`)
        separator = ','
        await this.write(member)
        continue
      }
      small[name] = member
      left = charactersLeft(member, left - name.length)
      if (left < 0) await flush()
    }
    await flush()
    await this.#add(separator === '{' ? '{}' : '}')
  }
}

/** Returns an object in which `__proto__` is a name like any other. */
function noMembers(): { [name: string]: Json | undefined } {
  return Object.create(null)
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
