import { describe, expect, test } from 'vitest'
import { isObject, type JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Message } from '../../src/core/request.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { answered, assistant, bench, called, input, lost, said, sealed, sent, user } from './openai-responses-asking.ts'
import { responsesSchemaMissing, responsesViolations } from './responses-schema.ts'

const thought = (id: string) => ({
  type: 'reasoning',
  id,
  summary: [{ type: 'summary_text', text: 'S' }],
  encrypted_content: `${id} enc`,
})

describe('reasoning', () => {
  test('is encrypted for the next turn, and the provider stores nothing', async () => {
    expect(await sent({})).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
    expect(await sent({ store: true }, 'gpt-4.1')).toMatchObject({ store: true })
    expect((await sent({}, 'gpt-4.1')).include).toBeUndefined()
  })

  test('goes back before its call, in a tool loop with results and more thoughts', async () => {
    const messages = [
      user(said('Go')),
      assistant(sealed('rs_1'), called('a'), called('b')),
      user(answered('b', said('B')), answered('a', said('A'))),
      assistant(sealed('rs_2'), called('c')),
      user(answered('c', said('C'))),
    ]
    const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'f', arguments: '{}' })
    const result = (call_id: string, output: string) => ({ type: 'function_call_output', call_id, output })
    expect(await input(messages)).toEqual([
      { role: 'user', content: 'Go' },
      thought('rs_1'),
      call('a'),
      call('b'),
      result('a', 'A'),
      result('b', 'B'),
      thought('rs_2'),
      call('c'),
      result('c', 'C'),
    ])
    expect(await lost({ messages })).toEqual([])
  })

  test('of another provider, or without encrypted content, is dropped and reported', async () => {
    const messages = [
      user(said('Go')),
      assistant(sealed('rs_1', 'someone'), { type: 'reasoning', id: 'rs_2', summary: 'S', by: 'openai' }, said('so')),
    ]
    expect(await input(messages)).toEqual([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'so' },
    ])
    expect(await lost({ messages })).toEqual(['parts.reasoning'])
  })

  test('as plain text goes back to the server that sent it', async () => {
    const messages = [user(said('Go')), assistant({ type: 'reasoning', text: 'hm', by: 'openai' }, said('so'))]
    const [, item] = await input(messages)
    expect(item).toMatchObject({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] })
    expect(item?.id).toMatch(/^rs_[0-9a-f]{48}$/)
  })

  test('that nothing came of is left out, unless the assistant goes on', async () => {
    const cut = assistant(said('so'), sealed('rs_1'))
    const kinds = async (...messages: Message[]) =>
      (await input(messages)).map(({ type, role }) => (type === 'reasoning' ? type : role))
    expect(await kinds(user(said('Go')), cut, user(said('On')))).toEqual(['user', 'assistant', 'user'])
    expect(await kinds(user(said('Go')), cut, assistant(said('then')))).toEqual([
      'user',
      'assistant',
      'reasoning',
      'assistant',
    ])
  })
})

describe('the messages of an assistant', () => {
  test('are merged when they were split, and marked messages stay separate', async () => {
    const messages = [
      user(said('Go')),
      assistant(
        said('a'),
        { type: 'text', text: 'b', citations: [{ url: 'https://a' }] },
        { type: 'reasoning', text: 'foreign', by: 'someone' },
        said('c'),
        { type: 'text', text: 'd', signature: 'commentary', by: 'openai' },
        { type: 'text', text: 'e', signature: 'seal', by: 'someone' },
        { type: 'audio', id: 'audio_1', transcript: 'f' },
        { type: 'refusal', text: 'no' },
      ),
    ]
    const [, ...items] = await input(messages)
    expect(items).toMatchObject([
      { role: 'assistant', content: 'abc' },
      { role: 'assistant', content: 'd', phase: 'commentary' },
      { role: 'assistant', content: 'ef' },
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
    ])
    expect(items).toHaveLength(4)
  })

  test('may be as long as thousands of parts', async () => {
    const parts = Array.from({ length: 3_000 }, (_, index): Part[] => [said(`a${index}`), called(`c${index}`)]).flat()
    const items = await input([user(said('Go')), assistant(...parts)])
    expect(items.filter(({ role }) => role === 'assistant')).toHaveLength(3_000)
    expect(items.filter(({ type }) => type === 'function_call')).toHaveLength(3_000)
  })

  test('go back whole: searches, blocks and images of its provider', async () => {
    const body = { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' }
    const action = { type: 'search', query: 'q', sources: [{ type: 'url', url: 'https://a' }] }
    const by = (maker: string) => [
      user(said('Go')),
      assistant(
        { type: 'search', id: 'ws_1', query: 'q', status: 'completed', results: action, by: maker },
        { type: 'search', id: 'ws_2', query: 'q', by: maker },
        { type: 'opaque', body, by: maker },
        { type: 'image', id: 'ig_1', data: 'AA==', media_type: 'image/png' },
        { type: 'image', data: 'AA==', media_type: 'image/png' },
      ),
    ]
    const images = [
      { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AA==' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'The assistant showed this image:' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'auto' },
        ],
      },
    ]
    expect((await input(by('openai'))).slice(1)).toEqual([
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action },
      { type: 'web_search_call', id: 'ws_2', status: 'completed', action: { type: 'search', query: 'q' } },
      body,
      ...images,
    ])
    expect((await input(by('someone'))).slice(1)).toEqual(images)
    expect(await lost({ messages: by('someone') })).toEqual(['parts.opaque', 'parts.search'])
    expect(await lost({ messages: by('openai') })).toEqual([])
  })
})

describe('media', () => {
  const contents = async (...parts: Part[]) => (await input([user(...parts)], 'gpt-5.6'))[0]?.content

  test('is text, images and files, as address, bytes or id, with marks for the cache', async () => {
    expect(
      await contents(
        { type: 'text', text: 'look', cache: {} },
        { type: 'image', url: 'https://example.com/a.png', detail: 'high' },
        { type: 'image', file_id: 'file_1' },
        { type: 'file', data: 'AA==', media_type: 'image/jpeg' },
        { type: 'file', data: 'AA==', media_type: 'application/pdf', filename: 'a.pdf', detail: 'low' },
        { type: 'file', data: 'AA==', media_type: 'text/markdown' },
        { type: 'file', url: 'https://example.com/b.pdf', filename: 'b.pdf' },
        { type: 'file', file_id: 'file_2' },
      ),
    ).toEqual([
      { type: 'input_text', text: 'look', prompt_cache_breakpoint: { mode: 'explicit' } },
      { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'high' },
      { type: 'input_image', file_id: 'file_1', detail: 'auto' },
      { type: 'input_image', image_url: 'data:image/jpeg;base64,AA==', detail: 'auto' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==', detail: 'low' },
      { type: 'input_file', filename: 'document.md', file_data: 'data:text/markdown;base64,AA==' },
      { type: 'input_file', file_url: 'https://example.com/b.pdf' },
      { type: 'input_file', file_id: 'file_2' },
    ])
  })

  test('sounds and videos are left out and reported', async () => {
    const parts: Part[] = [said('a'), { type: 'audio', data: 'AA==' }, { type: 'video', url: 'https://a/b.mp4' }]
    expect(await contents(...parts)).toBe('a')
    expect(await lost({ messages: [user(...parts)] })).toEqual(['parts.video', 'parts.audio'])
    const spoken = { type: 'audio', id: 'audio_1', transcript: 'Hi' } as const
    expect(await lost({ messages: [user(said('a')), assistant(spoken), user(said('b'))] })).toEqual([])
    expect(await lost({ messages: [user(said('a'), spoken)] })).toEqual(['parts.audio'])
  })

  test('instructions come first, and keep their position in the middle', async () => {
    const system = [said('A'), said('B')]
    const messages: Message[] = [user(said('Hi')), { role: 'system', parts: [said('C')] }, user(said('Ho'))]
    expect(await sent({ system, messages })).toMatchObject({
      instructions: 'A\n\nB',
      input: [{ role: 'user' }, { role: 'developer', content: 'C' }, { role: 'user' }],
    })
    expect(await sent({ messages }, 'gpt-4.1')).toMatchObject({ input: [{}, { role: 'system' }, {}] })
  })

  test('instructions with a mark for the cache are an item, where marks are known', async () => {
    const system: Part[] = [said('A'), { type: 'text', text: 'B', cache: {} }]
    const body = await sent({ system }, 'gpt-5.6')
    expect(body.instructions).toBeUndefined()
    expect((body.input as JsonObject[])[0]).toEqual({
      role: 'developer',
      content: [
        { type: 'input_text', text: 'A' },
        { type: 'input_text', text: 'B', prompt_cache_breakpoint: { mode: 'explicit' } },
      ],
    })
    expect(await sent({ system }, 'gpt-4.1')).toMatchObject({ instructions: 'A\n\nB' })
    expect(await lost({ system }, 'gpt-5.6')).toEqual([])
    expect(await lost({ system }, 'gpt-4.1')).toEqual(['parts.cache'])
    const messages = [user(said('Hi')), assistant({ type: 'text', text: 'Yes.', cache: {} }), user(said('On'))]
    expect(await lost({ messages }, 'gpt-5.6')).toEqual(['parts.cache'])
  })
})

test('calls and results of both kinds, with images, and errors marked', async () => {
  const image: Part = { type: 'image', data: 'AA==', media_type: 'image/png' }
  const failed: Part = { type: 'tool_result', id: 'b', parts: [said('no')], is_error: true }
  const shown: Part = { type: 'tool_result', id: 'c', parts: [image], is_error: true }
  const long = 'x'.repeat(65)
  const items = await input([
    user(said('Go')),
    assistant(called('a', { kind: 'custom', arguments: 'free' }), called('b', { arguments: '' }), called('c')),
    user(answered('a', said('A'), said('AA')), failed, shown, said('and')),
    assistant(called(long)),
    user(answered(long)),
  ])
  expect(items.slice(1, 8)).toEqual([
    { type: 'custom_tool_call', call_id: 'a', name: 'f', input: 'free' },
    { type: 'function_call', call_id: 'b', name: 'f', arguments: '{}' },
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    { type: 'custom_tool_call_output', call_id: 'a', output: 'A\nAA' },
    { type: 'function_call_output', call_id: 'b', output: 'Error: no' },
    {
      type: 'function_call_output',
      call_id: 'c',
      output: [
        { type: 'input_text', text: 'Error:' },
        { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'auto' },
      ],
    },
    { role: 'user', content: 'and' },
  ])
  expect(items[8]?.call_id).toMatch(/^[0-9a-f]{24}$/)
  expect(items[9]).toEqual({ type: 'function_call_output', call_id: items[8]?.call_id, output: '' })
})

const rich: Message[] = [
  user(said('Go'), { type: 'image', data: 'AA==', media_type: 'image/png' }),
  assistant(sealed('rs_1'), said('so'), called('a'), called('b', { kind: 'custom' })),
  user(answered('a', said('A'), { type: 'file', data: 'AA==', media_type: 'application/pdf' }), answered('b')),
  assistant(
    { type: 'search', id: 'ws_1', query: 'q', by: 'openai' },
    { type: 'image', id: 'ig_1', data: 'AA==' },
    { type: 'text', text: 'd', signature: 'commentary', by: 'openai' },
    { type: 'refusal', text: 'no' },
  ),
  { role: 'system', parts: [said('C')] },
  user(said('Ho')),
]

test.skipIf(responsesSchemaMissing)('a conversation of everything is one of the published schema', async () => {
  for (const model of ['gpt-4.1', 'gpt-5.6', 'o3']) {
    expect(responsesViolations(await sent({ messages: rich }, model))).toEqual([])
  }
})

describe.skipIf(recordingsMissing)('a recorded reply goes back to its provider', () => {
  const answers = recordings('openai-responses').filter(({ response }) => isObject(response.body?.usage))

  test.each(answers.map((recording) => [recording.case, recording.response.body] as const))('%s', async (_, body) => {
    const { reply } = await bench.reply(body)
    const parts = reply.parts.map((part) => ('by' in part ? { ...part, by: 'openai' } : part))
    const items = await input([user(said('Go')), assistant(...parts), user(said('On'))])
    const sealsOf = (list: JsonObject[]) => list.flatMap(({ encrypted_content }) => encrypted_content ?? [])
    const last = body.output.at(-1)
    const expected = last.type === 'reasoning' ? body.output.slice(0, -1) : body.output
    expect(sealsOf(items)).toEqual(sealsOf(expected))
    const kept = (type: string, name: string) => (list: JsonObject[]) =>
      list.filter((item) => item.type === type).map((item) => item[name])
    for (const same of [
      kept('function_call', 'arguments'),
      kept('custom_tool_call', 'input'),
      kept('web_search_call', 'action'),
    ])
      expect(same(items)).toEqual(same(body.output))
    // Blocks that go back as they came are the provider's own to judge.
    const bodies = new Set(reply.parts.map((part) => (part.type === 'opaque' ? JSON.stringify(part.body) : '')))
    const written = items.filter((item) => !bodies.has(JSON.stringify(item)))
    expect(items.length - written.length).toBe(reply.parts.filter(({ type }) => type === 'opaque').length)
    if (!responsesSchemaMissing) expect(responsesViolations({ model: 'm', input: written })).toEqual([])
  })
})
