import type { Answer, Asked } from './answer.ts'
import { chat } from './chat.ts'
import { type Body, event, type Format, limitIn, prefillIn, type StreamParts } from './format.ts'

/** OpenAI Responses. */
export const responses: Format = {
  path: '/v1/responses',
  ping: ': ping\n\n',
  read: (body: Body): Asked => ({
    model: String(body.model),
    stream: body.stream === true,
    limit: limitIn(body.max_output_tokens),
    prefill: prefillIn(body.input),
    counts: true,
  }),
  whole: (answer) => ended(answer),
  stream: streamOf,
  error: chat.error,
  errorEvent: ({ code, message }) => event({ type: 'error', code, message, param: null, sequence_number: 0 }, 'error'),
}

function streamOf(answer: Answer): StreamParts {
  let number = 0
  const numbered = (type: string, data: object) => event({ type, sequence_number: number++, ...data }, type)
  const begun = { ...headOf(answer), status: 'in_progress', output: [], usage: null }
  const place = { item_id: itemId(answer), output_index: 0, content_index: 0 }
  const [item] = ended(answer).output
  const part = item?.content[0]
  return {
    opening: [
      numbered('response.created', { response: begun }),
      numbered('response.in_progress', { response: begun }),
      numbered('response.output_item.added', {
        output_index: 0,
        item: { ...item, status: 'in_progress', content: [] },
      }),
      numbered('response.content_part.added', { ...place, part: { ...part, text: '' } }),
    ],
    pieces: answer.pieces.map((delta) => numbered('response.output_text.delta', { ...place, delta, logprobs: [] })),
    closing: [
      numbered('response.output_text.done', { ...place, text: part?.text, logprobs: [] }),
      numbered('response.content_part.done', { ...place, part }),
      numbered('response.output_item.done', { output_index: 0, item }),
    ],
    finish: [
      numbered(answer.finish === 'stop' ? 'response.completed' : 'response.incomplete', { response: ended(answer) }),
    ],
    done: [],
  }
}

function headOf({ id, created, model }: Answer) {
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: created,
    model,
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
    tools: [],
  }
}

function itemId({ id }: Answer): string {
  return `msg_${id}`
}

function ended(answer: Answer) {
  const { usage, finish, pieces } = answer
  const part = { type: 'output_text', text: pieces.join(''), annotations: [], logprobs: [] }
  const status = finish === 'stop' ? 'completed' : 'incomplete'
  return {
    ...headOf(answer),
    status,
    ...(finish === 'length' && { incomplete_details: { reason: 'max_output_tokens' } }),
    output: [{ id: itemId(answer), type: 'message', role: 'assistant', status, content: [part] }],
    ...(usage && { usage: usageOf(usage) }),
  }
}

function usageOf({ input, output }: NonNullable<Answer['usage']>): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  }
}
