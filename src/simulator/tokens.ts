/** Splits text into simulated tokens: words with the white space before them, long words in pieces. */
export function tokensOf(text: string): string[] {
  return text.match(/\s*\S{1,8}|\s+$/gu) ?? []
}
