/** What a healthy model says, piece by piece, and what it counts. One piece is one token. */
export type Answer = {
  id: string
  model: string
  /** Unix seconds. */
  created: number
  pieces: string[]
  finish: 'stop' | 'length'
  /** Absent where the model does not say what it counted. */
  usage?: { input: number; output: number }
}

/** What a request asks for, in whatever format. */
export type Asked = {
  model: string
  stream: boolean
  /** The most tokens of the answer. */
  limit: number
  /** A last message of the assistant, which the answer goes on from. */
  prefill: string
  /** Whether a stream says what was counted. */
  counts: boolean
}

/** The tokens of every prompt, and of every whole answer. */
export const promptTokens = 25
export const answerTokens = 60

/** The text of a whole answer: `w1 w2 … w60`. */
export const wholeText = piecesAfter(0).join('')

/** The answer of a healthy model. What it goes on from counts as part of the prompt. */
export function answerTo({ model, limit, prefill }: Asked, id: string): Answer {
  const said = Number(/w(\d+)\s*$/.exec(prefill)?.[1] ?? 0)
  const all = piecesAfter(said)
  const pieces = all.slice(0, limit)
  return {
    id,
    model,
    created: Math.floor(Date.now() / 1_000),
    pieces,
    finish: pieces.length < all.length ? 'length' : 'stop',
    usage: { input: promptTokens + said, output: pieces.length },
  }
}

/** The pieces after so many words. */
function piecesAfter(said: number): string[] {
  return Array.from({ length: answerTokens - said }, (_, index) => `${said + index > 0 ? ' ' : ''}w${said + index + 1}`)
}

/** Whether one word is missing between others. */
export function isDamaged(text: string): boolean {
  const words = wholeText.split(' ')
  const said = text.split(' ')
  const at = said.findIndex((word, index) => word !== words[index])
  return at > 0 && text === [...words.slice(0, at), ...words.slice(at + 1)].join(' ')
}
