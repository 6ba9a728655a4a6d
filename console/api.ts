import { isFromProxy, noteAnswer } from './reachable.ts'
import { key, signOut } from './session.ts'

/** An answer that is an error, as the API reports it. `param` names the field that is wrong. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | undefined

  constructor(status: number, { message, code, param }: { message: string; code?: string; param?: string | null }) {
    super(message)
    this.status = status
    this.code = code ?? ''
    this.param = param ?? undefined
  }
}

/** The router did not answer, or not to the end: it was stopped, or the network is gone. */
export class UnreachableError extends Error {
  constructor(message = 'The router did not answer.') {
    super(message)
  }
}

export type RequestOptions = {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Body of the request, sent as JSON. */
  body?: unknown
  query?: Query
  headers?: Record<string, string>
  signal?: AbortSignal
  /** A key other than that of the session. */
  as?: string
}
/** Parameters of a path; empty and undefined ones are left out. */
export type Query = { readonly [name: string]: string | number | readonly string[] | undefined }

/**
 * Sends a request and returns the answer, whatever its status. `path` begins behind the address of the router: `v1/manage/org`.
 * Throws UnreachableError.
 */
export async function ask(
  path: string,
  { method = 'GET', body, query = {}, headers = {}, signal, as }: RequestOptions = {},
): Promise<Response> {
  const response = await fetchOrFail(`${root}${path}${queryText(query)}`, {
    method,
    headers: {
      authorization: `Bearer ${as ?? key.value}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    cache: 'no-cache',
  })
  noteAnswer(!isFromProxy(response))
  if (isFromProxy(response)) throw new UnreachableError()
  return response
}

/** Sends a request. Throws UnreachableError unless it was aborted. */
async function fetchOrFail(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init)
  } catch (thrown) {
    if (init.signal?.aborted) throw thrown
    noteAnswer(false)
    throw new UnreachableError()
  }
}

/** Awaits a part of an answer. Throws UnreachableError where the connection ends before it is there, unless the request was aborted. */
export async function received<Part>(part: Promise<Part>): Promise<Part> {
  try {
    return await part
  } catch (thrown) {
    if ((thrown as Error).name === 'AbortError') throw thrown
    throw new UnreachableError('The connection to the router was lost before the answer was complete.')
  }
}

/** Sends a request and returns the JSON of a successful answer; undefined where it has none. Throws ApiError, UnreachableError. */
export async function api<Answer>(path: string, asked: RequestOptions = {}): Promise<Answer> {
  const response = await ask(path, asked)
  if (!response.ok) throw await errorIn(response, asked.as === undefined)
  const text = await received(response.text())
  return (text === '' ? undefined : JSON.parse(text)) as Answer
}

/** Returns all entries of a list with pages, up to `most`. */
export async function all<Item>(path: string, name: string, signal?: AbortSignal, most = 10_000): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | undefined
  do {
    const page: { [name: string]: unknown } = await api(path, { query: { cursor }, ...(signal && { signal }) })
    items.push(...(page[name] as Item[]))
    cursor = page.next_cursor as string | undefined
  } while (cursor !== undefined && items.length < most)
  return items
}

/** Returns the error of an answer. A key that is no longer valid ends the session. */
export async function errorIn(response: Response, isOwn = true): Promise<ApiError> {
  const text = await received(response.text())
  let told: { message: string; code?: string; param?: string | null } | undefined
  try {
    told = JSON.parse(text).error
  } catch {}
  const error = new ApiError(
    response.status,
    told ?? { message: `The router answered ${response.status}. ${text.slice(0, 200)}` },
  )
  if (isOwn && (error.code === 'invalid_key' || error.code === 'missing_key')) signOut(error.message)
  return error
}

/** Yields the data of server-sent events, parsed, until the signal ends them. Throws ApiError. */
export async function* events<Data>(path: string, signal: AbortSignal): AsyncGenerator<Data> {
  const response = await ask(path, { signal, headers: { accept: 'text/event-stream' } })
  if (!response.ok) throw await errorIn(response)
  for await (const { data } of frames(response)) yield JSON.parse(data) as Data
}

/** Yields server-sent events as they arrive. */
export async function* frames(response: Response): AsyncGenerator<{ event: string; data: string }> {
  const bytes = response.body as ReadableStream<Uint8Array<ArrayBuffer>>
  const reader = bytes.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await received(reader.read())
      if (done) return
      const blocks = (rest + value).split(/\r?\n\r?\n/)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const lines = block.split(/\r?\n/)
        const of = (name: string) =>
          lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart())
        const data = of('data').join('\n')
        if (data !== '') yield { event: of('event')[0] ?? '', data }
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** The console is one folder below the router, also behind the prefix of a proxy. */
const root = '../'

export function queryText(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (typeof value === 'object' ? value : [value])
      .filter((one) => one !== undefined && one !== '')
      .map((one) => `${encodeURIComponent(name)}=${encodeURIComponent(String(one))}`),
  )
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}
