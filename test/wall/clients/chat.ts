import { type ClientApi, noteError, type Seen, type StreamEvent } from './client.ts'

/** OpenAI Chat Completions. */
export const chat: ClientApi = {
  name: 'chat',
  path: '/v1/chat/completions',
  body: (model, content, stream) => ({
    model,
    messages: [{ role: 'user', content }],
    ...(stream && { stream, stream_options: { include_usage: true } }),
  }),
  readWhole(body, seen) {
    const { choices, usage } = Object(body)
    seen.text = choices?.[0]?.message?.content ?? ''
    if (choices?.[0]?.finish_reason === 'stop') seen.endings.push('finish', 'terminator')
    noteUsage(usage, seen)
  },
  readEvent({ data }: StreamEvent, seen) {
    if (data === '[DONE]') return void seen.endings.push('terminator')
    if (typeof data === 'string') return void seen.wrong.push(`an event that is not JSON: ${data.slice(0, 80)}`)
    const { error, choices, usage } = Object(data)
    if (error) return noteError(data, seen)
    const [choice] = choices ?? []
    if (choice?.delta?.content) {
      if (seen.endings.length > 0) seen.wrong.push('text after the end')
      seen.text += choice.delta.content
    }
    if (choice?.finish_reason) seen.endings.push('finish')
    noteUsage(usage, seen)
  },
}

function noteUsage(usage: unknown, seen: Seen): void {
  const { prompt_tokens: input, completion_tokens: output } = Object(usage)
  if (typeof input === 'number') seen.usage = { input, output }
}
