import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newSecret, storedSecret } from '../../../src/access/secrets.ts'
import type { Permissions } from '../../../src/store/keys.ts'
import { openStore, type Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

const claude = 'anthropic/claude-sonnet-4-5'
const native = 'openai-responses/gpt-5.2'

let anthropic: LoopbackProvider
let upstream: LoopbackProvider
let router: TestRouter
let store: Store
let openai: OpenAI
/** A response that the provider has lost. */
let forgotten: string | undefined

beforeAll(async () => {
  anthropic = await loopbackProvider((_, response) => answerJson(response, thoughtfulCall))
  upstream = await loopbackProvider(({ body }, response) => {
    if (forgotten !== undefined && body.previous_response_id === forgotten) {
      const error = { message: 'Gone.', type: 'invalid_request_error', code: 'previous_response_not_found' }
      return answerJson(response, { error }, 400)
    }
    const made = nativeResponse(`resp_up${upstream.received.length}`, body)
    if (!body.stream) return answerJson(response, made)
    beginStream(response)
    const say = (type: string, sequence_number: number, response_: object) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, response: response_ })}\n\n`)
    say('response.created', 0, { ...made, status: 'in_progress', output: [] })
    say('response.completed', 1, made)
    response.end()
  })
  router = await testRouter({
    providers: { anthropic: { base_url: anthropic.url }, 'openai-responses': { base_url: upstream.url } },
    env: { ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' },
  })
  store = await openStore(`sqlite:${join(router.folder, 'data/router.sqlite')}`)
  openai = router.openai()
})

afterAll(async () => {
  await store.close()
  await router.end()
  await anthropic.close()
  await upstream.close()
})

beforeEach(() => {
  anthropic.received.length = 0
  upstream.received.length = 0
  forgotten = undefined
})

const thoughtfulCall = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5',
  content: [
    { type: 'thinking', thinking: 'A look at the sky.', signature: 'c2VhbA==' },
    { type: 'text', text: 'One moment.' },
    { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } },
  ],
  stop_reason: 'tool_use',
  usage: { input_tokens: 5, output_tokens: 7 },
}

function nativeResponse(id: string, { store = true, model, previous_response_id = null }: Record<string, unknown>) {
  return {
    id,
    object: 'response',
    created_at: 1,
    status: 'completed',
    model,
    previous_response_id,
    store,
    output: [
      { id: `rs_${id}`, type: 'reasoning', summary: [] },
      {
        id: `msg_${id}`,
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: `This is ${id}.`, annotations: [] }],
      },
    ],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  }
}

/** A client of a new organization, and that organization. */
async function newcomer(
  permissions: Partial<Permissions> = { manage: 'none', completions: 'write' },
  organization?: string,
) {
  const id = organization ?? (await store.organizations.create(`org ${newSecret()}`)).id
  const secret = newSecret()
  await store.keys.create({
    ...storedSecret(secret),
    organization: id,
    name: 'test',
    permissions,
    createdBy: { id: 'test', email: '' },
  })
  return { id, client: new OpenAI({ baseURL: `${router.url}/v1`, apiKey: secret, maxRetries: 0 }) }
}

/** Everything that the database has on disk. */
function onDisk(): string {
  const folder = join(router.folder, 'data')
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('\n')
}

/** The error of a call. */
function failure(call: Promise<unknown>): Promise<object> {
  return call.then(
    () => ({}),
    ({ status, code, param, type, error }) => ({ status, code, param, type, message: error?.message }),
  )
}

describe('a conversation by previous_response_id', () => {
  test('goes on over many turns, whole or streamed', async () => {
    const first = await openai.responses.create({ model: 'demo/echo', input: 'My name is Ada.' })
    const second = await openai.responses
      .stream({ model: 'demo/echo', input: 'What did I say?', previous_response_id: first.id })
      .finalResponse()
    const third = await openai.responses.create({ model: 'demo/echo', previous_response_id: second.id, input: 'And?' })
    expect([second.previous_response_id, third.previous_response_id]).toEqual([first.id, second.id])
    const counts = [first, second, third].map(({ usage }) => usage?.input_tokens ?? 0)
    expect(counts).toEqual([...counts].sort((a, b) => a - b))
    expect(new Set(counts).size).toBe(3)
  })

  test('reaches another format as a history with its signatures, tool calls and all', async () => {
    const tools = [{ type: 'function' as const, name: 'weather', parameters: { type: 'object' }, strict: false }]
    const options = { model: claude, tools, reasoning: { effort: 'low' as const }, store: true }
    const requested = await openai.responses.create({
      ...options,
      instructions: 'Be brief.',
      input: 'Weather in Oslo?',
    })
    const call = requested.output.find((item) => item.type === 'function_call')
    expect(call?.call_id).toBe('toolu_1')
    const output: ResponseInputItem[] = [{ type: 'function_call_output', call_id: 'toolu_1', output: 'Snow.' }]
    const answered = await openai.responses
      .create({ ...options, previous_response_id: requested.id, input: output })
      .withResponse()
    expect(anthropic.received[1]?.body.messages).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'Weather in Oslo?' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'A look at the sky.', signature: 'c2VhbA==' },
          { type: 'text', text: 'One moment.' },
          { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1' }] },
    ])
    // Instructions are those of their own turn.
    expect(JSON.stringify(anthropic.received[1]?.body)).not.toContain('Be brief.')
    // The router's own storage is not a loss.
    expect(answered.response.headers.get('x-router-dropped')).toBeNull()
    expect(answered.data.previous_response_id).toBe(requested.id)
  })

  test('reports an error at the path in the client’s body', async () => {
    const first = await openai.responses.create({ model: 'demo/echo', input: 'One.' })
    const input = [{ role: 'user', content: [{ type: 'input_text' }] }] as unknown as ResponseInputItem[]
    const wrong = openai.responses.create({ model: 'demo/echo', input, previous_response_id: first.id })
    expect(await failure(wrong)).toMatchObject({ status: 400, param: 'input[0].content[0].text' })
  })

  test.each([
    ['unknown', async () => 'resp_nobody'],
    ['of another organization', async () => (await (await newcomer()).client.responses.create(plain)).id],
    [
      'deleted',
      async () => {
        const { id } = await openai.responses.create(plain)
        await openai.responses.delete(id)
        return id
      },
    ],
    ['not stored', async () => (await openai.responses.create({ ...plain, store: false })).id],
  ])('cannot go on from a response that is %s', async (_, id) => {
    const previous_response_id = await id()
    expect(await failure(openai.responses.create({ ...plain, previous_response_id }))).toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
      param: 'previous_response_id',
      type: 'invalid_request_error',
    })
  })

  const plain = { model: 'demo/echo', input: 'Hello.' }
})

describe('a provider that stores responses itself', () => {
  test('gets its own ids untouched', async () => {
    const first = await openai.responses.create({ model: native, input: 'One.' })
    expect(first.id).toBe('resp_up1')
    await openai.responses.stream({ model: native, input: 'Two.', previous_response_id: first.id }).finalResponse()
    await openai.responses.create({ model: native, input: 'Three.', previous_response_id: 'resp_up2' })
    expect(upstream.received.map(({ body }) => [body.input, body.previous_response_id])).toEqual([
      ['One.', undefined],
      ['Two.', 'resp_up1'],
      ['Three.', 'resp_up2'],
    ])
  })

  test('gets the whole conversation when it has lost the response', async () => {
    const { id } = await openai.responses.create({ model: native, input: 'One.' })
    forgotten = id
    const second = await openai.responses.create({ model: native, input: 'Two.', previous_response_id: id })
    expect(second.previous_response_id).toBe(id)
    const requested = upstream.received.map(({ body }) => [body.previous_response_id, JSON.stringify(body.input)])
    expect(requested).toEqual([
      [undefined, '"One."'],
      [id, '"Two."'],
      [undefined, expect.stringMatching(/One\..*This is resp_up1\..*Two\./)],
    ])
    // Thoughts that only it could look up are lost with it.
    expect(requested[2]?.[1]).not.toContain('reasoning')
  })

  test('gets turns of other providers as input, without reasoning that only others can read', async () => {
    const first = await openai.responses.create({ model: native, input: 'One.' })
    const second = await openai.responses.create({ model: claude, input: 'Two.', previous_response_id: first.id })
    expect(JSON.stringify(anthropic.received[0]?.body)).toContain(`This is ${first.id}.`)
    const { data: third, response } = await openai.responses
      .create({ model: native, input: 'Three.', previous_response_id: second.id })
      .withResponse()
    expect(response.headers.get('x-router-dropped')).toBe('input.reasoning')
    const { body } = upstream.received[1] as {
      body: { input: Record<string, unknown>[]; previous_response_id?: string }
    }
    expect(body.previous_response_id).toBeUndefined()
    expect(body.input.map(({ type, role }) => role ?? type)).toEqual([
      'user',
      'reasoning',
      'assistant',
      'user',
      'assistant',
      'function_call',
      'user',
    ])
    expect(JSON.stringify(body)).not.toContain('router1.')
    expect(third.previous_response_id).toBe(second.id)
  })

  test('names the earlier response in its stream as well', async () => {
    const first = await openai.responses.create({ model: 'demo/echo', input: 'One.' })
    const stream = await openai.responses.create({
      model: native,
      input: 'Two.',
      previous_response_id: first.id,
      stream: true,
    })
    const named: unknown[] = []
    for await (const event of stream) if ('response' in event) named.push(event.response.previous_response_id)
    expect(named).toEqual([first.id, first.id])
    expect((await openai.responses.retrieve('resp_up1')).previous_response_id).toBe(first.id)
  })

  test('does not give access to conversations of another organization there', async () => {
    const { id } = await openai.responses.create({ model: native, input: 'One.' })
    const other = (await newcomer()).client
    const call = other.responses.create({ model: native, input: 'Two.', previous_response_id: id })
    expect(await failure(call)).toMatchObject({ status: 400, code: 'previous_response_not_found' })
    expect(upstream.received).toHaveLength(1)
  })
})

describe('a stored response', () => {
  test('is retrieved as it was answered, whole or streamed', async () => {
    const whole = await openai.responses.create({ model: claude, input: 'Hello.', metadata: { topic: 'sky' } })
    expect(await openai.responses.retrieve(whole.id)).toEqual(whole)
    const streamed = await openai.responses.stream({ model: 'demo/echo', input: 'Hello.' }).finalResponse()
    const { output_parsed: _, ...storedResponse } = streamed
    expect(JSON.parse(JSON.stringify(await openai.responses.retrieve(streamed.id)))).toMatchObject({
      id: storedResponse.id,
      status: 'completed',
      usage: storedResponse.usage,
      output: [{ type: 'message', content: [{ type: 'output_text', text: storedResponse.output_text }] }],
    })
  })

  test('lists the items of its input, in pages and both orders', async () => {
    const input: ResponseInputItem[] = Array.from({ length: 5 }, (_, index) => ({
      role: 'user',
      content: `Item ${index}`,
    }))
    const { id } = await openai.responses.create({ model: 'demo/echo', input })
    const texts = async (query: object) => {
      const page = await openai.responses.inputItems.list(id, query)
      return page.data.map((item) => ('content' in item ? (item.content as { text: string }[])[0]?.text : item.type))
    }
    expect(await texts({})).toEqual(['Item 4', 'Item 3', 'Item 2', 'Item 1', 'Item 0'])
    expect(await texts({ order: 'asc', limit: 2 })).toEqual(['Item 0', 'Item 1'])
    const all: string[] = []
    for await (const item of openai.responses.inputItems.list(id, { order: 'asc', limit: 2 })) all.push(item.id ?? '')
    expect(new Set(all).size).toBe(5)
    expect(await texts({ order: 'asc', after: all[3] as string })).toEqual(['Item 4'])
    expect(await texts({ order: 'asc', before: all[2], limit: 1 })).toEqual(['Item 1'])
    const page = await openai.responses.inputItems.list(id, { limit: 5 })
    expect([page.has_more, page.data[0]?.id, page.data.at(-1)?.id]).toEqual([false, all[4], all[0]])
    const plain = await (await router.call(`/v1/responses/${id}/input_items?limit=2`)).json()
    expect(plain).toMatchObject({ object: 'list', has_more: true, first_id: all[4], last_id: all[3] })
    for (const [query, param] of [
      [{ limit: 0 }, 'limit'],
      [{ limit: 101 }, 'limit'],
      [{ order: 'up' }, 'order'],
      [{ after: 'msg_x' }, 'after'],
    ] as const) {
      expect(await failure(openai.responses.inputItems.list(id, query as object))).toMatchObject({ status: 400, param })
    }
  })

  test('has the text of an input as an item', async () => {
    const { id } = await openai.responses.create({ model: 'demo/echo', input: 'Hello.' })
    expect((await openai.responses.inputItems.list(id)).data).toEqual([
      {
        id: expect.stringMatching(/^msg_[0-9a-f]+$/),
        type: 'message',
        status: 'completed',
        role: 'user',
        content: [{ type: 'input_text', text: 'Hello.' }],
      },
    ])
  })

  test('is unknown when deleted', async () => {
    const { id } = await openai.responses.create({ model: 'demo/echo', input: 'Hello.' })
    await openai.responses.delete(id)
    for (const call of [
      () => openai.responses.retrieve(id),
      () => openai.responses.inputItems.list(id),
      () => openai.responses.delete(id),
      () => openai.responses.cancel(id),
    ]) {
      expect(await failure(call())).toMatchObject({ status: 404, message: `Response with id '${id}' not found.` })
    }
  })

  test('is not there for another organization', async () => {
    const { id } = await openai.responses.create({ model: 'demo/echo', input: 'Hello.' })
    const { client } = await newcomer()
    for (const call of [
      () => client.responses.retrieve(id),
      () => client.responses.inputItems.list(id),
      () => client.responses.delete(id),
      () => client.responses.cancel(id),
    ]) {
      expect(await failure(call())).toMatchObject({ status: 404 })
    }
    expect((await openai.responses.retrieve(id)).id).toBe(id)
  })

  test('cannot be cancelled: it has ended', async () => {
    const { id } = await openai.responses.create({ model: 'demo/echo', input: 'Hello.' })
    expect(await failure(openai.responses.cancel(id))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      message: expect.stringContaining('cannot be cancelled'),
    })
  })

  test('is read with completions: read, and changed with completions: write only', async () => {
    const { client, id: organization } = await newcomer()
    const { id } = await client.responses.create({ model: 'demo/echo', input: 'Hello.' })
    const reader = (await newcomer({ manage: 'none', completions: 'read' }, organization)).client
    expect((await reader.responses.retrieve(id)).id).toBe(id)
    expect(await failure(reader.responses.delete(id))).toMatchObject({ status: 403, code: 'forbidden' })
    const manager = (await newcomer({ manage: 'write', completions: 'none' }, organization)).client
    expect(await failure(manager.responses.retrieve(id))).toMatchObject({ status: 403 })
  })

  test('lists the supported methods', async () => {
    const response = await fetch(`${router.url}/v1/responses/resp_1`, { method: 'PUT' })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, DELETE'])
  })
})

describe('nothing is stored', () => {
  let secret: string
  beforeEach(() => {
    secret = `sphinx-${newSecret()}`
  })

  afterEach(async () => {
    // Proves that the search would find it.
    await openai.responses.create({ model: 'demo/echo', input: `${secret} once more` })
    expect(onDisk()).toContain(`${secret} once more`)
  })

  test('when the request has store: false', async () => {
    const whole = await openai.responses.create({ model: 'demo/echo', input: secret, store: false })
    const streamed = openai.responses.stream({ model: 'demo/echo', input: secret, store: false })
    const { id } = await streamed.finalResponse()
    expect(whole).toMatchObject({ store: false })
    expect(onDisk()).not.toContain(secret)
    expect(await failure(openai.responses.retrieve(whole.id))).toMatchObject({ status: 404 })
    expect(await failure(openai.responses.retrieve(id))).toMatchObject({ status: 404 })
  })

  test('when the store of the organization is off, nor by its provider', async () => {
    const { client, id } = await newcomer()
    await store.organizations.setRetention(id, { stores: false })
    const whole = await client.responses.create({ model: 'demo/echo', input: secret, store: true })
    await client.responses.create({ model: claude, input: secret })
    await client.responses.create({ model: native, input: secret, store: true })
    expect(whole).toMatchObject({ store: false })
    expect(upstream.received[0]?.body.store).toBe(false)
    expect(onDisk()).not.toContain(secret)
    expect(await failure(client.responses.retrieve(whole.id))).toMatchObject({ status: 404 })
  })
})

test('a response is stored for the days of its organization', async () => {
  const { client, id } = await newcomer()
  await store.organizations.setRetention(id, { days: 3 })
  const response = await client.responses.create({ model: 'demo/echo', input: 'Hello.' })
  const storedResponse = await store.responses.find(id, response.id)
  expect((storedResponse?.expiresAt ?? 0) - (storedResponse?.createdAt ?? 0)).toBe(3 * 24 * 60 * 60 * 1_000)
})
