/** Text in pieces of one word, long words in several: a simulated token each, white space before it included. */
export function tokensOf(text: string): string[] {
  return text.match(/\s*\S{1,8}|\s+$/gu) ?? []
}
