import type { Span } from './spans.ts'

/** Runs of digits that may have single spaces, hyphens or dots between them. */
const run = /(?<![\p{L}\p{N}_.])(?<!\d[ -])\d(?:[ \u00a0.-]?\d){12,22}(?![\p{L}\p{N}_])(?!\.\d)/gu

/** Finds numbers of payment cards: of a known issuer, as long as it makes them, grouped as on cards, with the right check digit. */
export function findCards(text: string): Span[] {
  const found: Span[] = []
  for (const { index, 0: run_ } of text.matchAll(run)) {
    const digits = run_.replace(/\D/g, '')
    if (isIssued(digits) && isGrouped(run_) && passesLuhn(digits))
      found.push({ kind: 'card', start: index, end: index + run_.length })
  }
  return found
}

const issuers: readonly [RegExp, readonly number[]][] = [
  [/^4/, [13, 16, 19]],
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]],
  [/^3[47]/, [15]],
  [/^(?:6011|64[4-9]|65)/, [16, 19]],
  [/^(?:30[0-5]|36|38|39)/, [14]],
  [/^35(?:2[89]|[3-8])/, [16, 19]],
  [/^62/, [16, 17, 18, 19]],
  [/^(?:50|5[6-8]|63|67)/, [13, 16, 18, 19]],
]

function isIssued(digits: string): boolean {
  return issuers.some(([prefix, lengths]) => prefix.test(digits) && lengths.includes(digits.length))
}

/** Checks whether digits are grouped four by four, or as the issuers of 14 and 15 digits group them. */
function isGrouped(run: string): boolean {
  const groups = run.split(/[^\d]/).map(({ length }) => length)
  if (groups.length === 1) return true
  const isByFour = groups.slice(0, -1).every((length) => length === 4) && (groups.at(-1) ?? 0) <= 4
  return isByFour || ['4,6,5', '4,6,4', '6,13', '4,4,5'].includes(groups.join())
}

function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const value = index % 2 === 1 ? digit * 2 : digit
    sum += value > 9 ? value - 9 : value
  }
  return sum % 10 === 0
}
