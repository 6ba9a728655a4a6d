import type { Citation } from './parts.ts'

/** The quotes of one reply, as far as the text that is searched for them stays within bounds. */
export class Quotes {
  #searched = 0

  /** A citation that quotes the reply without a position gets the position of the quoted text. */
  locate(citation: Citation, text: string): Citation {
    const { cited_text, start } = citation
    if (!cited_text || start !== undefined || this.#searched > maxSearched) return citation
    this.#searched += text.length
    const found = text.indexOf(cited_text)
    if (found < 0) return citation
    const begin = codePoints(text, found)
    return { ...citation, start: begin, end: begin + codePoints(cited_text) }
  }
}

/** Upper bound for the quotes of a long reply, enough for hundreds of them. Characters. */
const maxSearched = 64 * 1024 * 1024

/** The Unicode code points of a text, or of its beginning. */
export function codePoints(text: string, end = text.length): number {
  let count = end
  for (let at = 1; at < end; at++) {
    if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) count--
  }
  return count
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000
}
