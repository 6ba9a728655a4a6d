import type { Answer } from './answer.ts'
import { event, type Failure, type Format, limitIn, prefillIn } from './format.ts'

/** OpenAI Chat Completions. */
export const chat: Format = {
  path: '/v1/chat/completions',
  ping: ': ping\n\n',
  read: (body) => ({
    model: String(body.model),
    stream: body.stream === true,
    limit: limitIn(body.max_completion_tokens, body.max_tokens),
    prefill: prefillIn(body.messages),
    counts: Object(body.stream_options).include_usage === true,
  }),
  whole: (answer) => ({
    ...headOf(answer),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: answer.pieces.join(''), refusal: null },
        logprobs: null,
        finish_reason: answer.finish,
      },
    ],
    ...(answer.usage && { usage: usageOf(answer.usage) }),
  }),
  stream: (answer, { counts }) => {
    const chunk = (choices: object[], usage: object | null = null) =>
      event({ ...headOf(answer), object: 'chat.completion.chunk', choices, ...(counts && { usage }) })
    const choice = (delta: object, finish_reason: string | null = null) =>
      chunk([{ index: 0, delta, logprobs: null, finish_reason }])
    return {
      opening: [choice({ role: 'assistant', content: '', refusal: null })],
      pieces: answer.pieces.map((content) => choice({ content })),
      closing: [],
      finish: [choice({}, answer.finish), ...(counts && answer.usage ? [chunk([], usageOf(answer.usage))] : [])],
      done: ['data: [DONE]\n\n'],
    }
  },
  error: (failure) => ({ status: failure.status, body: errorOf(failure) }),
  errorEvent: (failure) => event(errorOf(failure)),
}

function headOf({ id, created, model }: Answer): object {
  return { id: `chatcmpl-${id}`, created, model }
}

function usageOf({ input, output }: NonNullable<Answer['usage']>): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  }
}

function errorOf({ message, code, status }: Failure): object {
  return { error: { message, type: typeOf(status), param: null, code } }
}

function typeOf(status: number): string {
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}
