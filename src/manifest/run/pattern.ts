/** A regular expression of a file, whose running time is bounded for the texts that it is tried on. */
export type Pattern = { test(text: string): boolean }
