import type { Answer } from './answer.ts'
import { event, type Failure, type Format, limitIn, prefillIn } from './format.ts'

/** Anthropic Messages. */
export const messages: Format = {
  path: '/v1/messages',
  ping: event({ type: 'ping' }, 'ping'),
  read: (body) => ({
    model: String(body.model),
    stream: body.stream === true,
    limit: limitIn(body.max_tokens),
    prefill: prefillIn(body.messages),
    counts: true,
  }),
  whole: (answer) => ({
    ...headOf(answer),
    content: [{ type: 'text', text: answer.pieces.join('') }],
    stop_reason: reasons[answer.finish],
    ...(answer.usage && { usage: usageOf(answer.usage) }),
  }),
  stream: (answer) => {
    const { usage } = answer
    const named = (data: { type: string; [name: string]: unknown }) => event(data, data.type)
    const delta = (text: string) => ({ type: 'text_delta', text })
    const begun = {
      ...headOf(answer),
      content: [],
      stop_reason: null,
      ...(usage && { usage: usageOf({ ...usage, output: 1 }) }),
    }
    return {
      opening: [
        named({ type: 'message_start', message: begun }),
        named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      ],
      pieces: answer.pieces.map((text) => named({ type: 'content_block_delta', index: 0, delta: delta(text) })),
      closing: [named({ type: 'content_block_stop', index: 0 })],
      finish: [
        named({
          type: 'message_delta',
          delta: { stop_reason: reasons[answer.finish], stop_sequence: null },
          ...(usage && { usage: { output_tokens: usage.output } }),
        }),
      ],
      done: [named({ type: 'message_stop' })],
    }
  },
  error: (failure) => ({ status: failure.elsewhere?.status ?? failure.status, body: errorOf(failure) }),
  errorEvent: (failure) => event(errorOf(failure), 'error'),
}

const reasons = { stop: 'end_turn', length: 'max_tokens' }

function headOf({ id, model }: Answer) {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', model, stop_sequence: null }
}

function usageOf({ input, output }: NonNullable<Answer['usage']>): object {
  return { input_tokens: input, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: output }
}

function errorOf({ type, message, elsewhere }: Failure): object {
  return { type: 'error', error: { type, message: elsewhere?.message ?? message }, request_id: 'req_wall' }
}
