import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'

/** Counts the tokens of texts, cut into pieces. */
export type CountRequest = { id: number; texts: readonly string[] }
export type CountAnswer = { id: number; tokens: number }

/** The work on a text without spaces grows with the square of its length: longer texts are cut. Characters. */
const pieceLength = 256

parentPort?.on('message', ({ id, texts }: CountRequest) => {
  parentPort?.postMessage({ id, tokens: texts.reduce((sum, text) => sum + tokensOf(text), 0) } satisfies CountAnswer)
})

/** A piece of a text may need a token more than the text did. */
function tokensOf(text: string): number {
  let tokens = 0
  for (let at = 0; at < text.length; at += pieceLength)
    tokens += countTokens(text.slice(at, at + pieceLength), { allowedSpecial: 'all' }) + (at > 0 ? 1 : 0)
  return tokens
}
