import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { readRequest } from '../../src/api/chat/read.ts'
import { run } from '../../src/cli/compare/compare.ts'
import type { Difference } from '../../src/cli/compare/difference.ts'
import { differencesOf } from '../../src/cli/compare/differences.ts'
import type { Exchange } from '../../src/cli/compare/exchange.ts'
import { recordedRequest } from '../../src/cli/compare/recorded.ts'
import { replyOf } from '../../src/cli/compare/reply.ts'
import { readRequests } from '../../src/cli/compare/requests.ts'
import type { Json, JsonObject } from '../../src/core/json.ts'
import { answerJson, loopbackProvider } from '../helpers/provider.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

const hello = { model: 'a/b', messages: [{ role: 'user', content: 'Hi' }] }

describe('requests', () => {
  test('are bodies, bodies with a path, lines of batches, and recordings; answers in between are passed over', () => {
    const folder = folderOf({
      'a.jsonl': [
        JSON.stringify(hello),
        '',
        JSON.stringify({ path: 'v1/embeddings', body: { model: 'v', input: 'x' }, headers: { 'x-a': '1' } }),
        JSON.stringify({ custom_id: 'r', method: 'POST', url: '/v1/responses', body: { model: 'm', input: 'x' } }),
      ].join('\n'),
      'b.jsonl': [
        JSON.stringify({ kind: 'request', id: '1', operation: 'embed', requested: 'v', request: { input: ['x'] } }),
        JSON.stringify({ kind: 'reply', id: '1', reply: {} }),
        JSON.stringify({ kind: 'request', id: '2', operation: 'transcribe', requested: 'v', request: {} }),
        JSON.stringify({ kind: 'request', id: '3', operation: 'chat', requested: 'v', left_out_bytes: 9 }),
      ].join('\n'),
      'notes.txt': 'not read',
    })
    const { requests, skipped } = readRequests(folder)
    expect(requests.map(({ path, body, headers }) => [path, body, headers])).toEqual([
      ['/v1/chat/completions', hello, {}],
      ['/v1/embeddings', { model: 'v', input: 'x' }, { 'x-a': '1' }],
      ['/v1/responses', { model: 'm', input: 'x' }, {}],
      ['/v1/embeddings', { model: 'v', input: ['x'] }, {}],
    ])
    expect(skipped).toEqual([
      { place: join(folder, 'b.jsonl:3'), reason: "requests of the operation 'transcribe' cannot be sent again" },
      { place: join(folder, 'b.jsonl:4'), reason: 'it was too large to be recorded' },
    ])
  })

  test.each([
    ['{', 'this is not JSON'],
    ['[]', 'this is not an object'],
    ['{"input": "x"}', 'write a body with messages'],
  ])('the line %s is refused with its place', (line, message) => {
    const folder = folderOf({ 'a.jsonl': `${JSON.stringify(hello)}\n${line}\n` })
    expect(() => readRequests(join(folder, 'a.jsonl'))).toThrow(`a.jsonl:2: ${message}`)
  })
})

describe('a recorded conversation', () => {
  /** Reads a body as the router does, and writes it again as `compare` does. */
  function replayed(body: JsonObject) {
    const { origin: _, ...request } = readRequest(body)
    const stream = body.stream === true
    return recordedRequest({
      kind: 'request',
      id: '1',
      operation: 'chat',
      requested: body.model,
      stream,
      request,
    } as never)
  }

  test('is sent as it was', () => {
    const body = {
      model: 'gpt',
      messages: [
        { role: 'system', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'a cat' },
        { role: 'user', content: 'Sure?' },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
      tool_choice: { type: 'function', function: { name: 'look' } },
      temperature: 0.5,
      max_tokens: 20,
      stop: ['x'],
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } },
    }
    expect(replayed(body)).toEqual({ path: '/v1/chat/completions', body })
    expect(replayed({ ...body, stream: true })).toMatchObject({
      body: { stream: true, stream_options: { include_usage: true } },
    })
  })

  test('with media that were not recorded is not sent', () => {
    const content = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]
    expect(replayed({ model: 'gpt', messages: [{ role: 'user', content }] })).toEqual({
      reason: "it has a part of the type 'image', which is not recorded whole",
    })
  })
})

const answer = (json: Json, changes: Partial<Exchange> = {}): Exchange => ({
  status: 200,
  headers: {},
  json,
  ms: 1,
  firstMs: 1,
  ...changes,
})
const found = (here: Exchange, there: Exchange, exact = false) => differencesOf(here, there, { exact })
const unexplained = (all: Difference[]) =>
  all.filter(({ explained }) => explained === undefined).map(({ kind, path }) => `${kind} ${path ?? ''}`.trim())

describe('differences', () => {
  test('null, empty and missing members are the same, and so are counts of 0 and JSON with other spaces', () => {
    const here = { a: null, b: '', c: [], usage: { cached: 0 }, arguments: '{"x":1}' }
    const there = { usage: {}, arguments: '{ "x": 1 }' }
    expect(found(answer(here), answer(there), true)).toEqual([])
    expect(unexplained(found(answer({ n: 0 }), answer({})))).toEqual(['only_here n'])
  })

  test('statuses, broken streams and failures are differences alone', () => {
    const stream = (isWhole: boolean) =>
      ({ ...answer(null), json: undefined, events: [{ choices: [] }], isWhole }) as unknown as Exchange
    expect(unexplained(found(answer({}), answer({}, { status: 404 })))).toEqual(['status'])
    expect(unexplained(found(stream(true), stream(false)))).toEqual(['stream'])
    expect(unexplained(found(stream(true), answer({})))).toEqual(['stream'])
    expect(unexplained(found(answer({}, { failure: 'connection refused' }), answer({})))).toEqual(['failure'])
  })

  test('texts may differ unless they must be equal, and what follows from them too; being there may not', () => {
    const reply = (content: string | undefined, completion_tokens: number) =>
      answer({ choices: [{ message: { content } }], usage: { completion_tokens } } as Json)
    expect(unexplained(found(reply('A', 3), reply('B', 4)))).toEqual([])
    expect(unexplained(found(reply('A', 3), reply('A', 4)))).toEqual(['value usage.completion_tokens'])
    expect(unexplained(found(reply('A', 3), reply('B', 3), true))).toEqual(['value choices[].message.content'])
    expect(unexplained(found(reply('A', 3), reply(undefined, 3)))).toEqual(['only_here choices[].message.content'])
  })

  test('costs differ by more than a hundredth, unless the usage does', () => {
    const priced = (cost: number, prompt_tokens = 1) => answer({ usage: { prompt_tokens, cost } })
    expect(
      unexplained(
        found(
          priced(0.001),
          answer({ usage: { prompt_tokens: 1 } }, { headers: { 'x-litellm-response-cost': '0.001005' } }),
        ),
      ),
    ).toEqual([])
    expect(unexplained(found(priced(0.001), priced(0.002)))).toEqual(['cost'])
    expect(unexplained(found(priced(0.001), priced(0.002, 2)))).toEqual(['value usage.prompt_tokens'])
  })

  test('fields that were dropped are named', () => {
    expect(found(answer({}, { headers: { 'x-router-dropped': 'seed' } }), answer({}))).toEqual([
      { kind: 'dropped', here: 'seed', explained: 'the provider does not take these fields' },
    ])
  })

  test('wording of errors is explained, another code of an answer is not', () => {
    const error = (message: string, code: string) => ({ error: { message, code } })
    expect(
      unexplained(found(answer(error('a', 'x'), { status: 400 }), answer(error('b', 'y'), { status: 400 }))),
    ).toEqual([])
    expect(unexplained(found(answer({ code: 'x' }), answer({ code: 'y' })))).toEqual(['value code'])
  })
})

describe('the events of a stream add up', () => {
  test('of Chat Completions', () => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      choices: [{ index: 0, delta, finish_reason }],
    })
    const call = (piece: object) => ({ tool_calls: [{ index: 0, ...piece }] })
    const events = [
      chunk({ role: 'assistant', content: 'A' }),
      chunk({ content: 'B' }),
      chunk(call({ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a"' } })),
      chunk(call({ function: { arguments: ':1}' } })),
      chunk({}, 'tool_calls'),
      { choices: [], usage: { prompt_tokens: 1 } },
    ] as Json[]
    const tool_calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }]
    expect(replyOf({ events })).toEqual({
      choices: [{ index: 0, message: { role: 'assistant', content: 'AB', tool_calls }, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 1 },
    })
  })

  test('of Messages', () => {
    const events: Json[] = [
      { type: 'message_start', message: { role: 'assistant', usage: { input_tokens: 2 } } },
      { type: 'ping' },
      { type: 'content_block_delta', delta: { type: 'text_delta', text: 'A' } },
      { type: 'content_block_delta', delta: { type: 'text_delta', text: 'B' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]
    expect(replyOf({ events })).toEqual({
      ...{ role: 'assistant', stop_reason: 'end_turn', text: 'AB', usage: { input_tokens: 2, output_tokens: 1 } },
      event_types: ['message_start', 'content_block_delta', 'message_delta', 'message_stop'],
    })
  })
})

describe('the command', () => {
  beforeEach(() => {
    vi.stubEnv('INFERENCE_ROUTER_KEY', 'key-for-both-gateways')
    onTestFinished(() => void vi.unstubAllEnvs())
  })
  afterAll(() => void vi.unstubAllEnvs())

  test('sends each gateway its own key, and a gateway that does not answer is a difference', async () => {
    const here = await loopbackProvider((_, response) => answerJson(response, { ok: true }))
    onTestFinished(() => here.close())
    vi.stubEnv('OTHER_KEY', 'key-for-the-other-gateway')
    const folder = folderOf({ 'r.jsonl': `${JSON.stringify(hello)}\n${JSON.stringify(hello)}\n` })
    const places = ['--url', `${here.url}/v1`, '--requests', join(folder, 'r.jsonl'), '--against-key-from', 'OTHER_KEY']
    const down = await ran(run, ...places, '--against', 'http://127.0.0.1:9', '--limit', '1', '--json')
    expect(down.code).toBe(1)
    expect(JSON.parse(down.stdout)).toMatchObject({
      requests: 1,
      unexplained: 1,
      results: [{ differences: [{ kind: 'failure' }] }],
    })
    const same = await ran(run, ...places, '--against', here.url)
    expect([same.code, same.stdout]).toEqual([0, expect.stringContaining('2 requests, 0 with differences')])
    const keys = here.received.map(({ headers }) => headers.authorization)
    expect(keys.filter((key) => key === 'Bearer key-for-the-other-gateway')).toHaveLength(2)
    expect(here.received.every(({ path }) => path === '/v1/chat/completions')).toBe(true)
    expect(down.stdout + same.stdout).not.toContain('key-for')
  })

  test.each([
    [['--against', 'http://127.0.0.1:9'], 2, 'name the requests: --requests FILE.jsonl'],
    [['--requests', 'r.jsonl'], 2, 'name the other gateway: --against URL'],
    [['--requests', 'r.jsonl', '--against', 'ftp://x'], 2, "--against is 'ftp://x'; write an address"],
    [['--requests', 'none.jsonl', '--against', 'http://127.0.0.1:9'], 1, 'There is no file or folder none.jsonl.'],
    [['--requests', 'r.jsonl', '--against', 'http://127.0.0.1:9', '--limit', '0'], 2, "--limit is '0'"],
    [
      ['--requests', 'r.jsonl', '--against', 'http://127.0.0.1:9', '--key-from', 'NO_SUCH_KEY'],
      1,
      'NO_SUCH_KEY is not set',
    ],
  ])('%j: exit code %d, %s', async (args, code, message) => {
    const folder = folderOf({ 'config.yaml': '' })
    const result = await ran(run, ...args, '--config', join(folder, 'config.yaml'))
    expect([result.code, result.stderr.split('\n')[0]]).toEqual([code, expect.stringContaining(message)])
  })
})
