import type { ApiName, ToolCall } from './request.ts'

/** An answer as far as it has come. */
export type Answer = {
  text: string
  reasoning: string
  calls: ToolCall[]
  usage: Record<string, unknown> | undefined
  finish: string
  error: string
}

export function emptyAnswer(): Answer {
  return { text: '', reasoning: '', calls: [], usage: undefined, finish: '', error: '' }
}

// biome-ignore lint/suspicious/noExplicitAny: what providers and clients send is read as it is.
type Json = any

/** Adds a server-sent event of a stream to an answer. */
export function take(api: ApiName, answer: Answer, data: string): void {
  if (data === '[DONE]') return
  const event: Json = JSON.parse(data)
  if (event.error) answer.error = event.error.message ?? JSON.stringify(event.error)
  else streamReaders[api](answer, event)
}

/** Reads a whole answer. */
export function whole(api: ApiName, body: Json): Answer {
  const answer = emptyAnswer()
  wholeReaders[api](answer, body)
  return answer
}

const streamReaders: { readonly [api in ApiName]: (answer: Answer, event: Json) => void } = {
  chat(answer, { choices, usage }) {
    if (usage) answer.usage = usage
    const { delta = {}, finish_reason: finish } = choices?.[0] ?? {}
    answer.text += delta.content ?? ''
    answer.reasoning += delta.reasoning ?? delta.reasoning_content ?? ''
    for (const { index = 0, id, function: called = {} } of delta.tool_calls ?? []) {
      answer.calls[index] ??= { id: '', name: '', arguments: '' }
      const call = answer.calls[index] as ToolCall
      call.id ||= id ?? ''
      call.name ||= called.name ?? ''
      call.arguments += called.arguments ?? ''
    }
    answer.finish = finish ?? answer.finish
  },
  messages(answer, { type, content_block: block, delta = {}, usage, message }) {
    if (type === 'content_block_start' && block.type === 'tool_use')
      answer.calls.push({ id: block.id, name: block.name, arguments: '' })
    const call = answer.calls.at(-1)
    if (type === 'content_block_delta') {
      answer.text += delta.text ?? ''
      answer.reasoning += delta.thinking ?? ''
      if (delta.partial_json !== undefined && call) call.arguments += delta.partial_json
    }
    answer.usage = usage ?? message?.usage ?? answer.usage
    answer.finish = delta.stop_reason ?? answer.finish
  },
  responses(answer, { type, delta, item, response }) {
    if (type === 'response.output_text.delta') answer.text += delta
    if (type === 'response.reasoning_text.delta' || type === 'response.reasoning_summary_text.delta')
      answer.reasoning += delta
    if (type === 'response.output_item.done' && item.type === 'function_call')
      answer.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments })
    if (!response) return
    answer.usage = response.usage ?? answer.usage
    answer.finish = response.status ?? answer.finish
    answer.error = response.error?.message ?? answer.error
  },
}

const wholeReaders: { readonly [api in ApiName]: (answer: Answer, body: Json) => void } = {
  chat(answer, { choices, usage }) {
    const { message = {}, finish_reason: finish = '' } = choices?.[0] ?? {}
    answer.text = message.content ?? ''
    answer.reasoning = message.reasoning ?? message.reasoning_content ?? ''
    answer.calls = (message.tool_calls ?? []).map(({ id, function: called }: Json) => ({
      id,
      name: called.name,
      arguments: called.arguments,
    }))
    Object.assign(answer, { usage, finish })
  },
  messages(answer, { content, usage, stop_reason: finish }) {
    for (const block of content ?? []) {
      if (block.type === 'text') answer.text += block.text
      if (block.type === 'thinking') answer.reasoning += block.thinking
      if (block.type === 'tool_use')
        answer.calls.push({ id: block.id, name: block.name, arguments: JSON.stringify(block.input) })
    }
    Object.assign(answer, { usage, finish: finish ?? '' })
  },
  responses(answer, { output, usage, status }) {
    for (const item of output ?? []) {
      if (item.type === 'message') answer.text += (item.content ?? []).map(({ text = '' }: Json) => text).join('')
      if (item.type === 'reasoning')
        answer.reasoning += [...(item.summary ?? []), ...(item.content ?? [])]
          .map(({ text = '' }: Json) => text)
          .join('\n')
      if (item.type === 'function_call')
        answer.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments })
    }
    Object.assign(answer, { usage, finish: status ?? '' })
  },
}

/** Returns the cost and the tokens of an answer. */
export function countsOf({ usage = {} }: Answer): {
  cost: number | undefined
  input: number | undefined
  output: number | undefined
} {
  const number = (...names: string[]) =>
    names.map((name) => usage[name]).find((value) => typeof value === 'number') as number | undefined
  return {
    cost: number('cost'),
    input: number('prompt_tokens', 'input_tokens'),
    output: number('completion_tokens', 'output_tokens'),
  }
}
