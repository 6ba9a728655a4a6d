import type { Citation } from './parts.ts'

/** A citation that quotes the reply without a position gets the position of the quoted text. */
export function locate(citation: Citation, text: string): Citation {
  const { cited_text, start } = citation
  const found = cited_text && start === undefined ? text.indexOf(cited_text) : -1
  if (!cited_text || found < 0) return citation
  const begin = [...text.slice(0, found)].length
  return { ...citation, start: begin, end: begin + [...cited_text].length }
}
