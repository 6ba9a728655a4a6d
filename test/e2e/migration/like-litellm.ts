import type { ServerResponse } from 'node:http'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'

/** Changes an answer of the other gateway, to make a difference. */
export type Spoil = (answer: { [member: string]: unknown }, request: Received) => void

/**
 * Starts a gateway that answers in the words of LiteLLM 1.108: the name of the group as the model, `provider_specific_fields`, counts of its own,
 * the cost in a header.
 */
export function likeLitellm(text: (model: string) => string, spoil: Spoil = () => {}): Promise<LoopbackProvider> {
  return loopbackProvider((request, response) => {
    const { body, path } = request
    const cost = (input: number, output: number) => ({
      'x-litellm-response-cost': String(input * 1e-6 + output * 2e-6),
    })
    if (path === '/v1/embeddings') {
      const data = [{ embedding: [0.5, 0.25], index: 0, object: 'embedding' }]
      const usage = { completion_tokens: 0, prompt_tokens: 2, total_tokens: 2, prompt_tokens_details: null }
      return answerJson(response, { model: body.model, data, object: 'list', usage }, 200, cost(2, 0))
    }
    if (body.stream) return streamed(response, body, text(body.model))
    const call = {
      index: 0,
      id: 'call_x',
      type: 'function',
      function: { name: 'weather', arguments: '{"city": "Rome"}' },
    }
    const message = body.tools
      ? { role: 'assistant', content: null, tool_calls: [call] }
      : { role: 'assistant', content: text(body.model) }
    const usage = {
      ...{ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
      completion_tokens_details: { reasoning_tokens: 0, text_tokens: 3 },
      cache_read_input_tokens: 0,
    }
    const choice = {
      index: 0,
      finish_reason: body.tools ? 'tool_calls' : 'stop',
      message,
      provider_specific_fields: {},
    }
    const answer = {
      id: 'chatcmpl-other',
      object: 'chat.completion',
      created: 2,
      model: body.model,
      choices: [choice],
      usage,
    }
    spoil(answer, request)
    answerJson(response, answer, 200, cost(9, 3))
  })
}

function streamed(response: ServerResponse, body: { model: string; stream_options?: object }, text: string): void {
  beginStream(response)
  const chunk = (members: object) =>
    response.write(
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 2, model: body.model, ...members })}\n\n`,
    )
  const words = text.split(/(?<= )/)
  for (const [index, content] of words.entries())
    chunk({ choices: [{ index: 0, delta: { ...(index === 0 && { role: 'assistant' }), content } }] })
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  if (body.stream_options) {
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }
    chunk({ choices: [{ index: 0, delta: {} }], usage })
  }
  response.end('data: [DONE]\n\n')
}
