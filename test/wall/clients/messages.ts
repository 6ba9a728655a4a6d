import { type ClientApi, noteError, type Seen, type StreamEvent } from './client.ts'

/** Anthropic Messages. */
export const messages: ClientApi = {
  name: 'messages',
  path: '/v1/messages',
  body: (model, content, stream) => ({
    model,
    max_tokens: 1_000,
    messages: [{ role: 'user', content }],
    ...(stream && { stream }),
  }),
  readWhole(body, seen) {
    const { content, stop_reason, usage } = Object(body)
    seen.text = (content ?? []).map((block: { text?: string }) => block.text ?? '').join('')
    if (stop_reason === 'end_turn') seen.endings.push('finish', 'terminator')
    noteUsage(usage, seen)
  },
  readEvent({ name, data }: StreamEvent, seen) {
    const { type, message, delta, usage } = Object(data)
    if (type !== name) seen.wrong.push(`an event named ${name} of the type ${type}`)
    if (type === 'error') return noteError(data, seen)
    if (type === 'message_start') noteUsage(message?.usage, seen)
    if (type === 'content_block_delta' && delta?.type === 'text_delta') {
      if (seen.endings.length > 0) seen.wrong.push('text after the end')
      seen.text += delta.text
    }
    if (type === 'message_delta') {
      if (delta?.stop_reason) seen.endings.push('finish')
      noteUsage({ ...(seen.usage && { input_tokens: seen.usage.input }), ...usage }, seen)
    }
    if (type === 'message_stop') seen.endings.push('terminator')
  },
}

function noteUsage(usage: unknown, seen: Seen): void {
  const { input_tokens: input, output_tokens: output } = Object(usage)
  if (typeof input === 'number') seen.usage = { input, output }
}
