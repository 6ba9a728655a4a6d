import type OpenAI from 'openai'
import { expect } from 'vitest'
import { columnOf, onlyChoice, user } from './sdk-chat-cells.ts'
import { citySchema, conversations, expectThoughtSent, offered, resultOf } from './sdk-conversations.ts'
import { carriedOrReported, expectPaired, row, signing, type Way } from './sdk-grid.ts'
import { source, type Wire } from './sdk-wire.ts'

// What the stream helpers of the `openai` SDK gather and announce: calls, reasoning and searches.

type Body = Omit<OpenAI.ChatCompletionCreateParamsStreaming, 'stream'>

const tools = offered.map(
  ({ name, description }): OpenAI.ChatCompletionFunctionTool => ({
    type: 'function',
    function: { name, description, parameters: citySchema, strict: true },
  }),
)

/** `openai` SDK, Chat Completions: the events of its stream helpers. */
export function streamRows(wayTo: (wire: Wire) => Way): void {
  const streamOf = (way: Way, body: Body) => columnOf(way).client.chat.completions.stream({ ...body, stream: true })

  row('openai chat.completions: .stream(): events of calls', conversations.loop.slice(0, 1), wayTo, async (way) => {
    const stream = streamOf(way, { model: way.wire.models.plain, messages: [user('Weather and time?')], tools })
    const grown: string[] = []
    const done: unknown[] = []
    stream.on('tool_calls.function.arguments.delta', ({ index, arguments_delta }) => {
      grown[index] = (grown[index] ?? '') + arguments_delta
    })
    stream.on('tool_calls.function.arguments.done', ({ index, name, arguments: args }) => {
      done.push([index, name, args, grown[index]])
    })
    const { message, finish_reason } = onlyChoice(await stream.finalChatCompletion())
    const [paris, rome] = ['Paris', 'Rome'].map((city) => JSON.stringify({ city }))
    expect(done).toEqual([
      [0, 'get_weather', paris, paris],
      [1, 'local_time', rome, rome],
    ])
    expect(message.content).toBe('I look it up.')
    expect([message.tool_calls?.length, finish_reason]).toEqual([2, 'tool_calls'])
  })

  const asked: [string, object, string[]][] = [
    ['reasoning_effort', { reasoning_effort: 'medium' }, ['reasoning_content']],
    ['reasoning: {}', { reasoning: { effort: 'medium' } }, ['reasoning_content', 'reasoning']],
    ['include_reasoning', { include_reasoning: true }, ['reasoning_content', 'reasoning']],
  ]
  for (const [words, members, names] of asked) {
    const title = `openai chat.completions: .stream(): reasoning after ${words}`
    row(title, conversations.thinking.slice(1, 2), wayTo, async (way) => {
      const body = { model: way.wire.models.thinker, messages: [user('Weather?')], ...members }
      const stream = streamOf(way, body)
      const thought: { [name: string]: string } = {}
      stream.on('chunk', ({ choices: [choice] }) => {
        const delta: { [name: string]: unknown } = { ...choice?.delta }
        for (const name of ['reasoning_content', 'reasoning']) {
          if (typeof delta[name] === 'string') thought[name] = (thought[name] ?? '') + delta[name]
        }
      })
      const { message } = onlyChoice(await stream.finalChatCompletion())
      expect(message.content).toBe('It is sunny.')
      expect(thought).toEqual(Object.fromEntries(names.map((name) => [name, 'That is enough.'])))
    })
  }

  for (const how of ['create', 'stream'] as const) {
    const title = `openai chat.completions: ${how}: web search, citations`
    row(title, conversations.search, wayTo, async (way) => {
      const messages = [user('Which Ruby?')]
      const search = [{ type: 'web_search' }] as unknown as OpenAI.ChatCompletionFunctionTool[]
      const body = { model: way.wire.models.searcher, messages, tools: search }
      const { completions } = columnOf(way).client.withOptions({ fetch: way.fetch }).chat
      const completion =
        how === 'create'
          ? await completions.create(body)
          : await completions.stream({ ...body, stream: true }).finalChatCompletion()
      const { message, finish_reason } = onlyChoice(completion)
      expect([message.content, finish_reason]).toEqual([source.quote, 'stop'])
      const url_citation = { url: source.url, start_index: 0, end_index: source.quote.length }
      if (!way.wire.lacks.citations) expect(message.annotations).toMatchObject([{ type: 'url_citation', url_citation }])
      return carriedOrReported(way, 'search', way.provider.arrived(0).searches, /web_search/)
    })
  }

  row('openai chat.completions: .runTools({stream: true}): thoughts', conversations.thinking, wayTo, async (way) => {
    const { client, thinker } = columnOf(way)
    const runnable = offered.map(({ name, description }) => ({
      type: 'function' as const,
      function: {
        ...{ name, description, parameters: citySchema as object, strict: true },
        parse: JSON.parse as (input: string) => object,
        function: () => resultOf(name),
      },
    }))
    const body = { model: thinker, reasoning_effort: 'medium' as const, stream: true as const }
    const runner = client.chat.completions.runTools({ ...body, messages: [user('Weather?')], tools: runnable })
    expect(await runner.finalContent()).toBe('It is sunny.')
    const messages = [...runner.messages, user('Thanks')]
    const { message } = onlyChoice(await streamOf(way, { ...body, messages, tools }).finalChatCompletion())
    expect(message.content).toBe('You are welcome.')
    expectPaired(way.provider.arrived(2))
    // The SDK does not gather the members that it does not know.
    if (signing.includes(way.wire)) expectThoughtSent(way)
  })
}
