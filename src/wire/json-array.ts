import { type Frame, FrameError, type FrameReader, failureOf, frameLimit, tooLong } from './frame.ts'

/**
 * Reads the objects of a JSON array as they come, unparsed. A document that is one object is one frame. Fails for anything else, when the
 * bytes end inside an object, and when one is longer than the limit. The content of an object is not checked: that is left to its parser.
 */
export function readJsonArray(longest = frameLimit): FrameReader {
  const decoder = new TextDecoder()
  const items = new Items(longest)
  let failure: FrameError | undefined
  const framesOf = (text: string): Frame[] => {
    const frames: Frame[] = []
    failure = failureOf(() => items.take(text, frames))
    return frames
  }
  return {
    take: (bytes) => framesOf(decoder.decode(bytes, { stream: true })),
    end() {
      const frames = framesOf(decoder.decode())
      failure ??= failureOf(() => items.end())
      return frames
    },
    failure: () => failure,
  }
}

/** The token that is expected between items. */
type Expected = 'array' | 'item' | 'comma' | 'nothing'

/** Counts brackets to find the end of each item, and skips strings. */
class Items {
  readonly #maxLength: number
  #expected: Expected = 'array'
  #inArray = false
  #depth = 0
  #inString = false
  #escaped = false
  #pieces: string[] = []
  #length = 0

  constructor(longest: number) {
    this.#maxLength = longest
  }

  /** Adds the items that this piece of text completes to a batch. Throws FrameError after those before the error. */
  take(text: string, batch: Frame[]): void {
    let start = 0
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#depth === 0) {
        if (this.#between(code)) start = at
      } else if (this.#inString) {
        at = this.#skipString(text, at)
      } else if (code === quote) {
        this.#inString = true
      } else if (code === openBrace || code === openBracket) {
        this.#depth++
      } else if ((code === closeBrace || code === closeBracket) && --this.#depth === 0) {
        batch.push({ data: this.#finish(text.slice(start, at + 1)) })
      }
    }
    if (this.#depth > 0) this.#buffer(text.slice(start))
  }

  /** Throws when an item is incomplete. An array that is not closed is accepted: its items are complete. */
  end(): void {
    if (this.#depth > 0) throw new FrameError('cut', 'the stream ended in the middle of an item')
  }

  /** Reads a character outside of items; returns whether an item begins with it. */
  #between(code: number): boolean {
    if (code === space || code === newline || code === carriageReturn || code === tab || code === byteOrderMark) {
      return false
    }
    if (this.#expected === 'array' && code === openBracket) {
      this.#inArray = true
      this.#expected = 'item'
    } else if ((this.#expected === 'array' || this.#expected === 'item') && code === openBrace) {
      this.#depth = 1
      return true
    } else if (this.#expected === 'comma' && code === comma) {
      this.#expected = 'item'
    } else if ((this.#expected === 'comma' || this.#expected === 'item') && code === closeBracket) {
      this.#expected = 'nothing'
    } else {
      const found = JSON.stringify(String.fromCharCode(code))
      throw new FrameError('unreadable', `found ${found} where an array of objects ${expectations[this.#expected]}`)
    }
    return false
  }

  /** The position of the end of the string around `at`, or the end of the text. */
  #skipString(text: string, at: number): number {
    for (let here = at; here < text.length; here++) {
      if (this.#escaped) {
        this.#escaped = false
        continue
      }
      const code = text.charCodeAt(here)
      if (code === backslash) this.#escaped = true
      else if (code === quote) {
        this.#inString = false
        return here
      }
    }
    return text.length
  }

  #buffer(piece: string): void {
    this.#pieces.push(piece)
    this.#length += piece.length
    if (this.#length > this.#maxLength) throw tooLong('an item', this.#maxLength)
  }

  #finish(piece: string): string {
    if (this.#length + piece.length > this.#maxLength) throw tooLong('an item', this.#maxLength)
    const item = this.#pieces.length > 0 ? [...this.#pieces, piece].join('') : piece
    this.#pieces = []
    this.#length = 0
    this.#expected = this.#inArray ? 'comma' : 'nothing'
    return item
  }
}

const expectations: { [Is in Expected]: string } = {
  array: 'must begin',
  item: 'must have its next object',
  comma: 'must go on or end',
  nothing: 'has ended',
}

const [tab, newline, carriageReturn, space, quote, comma] = [9, 10, 13, 32, 34, 44]
const [openBracket, backslash, closeBracket, openBrace, closeBrace] = [91, 92, 93, 123, 125]
const byteOrderMark = 0xfeff
