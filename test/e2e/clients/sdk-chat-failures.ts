import OpenAI, { type APIError } from 'openai'
import { expect, test } from 'vitest'
import { pause, within } from '../../helpers/provider.ts'
import { eventually } from '../../helpers/time.ts'
import { type Column, chatRow, columnOf, type Grid, hello, onlyChoice, simulatorOf, user } from './sdk-chat-cells.ts'
import { greeting } from './sdk-conversations.ts'
import { wires } from './sdk-grid.ts'
import type { Reply } from './sdk-wire.ts'
import { chatWire } from './sdk-wires-chat.ts'

/** The formats whose failures are played. */
const failing = wires.filter(({ failures }) => failures)
const good: Reply = { text: greeting }

/** `openai` SDK, Chat Completions: failures, and calls that a client aborts. */
export function chatFailureRows(grid: Grid): void {
  for (const refusal of refusals) refusalRow(grid, ...refusal)
  for (const [what, step, word] of breaks) breakRow(grid, what, step, word)
  leavingRows(grid)
  retryRows(grid)
  refusedByRouterRows(grid)
}

/** The class of the SDK and the status by which a client learns of a provider's refusal. */
const refusals: [status: number, name: string, kind: new (...args: never[]) => unknown, forClient: number][] = [
  [400, 'BadRequestError', OpenAI.BadRequestError, 400],
  [401, 'InternalServerError', OpenAI.InternalServerError, 502],
  [403, 'InternalServerError', OpenAI.InternalServerError, 502],
  [404, 'BadRequestError', OpenAI.BadRequestError, 400],
  [413, 'APIError', OpenAI.APIError, 413],
  [429, 'RateLimitError', OpenAI.RateLimitError, 429],
  [500, 'InternalServerError', OpenAI.InternalServerError, 502],
  [503, 'InternalServerError', OpenAI.InternalServerError, 502],
]

function refusalRow(grid: Grid, ...[status, name, kind, forClient]: (typeof refusals)[number]): void {
  const title = `the provider answers ${status}: ${name} ${forClient}`
  const cell = async (column: Column) => {
    const error = await failureOf(column.client.chat.completions.create(asking(column, `fail ${status}`)))
    expect(error).toBeInstanceOf(kind)
    expect(error).toMatchObject({ status: forClient, error: { origin: 'provider', provider: column.name } })
    expect(error.message).toContain(column.way ? `FakeProvider ${status}` : `Failing with ${status}`)
    expect(error.requestID).toMatch(/^\S{8,}$/)
    if (status === 429) expect(error.headers?.get('retry-after')).toBe(column.way ? '7' : '1')
  }
  chatRow(grid, title, [{ refuse: status }], cell, failing)
}

/** A request to the model that fails on request. */
const asking = ({ faulty }: Column, content: string) => ({ model: faulty, messages: [user(content)] })

async function failureOf(promise: PromiseLike<unknown>): Promise<APIError> {
  const thrown = await Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof OpenAI.APIError) return thrown
  throw new Error(`expected an APIError, got ${thrown}`, { cause: thrown })
}

/** The behavior of a stream after its first chunks, and the prompt for it. */
const breaks = [
  ['breaks off', 'break', 'cut'],
  ['reports an error', 'fail', 'garble'],
] as const

function breakRow(grid: Grid, what: string, step: 'break' | 'fail', word: string): void {
  const cell = async (column: Column) => {
    const body = asking(column, `please ${word} it`)
    let words = ''
    const stream = await column.client.chat.completions.create({ ...body, stream: true })
    const reading = (async () => {
      for await (const { choices } of stream) words += choices[0]?.delta.content ?? ''
    })()
    const error = await failureOf(reading)
    expect(error).toMatchObject({ type: 'api_error', error: { origin: 'provider', provider: column.name } })
    expect(words).not.toBe('')
    await failureOf(column.client.chat.completions.stream(body).finalChatCompletion())
  }
  chatRow(grid, `a stream ${what}: APIError`, [step, step], cell, step === 'fail' ? failing : wires)
}

/** The provider notices that the client has left, and the next call is as good as any. */
async function expectDisconnected(column: Column): Promise<void> {
  await within(5_000, 'leaving the provider', column.way?.provider.received[0]?.left ?? Promise.resolve())
  await expectNextCallWorks(column)
}

async function expectNextCallWorks(column: Column): Promise<void> {
  const completion = await column.client.chat.completions.create(hello(column))
  expect(onlyChoice(completion).message.content).toBe(greeting)
}

function leavingRows(grid: Grid): void {
  chatRow(grid, 'abort while waiting: APIUserAbortError', ['silence', good], async (column) => {
    const leaving = new AbortController()
    const body = asking(column, 'please stall')
    const aborted = failureOf(column.client.chat.completions.create(body, { signal: leaving.signal }))
    if (column.way) await eventually(() => expect(column.way?.provider.received).toHaveLength(1))
    else await pause(100)
    leaving.abort()
    expect(await within(5_000, 'the abort', aborted)).toBeInstanceOf(OpenAI.APIUserAbortError)
    await expectDisconnected(column)
  })

  chatRow(grid, 'timeout of the SDK: APIConnectionTimeoutError', ['silence', good], async (column) => {
    const body = asking(column, 'please stall')
    const error = await failureOf(column.client.chat.completions.create(body, { timeout: 200 }))
    expect(error).toBeInstanceOf(OpenAI.APIConnectionTimeoutError)
    await expectDisconnected(column)
  })

  chatRow(grid, 'abort in a stream: APIUserAbortError', ['stay', good], async (column) => {
    const stream = column.client.chat.completions.stream(asking(column, 'please stall'))
    const aborted = failureOf(stream.finalChatCompletion())
    await stream.emitted('content')
    stream.abort()
    expect(await within(5_000, 'the abort', aborted)).toBeInstanceOf(OpenAI.APIUserAbortError)
    await expectDisconnected(column)
  })

  chatRow(grid, 'leaving a stream by break', ['stay', good], async (column) => {
    const body = { ...asking(column, 'please stall'), stream: true as const }
    for await (const { choices } of await column.client.chat.completions.create(body)) {
      if (choices[0]?.delta.content) break
    }
    await expectDisconnected(column)
  })
}

function retryRows(grid: Grid): void {
  const steps = [{ refuse: 503 }, good, { refuse: 400 }]
  const cell = async (column: Column) => {
    const patient = column.client.withOptions({ maxRetries: 2 })
    const { choices } = await patient.chat.completions.create(asking(column, 'Hello'))
    expect(choices[0]?.message.role).toBe('assistant')
    // A second request would be answered with a usual reply.
    const error = await failureOf(patient.chat.completions.create(asking(column, 'fail 400')))
    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
  }
  chatRow(grid, 'maxRetries: what may pass is sent again, a refused request is not', steps, cell, failing)

  test('after 429 the SDK waits as long as Retry-After requires', async () => {
    const column = columnOf(grid.wayTo(chatWire))
    column.way?.provider.play({ refuse: 429, retryAfter: '1' }, good)
    const begun = performance.now()
    await expectNextCallWorks({ ...column, client: column.client.withOptions({ maxRetries: 1 }) })
    expect(performance.now() - begun).toBeGreaterThan(950)
  })
}

function refusedByRouterRows(grid: Grid): void {
  chatRow(
    grid,
    'models.list()',
    [],
    async ({ client, plain, thinker }) => {
      const ids: string[] = []
      for await (const { id } of client.models.list()) ids.push(id)
      expect(ids).toEqual(expect.arrayContaining([plain, thinker]))
    },
    listed,
  )

  chatRow(grid, 'a wrong field: BadRequestError with its name', [], async (column) => {
    const body = { ...hello(column), temperature: 'warm' as never }
    const error = await failureOf(column.client.chat.completions.create(body))
    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
    expect(error).toMatchObject({ status: 400, param: 'temperature', error: { origin: 'router' } })
    expect(error.message).toContain('temperature')
  })

  chatRow(
    grid,
    'unknown model: NotFoundError',
    [],
    async (column) => {
      const body = { ...hello(column), model: `${column.name}/nobody` }
      const error = await failureOf(column.client.chat.completions.create(body))
      expect(error).toBeInstanceOf(OpenAI.NotFoundError)
      expect(error).toMatchObject({ status: 404, param: 'model', error: { origin: 'router' } })
      expect(error.message).toMatch(new RegExp(`'${column.name}' .* 'nobody'`))
    },
    listed,
  )

  chatRow(grid, 'no key: AuthenticationError', [], async (column) => {
    const bare = column.client.withOptions({ defaultHeaders: { authorization: null } })
    const error = await failureOf(bare.chat.completions.create(hello(column)))
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(error.status).toBe(401)
  })

  chatRow(grid, 'wrong key: PermissionDeniedError', [], async (column) => {
    const stranger = column.client.withOptions({ apiKey: 'ir-unknown' })
    const error = await failureOf(stranger.chat.completions.create(hello(column)))
    expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError)
    expect(error.status).toBe(403)
  })

  test('a body over the limit: APIError 413, and the next call works', async () => {
    const column = simulatorOf(grid.router())
    const body = { ...hello(column), messages: [user('x'.repeat(51 * 1024 * 1024))] }
    const error = await within(10_000, 'the refusal', failureOf(column.client.chat.completions.create(body)))
    expect(error).toMatchObject({ status: 413, type: 'request_too_large' })
    await expectNextCallWorks(column)
  })
}

/** The others pass on every model, and Ollama lists none. */
const listed = wires.filter(({ slug }) => !['ollama', 'bedrock'].includes(slug))
