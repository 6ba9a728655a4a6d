import type { Span } from './spans.ts'

/** Digits with what stands between those of phone numbers: at most one or two signs. Some scripts put no space around them. */
const candidate =
  /(?<!(?![\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}])[\p{L}\p{N}_+.@/:#$€£-]|\d[ ,])(?:\+|\()?\d(?:(?:[ \u00a0.()/-]{0,2}| \/ )\d){6,16}(?!(?![\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}])[\p{L}\p{N}_%€$£])(?![.,:/-]\d)/gu
/** Words that announce a number. */
const announcement =
  /(?<![\p{L}\p{N}])(?:phone|tel|telephone|telefon|telefono|teléfono|telefone|tél|téléphone|mobile|mobil|mobiel|móvil|cell|cellulare|celular|handy|portable|fax|whatsapp|sms|call(?: me| us)?|ring(?: me)?|text me|reach me|rufnummer|my number is|meine nummer(?: ist)?|mi número es|mon numéro est|numéro|appelez|llame|chiama)(?![\p{L}\p{N}])[^\d+(\n]{0,24}/giu
const announced = /(?:\+|\()?\d(?:(?:[ \u00a0.()/-]{0,2}| \/ )\d){6,16}(?![\p{L}\p{N}_%€$£])(?![.,:/-]\d)/uy

/** Finds phone numbers: international ones, national ones, and numbers that are announced as one. */
export function findPhones(text: string): Span[] {
  const found: Span[] = []
  for (const { index, 0: number } of text.matchAll(candidate)) {
    const isPhone = isInternational(number) || (isNational(number) && !isNamedOtherwise(text, index))
    if (isPhone) found.push(spanOf(index, number))
  }
  for (const { index, 0: words } of text.matchAll(announcement)) {
    announced.lastIndex = index + words.length
    const number = announced.exec(text)?.[0]
    if (number && !isDate(number)) found.push(spanOf(index + words.length, number))
  }
  return found
}

function spanOf(start: number, number: string): Span {
  return { kind: 'phone', start, end: start + number.length }
}

function isInternational(number: string): boolean {
  const digits = number.replace(/\D/g, '')
  if (/^\+[1-9]/.test(number)) return digits.length >= 8 && digits.length <= 15
  return /^00[1-9]/.test(number) && /\D/.test(number) && digits.length >= 11 && digits.length <= 17
}

/** Checks for North American groups, an area code in brackets, or a number that begins with 0 and has groups. */
function isNational(number: string): boolean {
  if (isDate(number) || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(number)) return false
  if (/^8 ?\(\d{3}\) ?\d{3}-\d{2}-\d{2}$/.test(number)) return true
  if (/^(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}$/.test(number)) return true
  const digits = number.replace(/\D/g, '')
  if (/^\(0?\d{1,4}\) ?\d{2,5}[ -]?\d{2,4}(?:[ -]?\d{2,4})?$/.test(number))
    return digits.length >= 8 && digits.length <= 12
  if (!/^0[1-9]/.test(number) || !/[ ./-]/.test(number)) return false
  return digits.length >= 9 && digits.length <= 12
}

/** Checks whether the word before shows that it is the number of something else. */
function isNamedOtherwise(text: string, start: number): boolean {
  return otherNumber.test(text.slice(Math.max(0, start - 24), start))
}

const otherNumber =
  /(?<!\p{L})(?:order|invoice|ref|reference|part|ticket|case|sku|serial|article|item|bestellung|bestellnummer|rechnung|artikel|facture|commande|pedido|factura|ordine|fattura)(?: (?:no|nr|number|id))?[ .:#]{0,3}$/iu

function isDate(text: string): boolean {
  return /^(?:\d{1,2}([./-])\d{1,2}\1(?:19|20)\d{2}|(?:19|20)\d{2}([./-])\d{1,2}\2\d{1,2})(?!\d)/.test(text)
}
