import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'

/** The tokens that log probabilities speak of, with all the members that this API shows of them. */
export function tokensOf(logprobs: Json | undefined): JsonObject[] {
  const { content } = isObject(logprobs) ? logprobs : {}
  return (Array.isArray(content) ? content : []).filter(isObject).map((token) => ({
    ...shownToken(token),
    top_logprobs: (Array.isArray(token.top_logprobs) ? token.top_logprobs : []).filter(isObject).map(shownToken),
  }))
}

/** The tokens of a message, by content index: each text takes as many as its words are made of, the last one the rest. */
export function shareTokens(tokens: JsonObject[], parts: readonly Part[]): JsonObject[][] {
  const last = parts.findLastIndex(({ type }) => type === 'text')
  return parts.map((part, index) => {
    if (part.type !== 'text') return []
    if (index === last) return tokens.splice(0)
    const taken: JsonObject[] = []
    for (let said = 0; said < part.text.length && tokens.length > 0; ) {
      const token = tokens.shift() as JsonObject
      said += String(token.token).length
      taken.push(token)
    }
    return taken
  })
}

function shownToken({ token, logprob, bytes }: JsonObject): JsonObject {
  const text = typeof token === 'string' ? token : ''
  return { token: text, logprob: logprob ?? 0, bytes: Array.isArray(bytes) ? bytes : [...Buffer.from(text)] }
}
