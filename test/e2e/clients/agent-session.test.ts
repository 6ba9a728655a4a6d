import Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { within } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'
import { type Agent, playSession, system, tools } from './agent-script.ts'
import { fakeProvider } from './sdk-provider.ts'
import type { Body, FakeProvider, Wire } from './sdk-wire.ts'
import { messagesWire } from './sdk-wire-messages.ts'
import { chatWire } from './sdk-wires-chat.ts'
import { converseWire, geminiWire } from './sdk-wires-cloud.ts'
import { cohereWire } from './sdk-wires-open.ts'

const wires = [geminiWire, chatWire, converseWire, messagesWire, cohereWire]
const played = new Map<string, FakeProvider>()
let router: TestRouter

beforeAll(async () => {
  for (const wire of wires) played.set(wire.slug, await fakeProvider(wire))
  const urls = [...played].map(([slug, { url }]) => [slug, { base_url: url }])
  router = await testRouter({
    providers: { ...Object.fromEntries(urls), deepseek: { base_url: played.get('openai')?.url } },
    env: Object.assign({}, ...wires.map(({ env }) => env)),
  })
})

afterAll(async () => {
  await router.end()
  await Promise.all([...played.values()].map((server) => server.close()))
})

/** Gemini 3 rejects a turn whose first call is not signed. */
const signed = ({ contents }: Body) => {
  for (const { parts } of contents) {
    const [first] = parts.filter(({ functionCall }: Body) => functionCall)
    if (first) expect(first.thoughtSignature).toMatch(/./)
  }
}

/** Claude wants roles that take turns, results before all else, and failures marked; marks of the cache arrive. */
const converse = ({ system: instructions, messages }: Body) => {
  expect(JSON.stringify(instructions)).toContain('cachePoint')
  for (const [index, { role, content }] of messages.entries()) {
    expect(role).toBe(index % 2 === 0 ? 'user' : 'assistant')
    const kinds = content.map((block: Body) => (block.toolResult ? 'result' : 'other')).join(' ')
    expect(kinds).not.toMatch(/other.*result/)
    for (const { toolResult: result } of content) {
      if (result && /exit code|refused/.test(JSON.stringify(result))) expect(result.status).toBe('error')
    }
  }
}

const alternating = ({ messages }: Body) => {
  for (const [index, { role, content }] of messages.entries()) {
    expect(role).toBe(index % 2 === 0 ? 'user' : 'assistant')
    const kinds = content.map(({ type }: Body) => type).join(' ')
    expect(kinds).not.toMatch(/(text|image).*tool_result/)
  }
}

/** Tools answer right after their calls, before anybody else speaks. */
const answered = ({ messages }: Body) => {
  for (const [index, { tool_calls: calls = [] }] of messages.entries()) {
    const next = messages.slice(index + 1, index + 1 + calls.length)
    expect(next.map((one: Body) => one.tool_call_id)).toEqual(calls.map(({ id }: Body) => id))
  }
}

/** Sessions: the client's API, the provider's format, the model, the provider's check of the history, whether the model sees. */
const sessions: [string, Wire, string, (model: string) => Agent, (body: Body) => void, sees?: boolean][] = [
  ['Messages', geminiWire, geminiWire.models.thinker, messagesAgent, signed],
  ['Messages', chatWire, 'deepseek/deepseek-flash', messagesAgent, answered],
  ['Messages', converseWire, converseWire.models.thinker, messagesAgent, converse],
  ['Responses', messagesWire, messagesWire.models.thinker, responsesAgent, alternating],
  ['Responses', cohereWire, cohereWire.models.thinker, responsesAgent, answered, false],
]

describe('thirty turns of a coding agent', () => {
  for (const [api, wire, model, agentOf, rule, sees] of sessions) {
    test(`through ${api} on ${wire.dialect}`, wire === messagesWire ? {} : slow, async () => {
      const provider = played.get(wire.slug) as FakeProvider
      expect(await within(15_000, 'the session', playSession(agentOf(model), provider, rule, sees))).toBe(30)
    })
  }
})

/** A client of Messages as Claude Code is one: thinking, cache marks, everything streamed, blocks sent back as they came. */
function messagesAgent(model: string): Agent {
  const client = new Anthropic({ baseURL: router.url, apiKey: testKey, maxRetries: 0 })
  let messages: Anthropic.MessageParam[] = []
  const body = () => ({
    model,
    max_tokens: 32_000,
    system: [{ type: 'text' as const, text: system, cache_control: { type: 'ephemeral' as const } }],
    tools: tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
    thinking: { type: 'adaptive' as const },
    messages,
  })
  const image = (data: string) => ({
    type: 'image' as const,
    source: { type: 'base64' as const, media_type: 'image/png' as const, data },
  })
  const user = (content: Anthropic.ContentBlockParam[]) => {
    const last = messages.at(-1)
    if (last?.role === 'user' && Array.isArray(last.content)) last.content.push(...content)
    else messages.push({ role: 'user', content })
  }
  return {
    say: (text, picture) => user([{ type: 'text', text }, ...(picture ? [image(picture)] : [])]),
    answer: (results) =>
      user(
        results.map(({ id, text, picture, isError }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: picture ? [{ type: 'text' as const, text }, image(picture)] : text,
          ...(isError && { is_error: true }),
        })),
      ),
    async next() {
      const { content, stop_reason } = await client.messages.stream(body()).finalMessage()
      messages.push({ role: 'assistant', content })
      const calls = content.flatMap((block) => (block.type === 'tool_use' ? block : []))
      expect(stop_reason).toBe(calls.length > 0 ? 'tool_use' : 'end_turn')
      const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
      return { text, calls: calls.map(({ id, name, input }) => ({ id, name, arguments: input })) }
    },
    async interrupted() {
      const running = client.messages.stream(body())
      const failing = running.finalMessage().catch((error: unknown) => error)
      const [text] = (await running.emitted('text')) as unknown as [string]
      running.abort()
      expect(await failing).toBeInstanceOf(Anthropic.APIUserAbortError)
      messages.push({ role: 'assistant', content: [{ type: 'text', text }] })
      return text
    },
    compact: (summary) => {
      messages = [{ role: 'user', content: [{ type: 'text', text: summary }] }]
    },
  }
}

/** A client of Responses as Codex is one: nothing stored by the server, reasoning encrypted, items sent back unchanged. */
function responsesAgent(model: string): Agent {
  const client = router.openai()
  let input: OpenAI.Responses.ResponseInputItem[] = []
  const body = () => ({
    model,
    instructions: system,
    input,
    tools: tools.map(({ schema, ...one }) => ({
      type: 'function' as const,
      strict: false,
      parameters: schema,
      ...one,
    })),
    reasoning: { effort: 'medium' as const, summary: 'auto' as const },
    include: ['reasoning.encrypted_content' as const],
    parallel_tool_calls: true,
    store: false,
  })
  const text = (words: string) => ({ type: 'input_text' as const, text: words })
  const image = (data: string) => ({
    type: 'input_image' as const,
    image_url: `data:image/png;base64,${data}`,
    detail: 'auto' as const,
  })
  return {
    say: (words, picture) =>
      void input.push({ role: 'user', content: [text(words), ...(picture ? [image(picture)] : [])] }),
    answer: (results) =>
      void input.push(
        ...results.map(({ id, text: words, picture }) => ({
          type: 'function_call_output' as const,
          call_id: id,
          output: picture ? [text(words), image(picture)] : words,
        })),
      ),
    async next() {
      const response = await client.responses.stream(body()).finalResponse()
      expect(response.status).toBe('completed')
      input.push(...(response.output as OpenAI.Responses.ResponseInputItem[]))
      const calls = response.output.flatMap((item) => (item.type === 'function_call' ? item : []))
      return {
        text: response.output_text,
        calls: calls.map(({ call_id, name, arguments: args }) => ({ id: call_id, name, arguments: JSON.parse(args) })),
      }
    },
    async interrupted() {
      const leaving = new AbortController()
      let words = ''
      const events = await client.responses.create({ ...body(), stream: true }, { signal: leaving.signal })
      for await (const event of events) {
        if (event.type !== 'response.output_text.delta') continue
        words += event.delta
        leaving.abort()
      }
      input.push({ role: 'assistant', content: words })
      return words
    },
    compact: (summary) => {
      input = [{ role: 'user', content: summary }]
    },
  }
}
