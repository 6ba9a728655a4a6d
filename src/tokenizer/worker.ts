import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'

/** Counts the tokens of texts, cut into pieces. */
export type CountRequest = { id: number; texts: readonly string[] }
export type CountAnswer = { id: number; tokens: number }

/** The work on a text without spaces grows with the square of its length: longer texts are cut. Characters. */
const pieceLength = 256

/** Maximum time for one count: some texts take twenty times as long as English. Milliseconds. */
const maxMs = 700

parentPort?.on('message', ({ id, texts }: CountRequest) => {
  const deadline = performance.now() + maxMs
  const tokens = texts.reduce((sum, text) => sum + tokensOf(text, deadline), 0)
  parentPort?.postMessage({ id, tokens } satisfies CountAnswer)
})

/** Counts a text. A piece of it may need a token more than the text did; what there is no time for counts as its bytes, which are more. */
function tokensOf(text: string, deadline: number): number {
  let tokens = 0
  for (let at = 0; at < text.length; at += pieceLength) {
    if (performance.now() > deadline) return tokens + Buffer.byteLength(text.slice(at))
    tokens += countTokens(text.slice(at, at + pieceLength), { allowedSpecial: 'all' }) + (at > 0 ? 1 : 0)
  }
  return tokens
}
