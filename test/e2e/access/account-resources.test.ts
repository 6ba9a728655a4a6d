import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'
import { errorIn, newKey, storeIn } from '../money/budget-world.ts'

// What the operator's accounts at providers keep, through a whole router that serves two organizations.

let provider: LoopbackProvider
let router: TestRouter
let store: Store
let other: string
let stranger: string
let made = 0

/** A block of a tool of the provider that has made a file. */
const madeFile = (id: string): JsonObject => ({
  type: 'bash_code_execution_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: {
    type: 'bash_code_execution_result',
    stdout: '',
    stderr: '',
    return_code: 0,
    content: [{ type: 'bash_code_execution_output', file_id: id }],
  },
})

const usage = { input_tokens: 10, output_tokens: 2 }

const thoughtful = {
  ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'deepseek-reasoner' },
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hi', reasoning_content: 'They greet.' },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
}

function answerMessage(body: JsonObject, response: Parameters<typeof answerJson>[0], block: JsonObject): void {
  const message = { id: `msg_${made}`, type: 'message', role: 'assistant', model: body.model as string }
  if (!body.stream) {
    answerJson(response, { ...message, content: [block], stop_reason: 'end_turn', stop_sequence: null, usage })
    return
  }
  beginStream(response)
  for (const event of [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
    { type: 'message_stop' },
  ])
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  response.end()
}

function answerResponse(body: JsonObject, response: Parameters<typeof answerJson>[0], id: string): void {
  const annotations = [
    {
      type: 'container_file_citation',
      container_id: `cntr_${id}`,
      file_id: id,
      filename: 'a',
      start_index: 0,
      end_index: 1,
    },
  ]
  const item = {
    type: 'message',
    id: `item_${id}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Hi', annotations }],
  }
  const run = {
    type: 'code_interpreter_call',
    id: `ci_${id}`,
    code: 'x',
    container_id: `cntr_${id}`,
    outputs: null,
    status: 'completed',
  }
  const counts = { ...usage, total_tokens: 12 }
  // The tools of a request are repeated in its response.
  const tools = (body.tools ?? []) as Json[]
  const whole = {
    id: `resp_${id}`,
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: body.model as string,
    tools,
  }
  if (!body.stream) {
    answerJson(response, { ...whole, output: [run, item], usage: counts })
    return
  }
  beginStream(response)
  const events: JsonObject[] = [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: run },
    { type: 'response.output_item.done', output_index: 0, item: run },
    { type: 'response.output_item.added', output_index: 1, item: { ...item, content: [] } },
    { type: 'response.output_item.done', output_index: 1, item },
    { type: 'response.completed', response: { ...whole, output: [run, item], usage: counts } },
  ]
  for (const [sequence_number, event] of events.entries())
    response.write(`event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`)
  response.end()
}

type Answering = Parameters<typeof answerJson>[0]

function answerPicture(response: Answering, id: string): void {
  beginStream(response)
  const event = { type: 'image_generation.completed', b64_json: 'AA==', file_id: id, usage }
  response.end(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

const compaction = (id: string): JsonObject => ({ type: 'code_interpreter_call', id: 'ci_1', container_id: id })

/** Runs code in a container, and breaks off before the end. */
function breakOff(response: Answering, id: string): void {
  beginStream(response)
  const begun = { id: 'resp_1', object: 'response', created_at: 1, status: 'in_progress', model: 'm', output: [] }
  const item = { type: 'code_interpreter_call', id: 'ci_1', code: 'x', container_id: id, outputs: null }
  for (const event of [
    { type: 'response.created', response: begun },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.output_text.delta', item_id: 'm', output_index: 1, content_index: 0, delta: 'Hi' },
  ])
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  setImmediate(() => response.destroy())
}

beforeAll(async () => {
  provider = await loopbackProvider(({ path, body }, response) => {
    const id = `file-${++made}`
    if (path.endsWith('/messages')) answerMessage(body, response, madeFile(id))
    else if (path.endsWith('/chat/completions')) answerJson(response, thoughtful)
    else if (path.endsWith('/images/generations') && body.stream) answerPicture(response, id)
    else if (path.endsWith('/images/generations'))
      answerJson(response, { created: 1, data: [{ b64_json: 'AA==', url: 'https://a.example/a.png', file_id: id }] })
    else if (path.endsWith('/compact'))
      answerJson(response, { id, object: 'response.compaction', output: [compaction(id)], usage })
    else if (body.input === 'Break off.') breakOff(response, id)
    else answerResponse(body, response, id)
  })
  const own = { base_url: provider.url, secret: 's' }
  router = await testRouter({
    providers: alone({ anthropic: own, 'openai-responses': own, deepseek: own, openai: own, zai: own }),
  })
  store = await storeIn(router.folder)
  other = (await store.organizations.create('other')).id
  stranger = (await newKey(store, { organization: other })).secret
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

beforeEach(() => {
  provider.received.length = 0
})

const claude = { model: 'anthropic/claude-haiku-4-5', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }
const withFile = (file_id: string) => ({
  ...claude,
  messages: [{ role: 'user', content: [{ type: 'container_upload', file_id }] }],
})
const gpt = { model: 'openai-responses/gpt-5', input: 'Hi' }
const gptWithFile = (file_id: string) => ({
  ...gpt,
  input: [{ role: 'user', content: [{ type: 'input_file', file_id }] }],
})
const asStranger = () => ({ authorization: `Bearer ${stranger}` })

describe('a file that a call has made', () => {
  test.each([{}, { stream: true }])('is its organization’s, through the Messages API, %j', async (how) => {
    const text = await (await router.call('/v1/messages', { ...claude, ...how })).text()
    const id = /file-\d+/.exec(text)?.[0] ?? ''
    expect((await router.call('/v1/messages', withFile(id))).status).toBe(200)
    provider.received.length = 0
    const refused = await router.call('/v1/messages', withFile(id), asStranger())
    expect([refused.status, (await errorIn(refused)).param]).toEqual([403, 'messages.content.file_id'])
    expect(provider.received).toEqual([])
  })

  test.each([{}, { stream: true }])('is its organization’s, through the Responses API, %j', async (how) => {
    const text = await (await router.call('/v1/responses', { ...gpt, ...how })).text()
    const id = /"file-\d+"/.exec(text)?.[0].replaceAll('"', '') ?? ''
    expect((await router.call('/v1/responses', gptWithFile(id))).status).toBe(200)
    provider.received.length = 0
    const refused = await router.call('/v1/responses', gptWithFile(id), asStranger())
    expect([refused.status, (await errorIn(refused)).param]).toEqual([403, 'input.content.file_id'])
    const counted = await router.call('/v1/responses/input_tokens', gptWithFile(id), asStranger())
    expect(counted.status).toBe(403)
    const compacted = await router.call('/v1/responses/compact', gptWithFile(id), asStranger())
    expect(compacted.status).toBe(403)
    expect(provider.received).toEqual([])
  })

  test.each([{}, { stream: true }])('is its organization’s, through an API of another format, %j', async (how) => {
    const chat = { model: gpt.model, messages: [{ role: 'user', content: 'Hi' }], ...how }
    const text = await (await router.call('/v1/chat/completions', chat)).text()
    const container = /cntr_file-\d+/.exec(text)?.[0] ?? ''
    expect(container).not.toBe('')
    const tools = [{ type: 'code_interpreter', container }]
    expect((await router.call('/v1/responses', { ...gpt, tools })).status).toBe(200)
    expect((await router.call('/v1/responses', { ...gpt, tools }, asStranger())).status).toBe(400)
  })
})

test('a file that a call for images has made is its organization’s', async () => {
  const drawn = await router.call('/v1/images/generations', { model: 'openai/gpt-image-1', prompt: 'A plum.' })
  expect([drawn.status, await drawn.text()]).toEqual([200, expect.any(String)])
  expect((await router.call('/v1/responses', gptWithFile(`file-${made}`))).status).toBe(200)
  expect((await router.call('/v1/responses', gptWithFile(`file-${made - 1}`), asStranger())).status).toBe(403)
})

describe('what a call has made is its organization’s as well', () => {
  const taken = async (id: string, who = {}) => (await router.call('/v1/responses', gptWithFile(id), who)).status

  test('where images are streamed', async () => {
    const asked = { model: 'openai/gpt-image-1', prompt: 'A plum.', stream: true }
    const text = await (await router.call('/v1/images/generations', asked)).text()
    expect(text).toContain('image_generation.completed')
    const id = `file-${made}`
    expect([await taken(id), await taken(id, asStranger())]).toEqual([200, 403])
  })

  test('where several requests make one answer', async () => {
    const before = made
    const drawn = await router.call('/v1/images/generations', { model: 'zai/glm-image', prompt: 'Plums.', n: 2 })
    expect([drawn.status, await drawn.text()]).toEqual([200, expect.any(String)])
    const ids = [`file-${before + 1}`, `file-${before + 2}`]
    expect(made).toBe(before + 2)
    for (const id of ids) expect([await taken(id), await taken(id, asStranger())]).toEqual([200, 403])
  })

  test('where a conversation is compacted', async () => {
    const compacted = await router.call('/v1/responses/compact', gpt)
    expect([compacted.status, await compacted.text()]).toEqual([200, expect.stringContaining('container_id')])
    const id = `file-${made}`
    expect([await taken(id), await taken(id, asStranger())]).toEqual([200, 403])
  })

  test('where a stream breaks off', async () => {
    const text = await (await router.call('/v1/responses', { ...gpt, input: 'Break off.', stream: true })).text()
    expect(text).toContain('container_id')
    const id = /"container_id":"(file-\d+)"/.exec(text)?.[1] ?? ''
    expect([await taken(id), await taken(id, asStranger())]).toEqual([200, 403])
  })
})

test('an id that a client writes into a call does not become its own by coming back', async () => {
  for (const own of [
    { metadata: { file_id: 'file-theirs' } },
    { tools: [{ type: 'function', name: 'f', parameters: { examples: [{ file_id: 'file-theirs' }] } }] },
  ]) {
    const response = await router.call('/v1/responses', { ...gpt, ...own }, asStranger())
    expect(response.status).toBe(200)
    await response.text()
  }
  expect((await router.call('/v1/responses', gptWithFile('file-theirs'), asStranger())).status).toBe(403)
})

test('a resource is used once the operator lists it, without a restart', async () => {
  const searching = { ...gpt, tools: [{ type: 'file_search', vector_store_ids: ['vs_shared'] }] }
  const refused = await router.call('/v1/responses', searching, asStranger())
  const { code, param, message } = await errorIn(refused)
  expect([refused.status, code, param]).toEqual([403, 'forbidden', 'tools.vector_store_ids'])
  expect(message).toContain(`organizations.${other}.resources`)
  expect(message).toContain("'vs_shared'")
  const config = JSON.parse(readFileSync(join(router.folder, 'config.yaml'), 'utf8'))
  router.put('config.yaml', JSON.stringify({ ...config, organizations: { [other]: { resources: ['vs_shared'] } } }))
  const status = async () => (await router.call('/v1/responses', searching, asStranger())).status
  await expect.poll(status, { timeout: 20_000, interval: 200 }).toBe(200)
  const another = { ...gpt, tools: [{ type: 'file_search', vector_store_ids: ['vs_other'] }] }
  expect((await router.call('/v1/responses', another, asStranger())).status).toBe(403)
})

test.each(['deepseek/deepseek-v4-pro', gpt.model])(
  'thoughts that a provider of another format has written are nothing that an account keeps, at %s',
  async (model) => {
    const turn = { role: 'user', content: 'Hi' }
    const first = await router.call('/v1/responses', { model: 'deepseek/deepseek-v4-pro', input: [turn] }, asStranger())
    const { output } = (await first.json()) as { output: JsonObject[] }
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
    const second = await router.call('/v1/responses', { model, input: [turn, ...output, turn] }, asStranger())
    expect([second.status, await second.text()]).toEqual([200, expect.any(String)])
  },
)

test('a `type` at the top hides no id, and neither does an item without its content', async () => {
  const file = gptWithFile('file-theirs').input
  const bodies: JsonObject[] = [
    { ...gpt, type: 'tool_use', input: file },
    { ...gpt, model: claude.model, type: 'tool_use', input: file },
    { ...gpt, parameters: { file_id: 'file-theirs' } },
    { ...gpt, input: [{ type: 'reasoning', id: 'rs_theirs', summary: [], encrypted_content: '' }] },
  ]
  for (const body of bodies) expect((await router.call('/v1/responses', body, asStranger())).status).toBe(403)
})

test('what clients write about themselves names nothing that an account keeps', async () => {
  const codex = { ...gpt, client_metadata: { session_id: 's', thread_id: 't', turn_id: 'u' } }
  expect((await router.call('/v1/responses', codex, asStranger())).status).toBe(200)
  const code = { ...claude, diagnostics: { previous_message_id: 'msg_1' } }
  expect((await router.call('/v1/messages', code, asStranger())).status).toBe(200)
})
