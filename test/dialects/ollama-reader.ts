import { Ajv } from 'ajv'
import type { Recording } from '../helpers/recordings.ts'

// The independent reader of Ollama's chat: the contents of a recording, read without the mappings.

/** The contents of a recorded reply. */
export type Facts = {
  text: string
  reasoning: string
  calls: { name: string; arguments: unknown; id: string | undefined }[]
  finish: string
  raw: string
  usage: { [name: string]: number }
  model: string
  created: number
}

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
export type Body = any

/** The lines of a streamed recording; undefined when it is a whole answer. */
export function linesOf({ response }: Recording): Body[] | undefined {
  const { ndjson } = response as Recording['response'] & { ndjson?: string }
  return ndjson
    ?.split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line))
}

/** The whole answer that lines add up to. */
export function joined(lines: Body[]): Body {
  const valuesOf = (name: string) => lines.flatMap(({ message }) => message?.[name] ?? [])
  const message = {
    role: 'assistant',
    content: valuesOf('content').join(''),
    ...(valuesOf('thinking').length > 0 && { thinking: valuesOf('thinking').join('') }),
    ...(valuesOf('tool_calls').length > 0 && { tool_calls: valuesOf('tool_calls') }),
  }
  return { ...lines.at(-1), created_at: lines[0].created_at, message }
}

/** The lines of a whole reply, in pieces of a few characters. */
export function linesFor({ model, created_at, message, ...end }: Body): Body[] {
  const line = (message: object) => ({
    model,
    created_at,
    message: { role: 'assistant', content: '', ...message },
    done: false,
  })
  const pieces = (text = ''): string[] => text.match(/[\s\S]{1,7}/gu) ?? []
  return [
    ...pieces(message.thinking).map((thinking) => line({ thinking })),
    ...pieces(message.content).map((content) => line({ content })),
    ...(message.tool_calls ?? []).map((call: Body) => line({ tool_calls: [call] })),
    { ...line({}), ...end },
  ]
}

/** The contents of a reply. */
export function readIndependently({ model, created_at, message, ...end }: Body): Facts {
  const calls: Body[] = message.tool_calls ?? []
  const raw = end.done_reason
  return {
    text: message.content,
    reasoning: message.thinking ?? '',
    calls: calls.map(({ id, function: { name, arguments: given } }) => ({ id, name, arguments: given })),
    finish: calls.length > 0 ? 'tool_calls' : raw,
    raw,
    usage: {
      ...(end.prompt_eval_count !== undefined && { input: end.prompt_eval_count }),
      ...(end.eval_count !== undefined && { output: end.eval_count }),
    },
    model,
    created: Math.floor(Date.parse(created_at) / 1_000),
  }
}

const text = { type: 'string' }
const count = { type: 'integer' }
const number = { type: 'number' }
const call = {
  type: 'object',
  additionalProperties: false,
  required: ['function'],
  properties: {
    id: text,
    function: {
      type: 'object',
      additionalProperties: false,
      required: ['name', 'arguments'],
      properties: { name: text, arguments: { type: 'object' } },
    },
  },
}
const message = {
  type: 'object',
  additionalProperties: false,
  required: ['role', 'content'],
  properties: {
    role: { enum: ['system', 'user', 'assistant', 'tool'] },
    content: text,
    thinking: text,
    images: { type: 'array', minItems: 1, items: { type: 'string', pattern: '^[A-Za-z0-9+/]+={0,2}$' } },
    tool_calls: { type: 'array', minItems: 1, items: call },
    tool_name: text,
    tool_call_id: text,
  },
}
const tool = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'function'],
  properties: {
    type: { const: 'function' },
    function: {
      type: 'object',
      additionalProperties: false,
      required: ['name', 'parameters'],
      properties: { name: text, description: text, parameters: { type: 'object' } },
    },
  },
}

/** The request as Ollama documents it. It ignores names it does not know, so a misspelt one would be lost in silence. */
const request = {
  type: 'object',
  additionalProperties: false,
  required: ['model', 'messages', 'stream'],
  properties: {
    model: text,
    messages: { type: 'array', minItems: 1, items: message },
    stream: { type: 'boolean' },
    tools: { type: 'array', minItems: 1, items: tool },
    format: { anyOf: [{ const: 'json' }, { type: 'object' }] },
    think: { enum: [true, false, 'low', 'medium', 'high', 'max'] },
    keep_alive: { type: ['string', 'number'] },
    truncate: { type: 'boolean' },
    shift: { type: 'boolean' },
    logprobs: { type: 'boolean' },
    top_logprobs: { type: 'integer', minimum: 0, maximum: 20 },
    options: {
      type: 'object',
      minProperties: 1,
      properties: {
        num_ctx: count,
        num_predict: count,
        top_k: count,
        seed: count,
        temperature: number,
        top_p: number,
        min_p: number,
        frequency_penalty: number,
        presence_penalty: number,
        stop: { type: 'array', items: text },
      },
    },
  },
}

const validate = new Ajv({ strict: false, allErrors: true }).compile(request)

/** The violations of the documented form in a request. */
export function chatViolations(body: object): string[] {
  validate(body)
  return (validate.errors ?? []).map(({ instancePath, message: what }) => `${instancePath} ${what}`)
}
