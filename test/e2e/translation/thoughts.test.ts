import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { administration } from '../../management/administration.ts'

// What a model thought goes back to its maker, in the conversation that it belongs to, and nowhere else.

const claude = 'anthropic/claude-sonnet-4-5'
const secretThought = 'The account number is 4711.'
/** Some providers count the calls of each conversation, so that the ids of all are the same. */
const id = 'functions.Bash:0'
const callInput = { command: 'ls', all: true }

type Body = { [name: string]: unknown }
type Answer = {
  error?: { message: string }
  choices: [{ message: { tool_calls: [Call]; reasoning_content?: string } }]
}
type Call = { id: string; type: 'function'; function: { name: string; arguments: string } }

let maker: LoopbackProvider
let another: LoopbackProvider
let routers: { [threads: number]: TestRouter }
let other: { secret: string }

beforeAll(async () => {
  maker = await loopbackProvider((_, response) =>
    answerJson(response, {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-4-5',
      content: [
        { type: 'thinking', thinking: secretThought, signature: 'seal' },
        { type: 'tool_use', id, name: 'Bash', input: callInput },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 1 },
    }),
  )
  another = await loopbackProvider((_, response) =>
    answerJson(response, {
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'deepseek-chat',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  )
  const start = (threads: number) =>
    testRouter({
      threads,
      providers: alone({ anthropic: { base_url: maker.url }, deepseek: { base_url: another.url } }),
      env: { ANTHROPIC_API_KEY: 'a', DEEPSEEK_API_KEY: 'd' },
    })
  routers = { 1: await start(1), 2: await start(2) }
})

afterAll(async () => {
  await Promise.all(Object.values(routers ?? {}).map((router) => router.end()))
  await Promise.all([maker?.close(), another?.close()])
})

beforeEach(() => {
  maker.received.length = 0
  another.received.length = 0
})

describe.each([1, 2])('with %i threads', (threads) => {
  const router = () => routers[threads] as TestRouter

  beforeAll(async () => {
    other = await administration(router()).newKey()
  })

  async function ask(
    model: string,
    messages: unknown[],
    { secret = testKey, ...more }: Body & { secret?: string } = {},
  ) {
    const response = await fetch(`${router().url}/v1/chat/completions`, {
      method: 'POST',
      // Each connection may be served by another thread.
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ model, messages, reasoning_effort: 'high', ...more }),
    })
    const body = (await response.json()) as Answer
    expect([response.status, body.error?.message]).toEqual([200, undefined])
    return { response, message: body.choices[0].message }
  }

  /** Begins a conversation, and returns its call as clients send it back: without what was thought. */
  async function begin(text: string): Promise<Call> {
    const { message } = await ask(claude, [{ role: 'user', content: text }])
    expect(message.reasoning_content).toBe(secretThought)
    return message.tool_calls[0]
  }

  const rounds = (text: unknown, call: Call) => [
    { role: 'user', content: text },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: call.id, content: 'a b' },
  ]
  const withFunction = (call: Call, more: Partial<Call['function']>): Call => ({
    ...call,
    function: { ...call.function, ...more },
  })
  const sentTo = ({ received }: LoopbackProvider) => JSON.stringify(received.at(-1)?.body)

  test('a thought goes back to its maker in its own conversation, however the client rewrites the rest', async () => {
    const call = await begin('List my files')
    await ask(claude, rounds('List my files', call))
    expect(sentTo(maker)).toContain(secretThought)
    const marked = [{ type: 'text', text: 'List my files', cache_control: { type: 'ephemeral' } }]
    const rewritten = withFunction(call, { arguments: '{ "all": true,\n "command": "ls" }' })
    const earlier = [
      { role: 'system', content: 'It is noon.' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello.' },
    ]
    await ask(claude, [...earlier, ...rounds(marked, rewritten)])
    expect(sentTo(maker)).toContain(secretThought)
  })

  test('a thought does not reach a conversation of another key, whatever that sends', async () => {
    for (let times = 0; times < 4; times++) {
      const text = `List all files, ${times}`
      const call = await begin(text)
      await ask(claude, rounds(text, call), other)
      expect(sentTo(maker)).toContain(text)
      expect(sentTo(maker)).not.toMatch(/4711|seal/)
    }
  })

  test('a thought does not reach another conversation of the same key with the same id of a call', async () => {
    const call = await begin('Look here')
    for (const [text, similar] of [
      ['Look there', call],
      ['Look here', withFunction(call, { arguments: '{"command":"pwd","all":true}' })],
      ['Look here', withFunction(call, { name: 'Read' })],
    ] as const) {
      await ask(claude, rounds(text, similar))
      expect(sentTo(maker)).toContain(text)
      expect(sentTo(maker)).not.toMatch(/4711|seal/)
    }
    await ask(claude, rounds('Look here', call))
    expect(sentTo(maker)).toContain(secretThought)
  })

  /** Goes on with a conversation at a provider of another format and maker. */
  async function goOn(text: string, call: Call, thoughts: Body[] = []): Promise<string | null> {
    const content = [...thoughts, { type: 'tool_use', id: call.id, name: call.function.name, input: callInput }]
    const response = await router().call('/v1/messages', {
      model: 'deepseek/deepseek-flash',
      max_tokens: 1_000,
      thinking: { type: 'enabled', budget_tokens: 1_024 },
      messages: [
        { role: 'user', content: text },
        { role: 'assistant', content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'a b' }] },
      ],
    })
    expect(response.status).toBe(200)
    return response.headers.get('x-router-dropped')
  }

  test('a thought that the client has not sent reaches no other maker, and is not reported as lost', async () => {
    const dropped = await goOn('Count them', await begin('Count them'))
    expect(sentTo(another)).toContain('Count them')
    expect(sentTo(another)).not.toMatch(/4711|seal/)
    expect(dropped ?? '').not.toContain('parts.reasoning')
  })

  test('a thought that the client has sent goes where the client sends it', async () => {
    const call = await begin('Sum them')
    await goOn('Sum them', call, [{ type: 'thinking', thinking: 'I count to three.', signature: '' }])
    expect(sentTo(another)).toContain('I count to three.')
    expect(sentTo(another)).not.toMatch(/4711|seal/)
    const [first, assistant, ...rest] = rounds('Sum them', call)
    await ask(claude, [first, { ...assistant, reasoning_content: 'I count to three.' }, ...rest])
    expect(sentTo(maker)).toContain(secretThought)
    expect(sentTo(maker)).not.toContain('I count to three.')
  })
})
