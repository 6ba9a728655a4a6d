/**
 * Returns a text that is safe to print: characters that would move the cursor of a terminal, or that are invisible and change the order of
 * others, are written as JSON writes them. Line breaks and tabs stay.
 */
export function printable(text: string): string {
  return text.replace(unprintable, escaped)
}

/** Returns a text that is safe to print within a line. */
export function printableInLine(text: string): string {
  return printable(text).replace(/[\n\t]/g, escaped)
}

const unprintable = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

function escaped(sign: string): string {
  return Array.from({ length: sign.length }, (_, index) => {
    return `\\u${sign.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
}
