import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'

/** The tokens of log probabilities, with all the members that this API defines for them. */
export function tokensOf(logprobs: Json | undefined): JsonObject[] {
  const { content } = isObject(logprobs) ? logprobs : {}
  return (Array.isArray(content) ? content : []).filter(isObject).map((token) => ({
    ...writeToken(token),
    top_logprobs: (Array.isArray(token.top_logprobs) ? token.top_logprobs : []).filter(isObject).map(writeToken),
  }))
}

/** The tokens of a message, by content index: each text takes as many as it consists of, the last one takes the rest. */
export function shareTokens(tokens: JsonObject[], parts: readonly Part[]): JsonObject[][] {
  const last = parts.findLastIndex(({ type }) => type === 'text')
  return parts.map((part, index) => {
    if (part.type !== 'text') return []
    if (index === last) return tokens.splice(0)
    const taken: JsonObject[] = []
    for (let length = 0; length < part.text.length; ) {
      const token = tokens.shift()
      if (!token) break
      length += String(token.token).length
      taken.push(token)
    }
    return taken
  })
}

function writeToken({ token, logprob, bytes }: JsonObject): JsonObject {
  const text = typeof token === 'string' ? token : ''
  return { token: text, logprob: logprob ?? 0, bytes: Array.isArray(bytes) ? bytes : [...Buffer.from(text)] }
}
