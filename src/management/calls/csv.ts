import type { IncomingHttpHeaders } from 'node:http'
import type { Json } from '../../core/json.ts'

/** Media type of a table. */
export const csvType = 'text/csv; charset=utf-8; header=present'

/** Checks whether a client wants a table rather than JSON. */
export function wantsCsv({ accept = '' }: Pick<IncomingHttpHeaders, 'accept'>): boolean {
  const items = accept.split(',').map((item) => item.split(';').map((part) => part.trim().toLowerCase()))
  const quality = (type: string) => {
    const found = items.find(([name]) => name === type)
    const stated = found?.find((part) => part.startsWith('q='))
    return found ? Number(stated?.slice(2) ?? 1) : 0
  }
  return quality('text/csv') > quality('application/json')
}

/** Returns a line of a table (RFC 4180). */
export function csvLine(cells: readonly (Json | undefined)[]): string {
  return `${cells.map(cell).join(',')}\r\n`
}

/**
 * Spreadsheets take a text for a formula that begins like one: it gets an apostrophe, as they write such a text themselves. Some split
 * cells at semicolons and tabs, fold full-width signs, or ignore what is invisible.
 */
function cell(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number') return decimal(value)
  if (typeof value === 'boolean') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const safe = text.replace(formula, "$1'").replace(/^(?=\s*[\t\r\n])/, "'")
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const formula = /(^|[;\t])(?=[\s\p{C}\p{Z}]*[=+\-@＝＋－＠﹢﹣﹦﹫−])/gu

/** Writes a number without an exponent. */
function decimal(value: number): string {
  const text = String(value)
  return text.includes('e') ? value.toFixed(12).replace(/\.?0+$/, '') : text
}
