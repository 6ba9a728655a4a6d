import type { PluginRequest } from 'inference-router/plugin'
import { openPlugin, type TestCall } from 'inference-router/plugin/test'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import autoCache from '../../plugins/auto-cache/index.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../helpers/router.ts'

const long = 'word '.repeat(1_200)
const text = (said: string) => ({ type: 'text' as const, text: said })
const message = (role: 'user' | 'assistant', said: string) => ({ role, parts: [text(said)] })
const tool = (description: string) => ({ kind: 'function' as const, name: 'look', description, parameters: {} })
type Chat = Extract<PluginRequest, { chat: unknown }>['chat']
const chatOf = (changes: Partial<Chat>): Chat => ({
  model: 'anthropic/claude-sonnet-4-5',
  messages: [message('user', 'Hello')],
  ...changes,
})

/** Where marks are: `tools`, `system`, or the number of a message. */
async function marks(changes: Partial<Chat>, options: object = {}, facts: TestCall['facts'] = {}) {
  const tested = await openPlugin(autoCache, { options })
  const request = { operation: 'chat' as const, chat: chatOf(changes) }
  const { forwarded } = await tested.call({ request, facts })
  const chat = forwarded && 'chat' in forwarded ? forwarded.chat : request.chat
  return [
    ...(chat.tools?.some(({ cache }) => cache) ? ['tools'] : []),
    ...(chat.system?.some((part) => 'cache' in part) ? ['system'] : []),
    ...chat.messages.flatMap(({ parts }, index) => (parts.some((part) => 'cache' in part) ? [index] : [])),
  ]
}

describe('auto-cache', () => {
  const system = [text(long)]

  test.each<[string, Partial<Chat>, (string | number)[]]>([
    ['long system texts', { system }, ['system']],
    ['long tools', { tools: [tool('short'), tool(long)] }, ['tools']],
    ['both', { tools: [tool(long)], system }, ['tools', 'system']],
    ['short tools with the system text', { tools: [tool('short')], system }, ['system']],
    ['what is short', { tools: [tool('short')], system: [text('Be brief.')] }, []],
    ['a long last message', { messages: [message('user', long)] }, []],
    [
      'what was said before',
      { messages: [message('user', long), message('assistant', 'Yes.'), message('user', 'And?')] },
      [1],
    ],
  ])('marks %s', async (_, changes, expected) => {
    expect(await marks(changes)).toEqual(expected)
  })

  test('marks at most four, the last and the largest', async () => {
    const turns = [1, 2, 3, 2, 3].map((times, index) => message(index % 2 ? 'assistant' : 'user', long.repeat(times)))
    const messages = [...turns, message('user', 'And?')]
    expect(await marks({ tools: [tool(long)], system, messages })).toEqual([1, 2, 3, 4])
    expect(await marks({ tools: [tool(long)], system, messages }, { max_breakpoints: 2 })).toEqual([2, 4])
  })

  test.each<[string, Partial<Chat>, TestCall['facts']]>([
    ['mark parts', { messages: [{ role: 'user', parts: [{ ...text('Hello'), cache: {} }] }] }, {}],
    ['mark tools', { tools: [{ ...tool('short'), cache: {} }] }, {}],
    ['have a cache_control', {}, { body: { cache_control: { type: 'ephemeral' } } }],
    ['do not want it', {}, { body: { requesty: { auto_cache: false } } }],
    ['have what would be lost', { unread: ['messages.own'] }, {}],
    ['ask a model that caches by itself', { model: 'openai/gpt-4o' }, {}],
  ])('leaves alone who %s', async (_, changes, facts) => {
    const found = await marks({ system, ...changes }, {}, facts)
    expect(found).not.toContain('system')
  })

  test('may wait for the wish of a client, who has the whole prompt cached as well', async () => {
    const wish = { body: { requesty: { auto_cache: true } } }
    expect(await marks({ system }, { by_default: false })).toEqual([])
    expect(await marks({ system }, { by_default: false }, wish)).toEqual(['system'])
    const messages = [message('user', long), message('assistant', long), message('user', 'And?')]
    expect(await marks({ tools: [tool(long)], system, messages }, {}, wish)).toHaveLength(3)
  })

  test('says what is wrong with its options', async () => {
    await expect(openPlugin(autoCache, { options: { max_breakpoints: 5 } })).rejects.toThrow('`max_breakpoints`')
  })
})

describe('through the router', () => {
  let provider: LoopbackProvider
  let router: TestRouter
  beforeAll(async () => {
    provider = await loopbackProvider((_, response) => {
      const usage = {
        input_tokens: 5,
        output_tokens: 2,
        cache_creation_input_tokens: 1_500,
        cache_read_input_tokens: 0,
      }
      answerJson(response, {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'claude',
        content: [],
        stop_reason: 'end_turn',
        usage,
      })
    })
    router = await testRouter({
      providers: alone({ anthropic: { base_url: provider.url, secret: 'secret' } }),
      settings: { plugins: [{ name: 'auto-cache', options: { ttl: '1h' } }] },
    })
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
  })

  test.each(['/v1/chat/completions', '/v1/messages'])('a provider is asked to cache what %s says', async (path) => {
    const messages = [{ role: 'user', content: 'Hello' }]
    const isChat = path.includes('chat')
    const body = isChat ? { messages: [{ role: 'system', content: long }, ...messages] } : { system: long, messages }
    const response = await router.call(path, { model: 'anthropic/claude-sonnet-4-5', max_tokens: 9, ...body })
    expect([response.status, response.headers.get('x-router-dropped')]).toEqual([200, null])
    expect(provider.received.at(-1)?.body).toMatchObject({
      system: [{ type: 'text', text: long, cache_control: { type: 'ephemeral', ttl: '1h' } }],
      messages: [{ role: 'user' }],
    })
  })
})
