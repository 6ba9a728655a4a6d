import type { Received } from '../../helpers/provider.ts'
import { type Recording, recordedEvents } from '../../helpers/recordings.ts'

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
export type Body = any

/** The reply of a loopback provider; `text` is bytes where the wire is binary. */
export type Answer = { status: number; headers: Record<string, string>; text: string | Buffer }

/** The recorded answer as it came; an array of events is framed as its provider frames streams for us. */
export function recordedAnswer({ response }: Recording): Answer {
  const { status, headers, body, sse, text, ndjson, body_base64 } = response
  if (sse !== undefined) return { status, headers: streamHeaders, text: sse }
  if (ndjson !== undefined) return { status, headers: { 'content-type': linesType }, text: ndjson }
  if (body_base64 !== undefined) return framed(Buffer.from(body_base64, 'base64'))
  if (Array.isArray(body) && status === 200) return streamOf(body.map((data) => ({ data })))
  return { status, headers: { ...headers, 'content-type': jsonType }, text: text ?? JSON.stringify(body) }
}

/** A whole answer of our making. */
export function wholeOf(body: Body): Answer {
  return { status: 200, headers: { 'content-type': jsonType }, text: JSON.stringify(body) }
}

/** A stream of our making. */
export function streamOf(frames: readonly { event?: string; data: Body }[], terminator = ''): Answer {
  const blocks = frames.map(({ event, data }) => {
    const name = event ? `event: ${event}\n` : ''
    return `${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  })
  return { status: 200, headers: streamHeaders, text: blocks.join('') + terminator }
}

/** A stream of JSON lines of our making. */
export function linesAnswer(lines: readonly Body[]): Answer {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  return { status: 200, headers: { 'content-type': linesType }, text }
}

/** A stream of binary frames. */
export function framed(text: Buffer): Answer {
  return { status: 200, headers: { 'content-type': 'application/vnd.amazon.eventstream' }, text }
}

/** Whether the recording is a stream. */
export function isStreamed(recording: Recording): boolean {
  const { sse, ndjson, body_base64 } = recording.response
  return (sse ?? ndjson ?? body_base64) !== undefined || recordedEvents(recording).length > 0
}

const jsonType = 'application/json'
const linesType = 'application/x-ndjson'
const streamHeaders = { 'content-type': 'text/event-stream' }

/** The shortest good answer of each format, for requests that are not replays. */
export function plainAnswer(slug: string, { path, body }: Received): Answer {
  if (slug === 'google') {
    const body = { candidates: [{ content: { parts: [{ text: 'fine' }] }, finishReason: 'STOP' }] }
    return path.includes('stream') ? streamOf([{ data: body }]) : wholeOf(body)
  }
  if (slug === 'anthropic') {
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} }
    if (!body.stream) return wholeOf({ ...message, content: [{ type: 'text', text: 'fine' }], stop_reason: 'end_turn' })
    const begin = { event: 'message_start', data: { type: 'message_start', message } }
    const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: {} }
    return streamOf([begin, { event: 'message_delta', data: end }])
  }
  const whole = { id: 'chatcmpl-1', created: 1, model: 'm' }
  const choice = { index: 0, finish_reason: 'stop' }
  if (!body.stream)
    return wholeOf({ ...whole, choices: [{ ...choice, message: { role: 'assistant', content: 'fine' } }] })
  return streamOf([{ data: { ...whole, choices: [{ ...choice, delta: { content: 'fine' } }] } }], 'data: [DONE]\n\n')
}
