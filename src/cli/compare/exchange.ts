import { RouterError } from '../../core/errors.ts'
import { type Json, parseJson } from '../../core/json.ts'
import type { HttpClient, HttpResponse } from '../../upstream/http/types.ts'
import type { ReplayedRequest } from './requests.ts'

/** One gateway: its address without `/v1`, and the key for it. */
export type Gateway = { url: string; key: string }

/** An answer of a gateway. A stream is the list of its events; `isWhole` says whether it has its end. Times in milliseconds. */
export type Exchange = {
  status: number
  headers: { readonly [name: string]: string }
  json?: Json
  events?: Json[]
  isWhole?: boolean
  /** Failure of the connection. */
  failure?: string
  ms: number
  firstMs: number
}

const maxBytes = 64 * 1_048_576

/** Sends a request to a gateway and reads the whole answer. */
export async function exchange(
  { path, body, headers }: ReplayedRequest,
  { url, key }: Gateway,
  { client, timeoutMs }: { client: HttpClient; timeoutMs: number },
): Promise<Exchange> {
  const begun = performance.now()
  const timeouts = {
    connectMs: 10_000,
    firstEventMs: timeoutMs,
    betweenEventsMs: timeoutMs,
    wholeMs: timeoutMs,
    totalMs: timeoutMs,
  }
  try {
    const response = await client.send({
      url: `${url}${path}`,
      headers: { ...headers, 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: Buffer.from(JSON.stringify(body)),
      timeouts,
      signal: AbortSignal.timeout(timeoutMs),
      provider: 'gateway',
    })
    const { text, firstAt } = await textOf(response)
    const ms = performance.now() - begun
    const known = { status: response.status, headers: singleHeaders(response), ms, firstMs: firstAt - begun }
    return { ...known, ...contentOf(text, known.headers['content-type'] ?? '') }
  } catch (thrown) {
    const ms = performance.now() - begun
    const isExpected = thrown instanceof RouterError || (thrown as Error).name === 'TimeoutError'
    if (!isExpected) throw thrown
    return { status: 0, headers: {}, failure: (thrown as Error).message, ms, firstMs: ms }
  }
}

async function textOf({ bytes }: HttpResponse): Promise<{ text: string; firstAt: number }> {
  const chunks: Uint8Array[] = []
  let firstAt: number | undefined
  let size = 0
  for await (const chunk of bytes) {
    firstAt ??= performance.now()
    size += chunk.length
    if (size > maxBytes) throw new RouterError('provider_unreadable', `the answer has more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return { text: Buffer.concat(chunks).toString(), firstAt: firstAt ?? performance.now() }
}

function singleHeaders({ headers }: HttpResponse): { [name: string]: string } {
  const single = Object.entries(headers).map(
    ([name, value]) => [name.toLowerCase(), [value].flat().join(', ')] as const,
  )
  return Object.fromEntries(single)
}

/** Reads an answer: JSON, or the events of a stream. Anything else has neither. */
function contentOf(text: string, type: string): Pick<Exchange, 'json' | 'events' | 'isWhole'> {
  if (!type.startsWith('text/event-stream')) {
    const json = parseJson(text)
    return json === undefined ? {} : { json }
  }
  const data = text.split(/\r?\n\r?\n/).flatMap((block) => {
    const lines = block.split(/\r?\n/).flatMap((line) => /^data: ?(.*)$/.exec(line)?.[1] ?? [])
    return lines.length === 0 ? [] : [lines.join('\n')]
  })
  const events = data.map(parseJson).filter((one) => one !== undefined)
  return { events, isWhole: data.at(-1) === '[DONE]' || endsByEvent(events.at(-1)) }
}

/** Checks whether the last event of a stream is the end of a stream of the Messages or Responses API. */
function endsByEvent(last: Json | undefined): boolean {
  const type = typeof last === 'object' && last !== null && !Array.isArray(last) ? last.type : undefined
  return (
    type === 'message_stop' || (typeof type === 'string' && /^response\.(?:completed|incomplete|failed)$/.test(type))
  )
}
