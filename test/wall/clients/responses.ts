import { isDamaged, wholeText } from '../simulator/answer.ts'
import { type ClientApi, noteError, type Seen, type StreamEvent } from './client.ts'

/** OpenAI Responses. */
export const responses: ClientApi = {
  name: 'responses',
  path: '/v1/responses',
  body: (model, input, stream) => ({ model, input, store: false, ...(stream && { stream }) }),
  readWhole(body, seen) {
    const { output, status, usage } = Object(body)
    seen.text = textOf(output)
    if (status === 'completed') seen.endings.push('finish', 'terminator')
    noteUsage(usage, seen)
  },
  readEvent({ name, data }: StreamEvent, seen) {
    if (data === '[DONE]') return
    const { type, delta, response } = Object(data)
    if (name !== undefined && type !== name) seen.wrong.push(`an event named ${name} of the type ${type}`)
    if (type === 'response.output_text.delta') {
      if (seen.endings.length > 0) seen.wrong.push('text after the end')
      seen.text += delta
    }
    if (type === 'error') noteError(data, seen)
    if (type === 'response.failed') {
      // An `error` event before it tells of the same failure.
      if (seen.endings.at(-1) === 'error' && seen.error) seen.endings.pop()
      noteError(response, seen)
    }
    if (type !== 'response.completed') return
    seen.endings.push('finish', 'terminator')
    noteUsage(response?.usage, seen)
    const completed = textOf(response?.output)
    // The provider repeats at the end what was lost of an event that could not be read.
    const isMended = completed === wholeText && isDamaged(seen.text)
    if (completed !== seen.text && !isMended) seen.wrong.push('the completed response has another text than its events')
  },
}

function textOf(output: unknown): string {
  const items = Array.isArray(output) ? output : []
  return items
    .flatMap(({ content }) => content ?? [])
    .map(({ text }) => text ?? '')
    .join('')
}

function noteUsage(usage: unknown, seen: Seen): void {
  const { input_tokens: input, output_tokens: output } = Object(usage)
  if (typeof input === 'number') seen.usage = { input, output }
}
