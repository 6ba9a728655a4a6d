import { mostAnswers, requireCount } from './bounds.ts'
import { replyTo, type SimulatedReply } from './reply.ts'
import { readRequest, SimulatedError } from './request.ts'
import { otherModels as models, wrong } from './words.ts'

/** Completes as the chat model `echo` replies: one body, or the chunks of a stream. `created` is Unix seconds. Throws SimulatedError. */
export function completionsOf(body: unknown, created: number): { whole: object } | { chunks: object[] } {
  const { model, prompt, stream, stream_options: options, n = 1 } = Object(body)
  if (model !== models.complete && model !== 'echo') {
    throw new SimulatedError(404, `The model \`${model}\` does not exist.`, { param: 'model', code: 'model_not_found' })
  }
  requireCount((Array.isArray(prompt) ? prompt.length : 1) * n, mostAnswers, 'n')
  const replies = repliesTo(Object(body))
  const choices = replies.flatMap(({ text, finish }, place) =>
    Array.from({ length: n }, (_, index) => ({ index: place * n + index, text, finish_reason: finish })),
  )
  const usage = usageOf(replies, n)
  const head = { id: replies[0]?.id.replace('chatcmpl', 'cmpl'), object: 'text_completion', created, model }
  if (stream !== true) {
    const whole = choices.map((choice) => ({ ...choice, text: choice.text.join(''), logprobs: null }))
    return { whole: { ...head, choices: whole, usage } }
  }
  const chunk = (...one: object[]) => ({ ...head, choices: one })
  const chunks = choices.flatMap(({ index, text, finish_reason }) => [
    ...text.map((piece) => chunk({ index, text: piece, logprobs: null, finish_reason: null })),
    chunk({ index, text: '', logprobs: null, finish_reason }),
  ])
  return { chunks: Object(options).include_usage === true ? [...chunks, { ...chunk(), usage }] : chunks }
}

/** A reply to each prompt, with the prompt before it where that is asked for. */
function repliesTo({ prompt, max_tokens = 16, stop, echo }: { [name: string]: unknown }): SimulatedReply[] {
  const prompts = Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt : [prompt]
  return prompts.map((one) => {
    if (typeof one !== 'string' && !Array.isArray(one))
      throw wrong('prompt', 'a string, or an array of strings or tokens')
    const messages = [{ role: 'user', content: String(one) }]
    const reply = replyTo(readRequest({ model: 'echo', messages, max_tokens, ...(stop !== null && { stop }) }))
    return echo === true ? { ...reply, text: [String(one), ...reply.text] } : reply
  })
}

function usageOf(replies: readonly SimulatedReply[], n: number): object {
  const prompted = replies.reduce((sum, { usage }) => sum + usage.prompt, 0)
  const written = replies.reduce((sum, { usage }) => sum + usage.completion * n, 0)
  return { prompt_tokens: prompted, completion_tokens: written, total_tokens: prompted + written }
}
