import type { Answer, Asked } from './answer.ts'

/** An error as the services word it: OpenAI by `code`, Anthropic by `type`; `elsewhere` is what differs at Anthropic. */
export type Failure = {
  status: number
  code: string
  type: string
  message: string
  elsewhere?: { status?: number; message: string }
}

/** The events of a stream as text, in the order in which they are sent. */
export type StreamParts = {
  /** What comes before any content. */
  opening: string[]
  /** One event for each piece of the answer. */
  pieces: string[]
  closing: string[]
  /** Why the answer ends, and what was counted. */
  finish: string[]
  /** That the stream ends. */
  done: string[]
}

/** A wire format of providers. */
export type Format = {
  path: string
  read(body: Body): Asked
  whole(answer: Answer): object
  stream(answer: Answer, asked: Asked): StreamParts
  error(failure: Failure): { status: number; body: object }
  errorEvent(failure: Failure): string
  /** A sign of life without content. */
  ping: string
}

/** A JSON object that a gateway sent. */
export type Body = { readonly [name: string]: unknown }

/** A server-sent event. */
export function event(data: object, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
}

/** The text of the last message where it is the assistant's, else nothing. */
export function prefillIn(messages: unknown): string {
  const last = Object(Array.isArray(messages) ? messages.at(-1) : undefined)
  return last.role === 'assistant' ? textOf(last.content) : ''
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part) => String(Object(part).text ?? '')).join('') : ''
}

/** A limit in a request, or none. */
export function limitIn(...values: unknown[]): number {
  return values.find((value) => typeof value === 'number') ?? Number.POSITIVE_INFINITY
}
