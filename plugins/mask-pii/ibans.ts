import type { Span } from './spans.ts'

/** Length of the account numbers of each country. */
const lengths: ReadonlyMap<string, number> = new Map(
  `AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27
  GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 MC27 MD24
  ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24
  TR26 UA29 VA22 VG24 XK20`
    .split(/\s+/)
    .map((text) => [text.slice(0, 2), Number(text.slice(2))]),
)

const start = /(?<![\p{L}\p{N}])[A-Za-z]{2}\d{2}(?=[ \u00a0-]?[A-Za-z0-9])/gu

/** Finds account numbers with the right length for their country and the right check digits. */
export function findIbans(text: string): Span[] {
  const found: Span[] = []
  for (const { index, 0: head } of text.matchAll(start)) {
    const length = lengths.get(head.slice(0, 2).toUpperCase())
    const end = length === undefined ? undefined : endOf(text, index, length)
    if (end === undefined || /[\p{L}\p{N}]/u.test(text.slice(end, end + 1))) continue
    const compact = text.slice(index, end).replace(/[^A-Za-z0-9]/g, '')
    if (remainder(compact.toUpperCase()) === 1) found.push({ kind: 'iban', start: index, end })
  }
  return found
}

/** Finds the end of so many letters and digits; single spaces and hyphens may stand between them. */
function endOf(text: string, start: number, length: number): number | undefined {
  let left = length
  let at = start
  for (let isGap = false; left > 0; at++) {
    const char = text[at]
    if (char === undefined) return undefined
    const isSeparator = char === ' ' || char === '-' || char === '\u00a0'
    if (!isSeparator && !/[A-Za-z0-9]/.test(char)) return undefined
    if (isSeparator && isGap) return undefined
    isGap = isSeparator
    if (!isSeparator) left--
  }
  return at
}

/** Computes the remainder by ISO 7064, MOD 97-10. */
function remainder(iban: string): number {
  let rest = 0
  for (const char of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(char, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest
}
