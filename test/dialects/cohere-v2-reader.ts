import { Ajv } from 'ajv'
import type { Citation } from '../../src/core/parts.ts'
import { type Recording, recordedEvents } from '../helpers/recordings.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

// The independent reader of Cohere's chat v2: the contents of a recording, read without the mappings.

/** The contents of a recorded reply. */
export type Facts = {
  text: string
  reasoning: string
  calls: { id: string; name: string; arguments: string }[]
  citations: Citation[]
  finish: string
  raw: string
  usage: { [name: string]: number }
  logprobs: [string, number][]
  id: string
}

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
export type Body = any

/** The whole message of a recording, put together from its events where it was streamed. */
export function assembled(recording: Recording): Body {
  const { body, sse } = recording.response
  return sse === undefined ? body : joined(eventsOf(recording))
}

/** The events of a streamed recording, without the end marker. */
export function eventsOf(recording: Recording): Body[] {
  return recordedEvents(recording).flatMap(({ data }) => (data === '[DONE]' ? [] : JSON.parse(data)))
}

/** The whole answer that events add up to. */
export function joined(events: Body[]): Body {
  const of = (type: string): Body[] => events.filter((event) => event.type === type)
  const messagesOf = (type: string): Body[] => of(type).map(({ delta }) => delta.message)
  const content = of('content-start').map(({ index, delta }) => {
    const item = { ...delta.message.content }
    const deltas = of('content-delta').filter((event) => event.index === index)
    for (const { delta } of deltas) for (const [name, text] of Object.entries(delta.message.content)) item[name] += text
    return item
  })
  const tool_calls = of('tool-call-start').map(({ index, delta }) => {
    const { function: called, ...call } = delta.message.tool_calls
    const deltas = of('tool-call-delta').filter((event) => event.index === index)
    const words = deltas.map(({ delta }) => delta.message.tool_calls.function.arguments)
    return { ...call, function: { ...called, arguments: called.arguments + words.join('') } }
  })
  const citations = messagesOf('citation-start').map((message) => message.citations)
  const tool_plan = messagesOf('tool-plan-delta')
    .map((message) => message.tool_plan)
    .join('')
  const logprobs = of('content-delta').flatMap((event) => event.logprobs ?? [])
  return {
    id: of('message-start')[0]?.id,
    message: { content, citations, tool_plan, tool_calls },
    ...(logprobs.length > 0 && { logprobs }),
    ...of('message-end').at(-1)?.delta,
  }
}

/** The events of a whole reply, in pieces of a few characters. */
export function framesOf({ id, message, logprobs = [], ...end }: Body): Body[] {
  const at = (type: string, index: number | undefined, message?: object) => ({
    type,
    index,
    ...(message && { delta: { message: message } }),
  })
  const content = (message.content ?? []).flatMap((item: Body, index: number) => {
    const { type } = item
    const pieces = item[type].match(/[\s\S]{1,7}/gu) ?? []
    return [
      at('content-start', index, { content: { type, [type]: '' } }),
      ...pieces.map((piece: string) => at('content-delta', index, { content: { [type]: piece } })),
      ...logprobs.map((one: Body) => ({ ...at('content-delta', index, { content: {} }), logprobs: one })),
      at('content-end', index),
    ]
  })
  const cited = (message.citations ?? []).flatMap((citations: Body, index: number) => [
    at('citation-start', index, { citations }),
    at('citation-end', index),
  ])
  const planned = (message.tool_plan?.match(/[\s\S]{1,7}/gu) ?? []).map((tool_plan: string) =>
    at('tool-plan-delta', undefined, { tool_plan }),
  )
  const calls = (message.tool_calls ?? []).flatMap(({ function: called, ...call }: Body, index: number) => [
    at('tool-call-start', index, { tool_calls: { ...call, function: { ...called, arguments: '' } } }),
    ...called.arguments
      .split(/(?<=,)/)
      .map((words: string) => at('tool-call-delta', index, { tool_calls: { function: { arguments: words } } })),
    at('tool-call-end', index),
  ])
  return [
    { type: 'message-start', id, delta: { message: { role: 'assistant' } } },
    ...content,
    ...cited,
    ...planned,
    ...calls,
    { type: 'message-end', delta: end },
  ]
}

const finishes: { [reason: string]: string } = {
  COMPLETE: 'stop',
  STOP_SEQUENCE: 'stop',
  MAX_TOKENS: 'length',
  TOOL_CALL: 'tool_calls',
  ERROR: 'error',
}

/** The contents of a reply. */
export function readIndependently({ id, message, finish_reason: raw, usage, logprobs = [] }: Body): Facts {
  const content: Body[] = message.content ?? []
  const words = (type: string) => content.flatMap((item) => (item.type === type ? item[type] : [])).join('')
  return {
    text: words('text') + (message.tool_plan ?? ''),
    reasoning: words('thinking'),
    calls: (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }: Body) => ({
      id,
      name,
      arguments: text,
    })),
    citations: (message.citations ?? []).flatMap(({ text: cited_text, start, end, sources }: Body) =>
      sources.map(({ id, document = {} }: Body) => ({
        ...(document.url && { url: document.url }),
        title: document.title ?? id,
        cited_text,
        start,
        end,
      })),
    ),
    finish: finishes[raw] ?? 'unknown',
    raw,
    usage: usageOf(usage),
    logprobs: logprobs.map(({ text, logprobs }: Body) => [
      text,
      logprobs.reduce((sum: number, one: number) => sum + one),
    ]),
    id,
  }
}

function usageOf({ billed_units: billed, tokens = {} }: Body): Facts['usage'] {
  if (!billed) return {}
  const { reasoning_tokens: reasoning = 0, image_tokens: image = 0 } = tokens
  const usage = {
    input: billed.input_tokens - image,
    input_image: image,
    output: billed.output_tokens - reasoning,
    reasoning,
  }
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== 0))
}

const document = 'cohere.v2.schema.json'

/** Why the published schema of chat v2 cannot be read here; undefined when it can. */
export const chatSchemaMissing = specMissing(document)

/** The violations of the published schema and the documented limits in a request. */
export function chatViolations({ stream, ...body }: Body): string[] {
  if (!validate) return []
  validate(body)
  const form = (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  const limits: [string, boolean][] = [
    ['stream is said', typeof stream === 'boolean'],
    ['at most five stop sequences', (body.stop_sequences ?? []).length <= 5],
    ['p', within(body.p, 0.01, 0.99)],
    ['k', within(body.k, 0, 500)],
    ['frequency_penalty', within(body.frequency_penalty, 0, 1)],
    ['presence_penalty', within(body.presence_penalty, 0, 1)],
    ['JSON beside tools or documents', !body.response_format || !(body.tools || body.documents)],
    ['a choice without tools', !body.tool_choice || body.tools?.length > 0],
    ['an empty message', body.messages.every(({ content }: Body) => content === undefined || content.length > 0)],
  ]
  return [...form, ...limits.filter(([, holds]) => !holds).map(([name]) => name)]
}

function within(value: number | undefined, least: number, most: number): boolean {
  return value === undefined || (value >= least && value <= most)
}

const published = publishedSpec(document)
const validate = published && requestValidator(published)

function requestValidator({ definitions }: Body) {
  const ajv = new Ajv({ strict: false, allErrors: true })
  return ajv.compile({ $ref: '#/definitions/V2ChatRequest.Raw', definitions })
}
