import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsIn } from '../../api/responses-order.ts'
import { beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

// A provider of the native API that fails in the middle of its stream, through the whole router.

const shipped = ['openai.yaml', 'openai-responses.yaml', 'dialects/openai-chat.yaml', 'dialects/openai-responses.yaml']

let provider: LoopbackProvider
let router: TestRouter

const response = { id: 'resp_native', object: 'response', status: 'in_progress', model: 'gpt-5.4', output: [] }
const failure = { code: 'server_error', message: 'The kitchen is on fire.' }
const frames = [
  { type: 'response.created', sequence_number: 0, response },
  { type: 'response.in_progress', sequence_number: 1, response },
  { type: 'response.output_text.delta', sequence_number: 2, output_index: 0, content_index: 0, delta: 'It r' },
  { type: 'response.failed', sequence_number: 3, response: { ...response, status: 'failed', error: failure } },
]

beforeAll(async () => {
  provider = await loopbackProvider((_request, answer) => {
    beginStream(answer)
    for (const frame of frames) answer.write(`event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`)
    answer.end()
  })
  const read = (name: string) => [
    `providers/${name}`,
    readFileSync(join(import.meta.dirname, '../../../providers', name), 'utf8'),
  ]
  const catalog = readFileSync(join(import.meta.dirname, '../../../catalog/openai.yaml'), 'utf8')
  router = await testRouter({
    files: { ...Object.fromEntries(shipped.map(read)), 'catalog/openai.yaml': catalog },
    providers: { openai: { base_url: provider.url }, 'openai-responses': { base_url: provider.url } },
    env: { OPENAI_API_KEY: 'sk-native' },
  })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

test('a response that its provider fails ends as failed, with the provider’s own id and message', async () => {
  const body = { model: 'openai-responses/gpt-5.4', input: 'Weather?', stream: true, store: false }
  const answer = await router.call('/v1/responses', body)
  const events = eventsIn(await answer.text())
  expect(events.map(({ type, sequence_number }) => [sequence_number, type])).toEqual([
    [0, 'response.created'],
    [1, 'response.in_progress'],
    [2, 'response.output_text.delta'],
    [3, 'response.failed'],
  ])
  expect(events[0].response.model).toBe('openai-responses/gpt-5.4')
  const { id, status, error } = events[3].response
  expect([id, status, error.code]).toEqual([events[0].response.id, 'failed', 'server_error'])
  expect(error.message).toContain(failure.message)
})

test('a native conversation with encrypted reasoning reports no loss', async () => {
  const thought = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' }
  const input = [{ role: 'user', content: 'Weather?' }, thought, { role: 'user', content: 'And now?' }]
  const answer = await router.call('/v1/responses', {
    model: 'openai-responses/gpt-5.4',
    input,
    stream: true,
    store: false,
  })
  await answer.text()
  expect(answer.headers.get('x-router-dropped')).toBeNull()
  expect(provider.received.at(-1)?.body.input).toEqual(input)
})
