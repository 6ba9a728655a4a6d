/** Counts of tokens in a provider's report of a full context: the limit, the prompt, and the output that was asked for. */
export type ContextSizes = { limit?: number; prompt?: number; output?: number }

/** Reads the counts in the report of a full context, in whatever words; those that it does not contain are missing. */
export function contextSizes(message: string): ContextSizes {
  // Only so many separators: the thousands of one number, not the members of a list.
  const text = message.slice(0, maxLength).replace(/(?<=\d)[,_](?=\d{3}(?!\d))/g, '')
  const found = limitOf.exec(text)
  const written = found?.[1] ?? found?.[2]
  const at = found && written !== undefined ? found.index + found[0].lastIndexOf(written) : -1
  const others = [...text.matchAll(/\d{3,15}/g)].filter(({ index }) => index !== at).map(([digits]) => Number(digits))
  const parts = others.length > 2 && others[0] === (others[1] ?? 0) + (others[2] ?? 0) ? others.slice(1) : others
  const [prompt, output] = parts
  return {
    ...(written !== undefined && { limit: Number(written) }),
    ...(prompt !== undefined && { prompt }),
    ...(output !== undefined && speaksOfOutput.test(text) && { output }),
  }
}

/** The number after a word for a limit, or before one. */
const limitOf =
  /(?:max\w*|limit|context (?:length|size|window)|<=|less than|longer than|exceeds?)\D*?(\d{3,15})|model with (\d{3,15}) max/i
const speaksOfOutput = /completion|output|max_(?:new_)?tokens/i
/** Reports are short: what is longer repeats a request. Characters. */
const maxLength = 2_000
