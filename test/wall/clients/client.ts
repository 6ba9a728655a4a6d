/** What a caller got. */
export type Seen = {
  /** 0 where there was no response. */
  status: number
  headers: Headers
  text: string
  /** How the answer ends: each finish reason, terminator of success and error in the order in which they came. */
  endings: Ending[]
  /** What the answer was counted as. */
  usage?: { input: number; output: number }
  error?: { type?: string; code?: string; message?: string }
  /** What the API does not allow. */
  wrong: string[]
  /** Milliseconds until the first text, and until the end. */
  firstMs?: number
  ms: number
}

export type Ending = 'finish' | 'terminator' | 'error'

/** One of the APIs that clients of gateways speak. */
export type ClientApi = {
  name: 'chat' | 'messages' | 'responses'
  path: string
  /** The body of a request for an answer to this text. */
  body(model: string, text: string, stream: boolean): object
  /** Reads a whole answer with status 200. */
  readWhole(body: unknown, seen: Seen): void
  /** Reads one event of a stream. */
  readEvent(event: StreamEvent, seen: Seen): void
}

/** `data` is the text where it is not JSON. */
export type StreamEvent = { name?: string; data: unknown }

/** A gateway, and what its callers say. `limitMs` is the longest that a call may take. */
export type Gateway = { url: string; key: string; limitMs: number }

/** Makes a call and reads the answer to its end. Never throws. */
export async function call(
  { url, key, limitMs }: Gateway,
  api: ClientApi,
  asked: { model: string; text: string; stream: boolean; id?: string },
): Promise<Seen> {
  const began = performance.now()
  const seen: Seen = { status: 0, headers: new Headers(), text: '', endings: [], wrong: [], ms: 0 }
  try {
    const response = await fetch(url + api.path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'x-api-key': key,
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
        ...(asked.id !== undefined && { 'x-request-id': asked.id }),
      },
      body: JSON.stringify(api.body(asked.model, asked.text, asked.stream)),
      signal: AbortSignal.timeout(limitMs),
    })
    seen.status = response.status
    seen.headers = response.headers
    if (response.status !== 200) readError(await response.text(), seen)
    else if (asked.stream) await readStream(response, { api, seen, began })
    else api.readWhole(await response.json(), seen)
  } catch (error) {
    seen.wrong.push(`the call broke off: ${reasonOf(error)}`)
  }
  seen.ms = performance.now() - began
  return seen
}

/** An error of any of the APIs. */
export function noteError(body: unknown, seen: Seen): void {
  const { type, code, message } = Object(Object(body).error ?? body)
  seen.endings.push('error')
  seen.error = { type, code, message }
  if (typeof message !== 'string' || message === '') seen.wrong.push('an error without a message')
}

function readError(text: string, seen: Seen): void {
  try {
    noteError(JSON.parse(text), seen)
  } catch {
    seen.endings.push('error')
    seen.wrong.push(`an error that is not JSON: ${text.slice(0, 80)}`)
  }
}

type Reading = { api: ClientApi; seen: Seen; began: number }

async function readStream(response: Response, { api, seen, began }: Reading): Promise<void> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
    seen.wrong.push(`a stream of the type ${response.headers.get('content-type')}`)
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of response.body ?? []) {
    rest += decoder.decode(bytes, { stream: true })
    const frames = rest.split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) readFrame(frame, api, seen)
    if (seen.text !== '') seen.firstMs ??= performance.now() - began
  }
  if (rest.trim() !== '') seen.wrong.push(`the stream ends within an event: ${rest.slice(0, 80)}`)
}

function readFrame(frame: string, api: ClientApi, seen: Seen): void {
  const lines = frame.split('\n').filter((line) => !line.startsWith(':'))
  const values = (field: string) =>
    lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).trim())
  const data = values('data').join('\n')
  if (data === '') return
  const [name] = values('event')
  api.readEvent({ ...(name !== undefined && { name }), data: jsonOr(data) }, seen)
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function reasonOf(error: unknown): string {
  const { name, message, cause } = error as Error
  return [name, message, cause instanceof Error ? cause.message : ''].filter(Boolean).join(', ')
}
