import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import { createRequesty } from '@requesty/ai-sdk'
import {
  generateObject,
  generateText,
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  stepCountIs,
  streamObject,
  streamText,
  tool,
} from 'ai'
import { expect } from 'vitest'
import { pause, within } from '../../helpers/provider.ts'
import { testKey } from '../../helpers/router.ts'
import {
  citySchema,
  conversations,
  expectGreeted,
  expectLooped,
  expectThoughtSent,
  greeting,
  offered,
  pixel,
  placeSchema,
  resultOf,
} from './sdk-conversations.ts'
import { row, signing, type Way, wires } from './sdk-grid.ts'
import { counted, type Wire } from './sdk-wire.ts'

type City = { city: string }

const tools = Object.fromEntries(
  offered.map(({ name, description }) => [
    name,
    tool({
      description,
      inputSchema: jsonSchema<City>(citySchema),
      execute: async ({ city }: City) => {
        expect(['Paris', 'Rome']).toContain(city)
        return resultOf(name)
      },
    }),
  ]),
)

type ModelOf = (way: Way, model: string) => LanguageModel

const settings = ({ router, fetch }: Way) => ({ baseURL: `${router.url}/v1`, apiKey: testKey, fetch })
const providers: { [name: string]: ModelOf } = {
  '@ai-sdk/openai': (way, model) => createOpenAI(settings(way)).responses(model),
  '@ai-sdk/anthropic': (way, model) => createAnthropic(settings(way))(model),
  '@openrouter/ai-sdk-provider': (way, model) =>
    createOpenRouter({ ...settings(way), compatibility: 'strict' })(model, { reasoning: { effort: 'medium' } }),
  '@requesty/ai-sdk': (way, model) =>
    createRequesty(settings(way))(model, { includeReasoning: true, reasoningEffort: 'medium' }),
}

/** Requesty's asks for JSON without its schema. */
const withoutSchema = ['@requesty/ai-sdk']
/** OpenRouter's sends no reasoning back whose maker it does not know. */
const signedOnly = ['@openrouter/ai-sdk-provider']

/** The options that make each of them reason, and return its reasoning in the next turn. */
const thinks = {
  openai: {
    store: false,
    include: ['reasoning.encrypted_content' as const],
    forceReasoning: true,
    reasoningEffort: 'medium',
    reasoningSummary: 'auto',
  },
  anthropic: { thinking: { type: 'enabled' as const, budgetTokens: 1_024 } },
}
/** The whole conversation is sent every time. */
const stateless = { openai: { store: false } }

/** Vercel's AI SDK: Responses and Messages through its own providers, Chat Completions through those of two services. */
export function vercelRows(wayTo: (wire: Wire) => Way): void {
  for (const [name, modelOf] of Object.entries(providers)) rowsOf(name, modelOf, wayTo)
}

function rowsOf(name: string, modelOf: ModelOf, wayTo: (wire: Wire) => Way): void {
  const common = (way: Way, model = way.wire.models.plain) => ({
    model: modelOf(way, model),
    maxRetries: 0,
    maxOutputTokens: 2_000,
  })
  const hello = { instructions: 'Be brief.', prompt: 'Hello there' }

  row(`${name} generateText`, conversations.hello, wayTo, async (way) => {
    const { text, usage, finishReason } = await generateText({ ...common(way), ...hello })
    expect({ text, finishReason }).toEqual({ text: greeting, finishReason: 'stop' })
    expect(usage).toMatchObject({ inputTokens: counted.input, outputTokens: counted.output })
    expectGreeted(way)
  })

  row(`${name} streamText`, conversations.hello, wayTo, async (way) => {
    const result = streamText({ ...common(way), ...hello, onError: () => undefined })
    const words: string[] = []
    for await (const word of result.textStream) words.push(word)
    expect(words.length).toBeGreaterThanOrEqual(3)
    expect(words.join('')).toBe(greeting)
    expect(await result.usage).toMatchObject({ inputTokens: counted.input, outputTokens: counted.output })
    expectGreeted(way)
  })

  const looped = (way: Way) => ({
    ...common(way),
    prompt: 'Weather and time?',
    tools,
    stopWhen: stepCountIs(5),
    providerOptions: stateless,
  })
  row(`${name} generateText: tools`, conversations.loop, wayTo, async (way) => {
    const { text, steps } = await generateText(looped(way))
    expect(text).toBe('Sunny at 12:00.')
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'tool-calls', 'stop'])
    expectLooped(way)
  })

  row(`${name} streamText: tools`, conversations.loop, wayTo, async (way) => {
    const result = streamText({ ...looped(way), onError: () => undefined })
    expect((await result.steps).map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'tool-calls', 'stop'])
    expect(await result.text).toBe('Sunny at 12:00.')
    expectLooped(way)
  })

  row(
    `${name} generateText, streamText: tools, as it is`,
    [...conversations.loop, ...conversations.loop],
    wayTo,
    async (way) => {
      // Left to itself the provider of Responses refers to earlier items by their ids, and expects them to be stored.
      const { providerOptions: _none, ...body } = looped(way)
      expect((await generateText(body)).text).toBe('Sunny at 12:00.')
      expectLooped(way)
      way.provider.received.splice(0, 3)
      const streamed = streamText({ ...body, onError: () => undefined })
      expect(await streamed.text).toBe('Sunny at 12:00.')
      expectLooped(way)
    },
  )

  const thinking = (way: Way, messages: ModelMessage[]) => ({
    ...common(way, way.wire.models.thinker),
    messages,
    tools,
    stopWhen: stepCountIs(5),
    providerOptions: thinks,
  })
  const thoughts = ['First the weather.', 'That is enough.']
  const generateThinking = async (way: Way) => {
    const messages: ModelMessage[] = [{ role: 'user', content: 'Weather?' }]
    const { text, steps, responseMessages } = await generateText(thinking(way, messages))
    expect(text).toBe('It is sunny.')
    expect(steps.map(({ reasoningText }) => reasoningText)).toEqual(thoughts)
    messages.push(...responseMessages, { role: 'user', content: 'Thanks' })
    expect((await generateText(thinking(way, messages))).text).toBe('You are welcome.')
  }
  const streamThinking = async (way: Way) => {
    const messages: ModelMessage[] = [{ role: 'user', content: 'Weather?' }]
    const result = streamText({ ...thinking(way, messages), onError: () => undefined })
    expect(await result.text).toBe('It is sunny.')
    expect((await result.steps).map(({ reasoningText }) => reasoningText)).toEqual(thoughts)
    messages.push(...(await result.responseMessages), { role: 'user', content: 'Thanks' })
    expect(await streamText({ ...thinking(way, messages), onError: () => undefined }).text).toBe('You are welcome.')
  }
  for (const [how, think] of Object.entries({ generateText: generateThinking, streamText: streamThinking })) {
    row(`${name} ${how}: reasoning goes back`, conversations.thinking, wayTo, async (way) => {
      await think(way)
      if (!signedOnly.includes(name) || signing.includes(way.wire)) expectThoughtSent(way)
    })
  }

  const place = (way: Way, structuredOutputMode: 'outputFormat' | 'jsonTool' = 'outputFormat') => ({
    ...common(way),
    prompt: 'Where?',
    schema: jsonSchema<object>(placeSchema),
    providerOptions: { anthropic: { structuredOutputMode } },
  })
  row(`${name} generateObject`, conversations.json, wayTo, async (way) => {
    const { object } = await generateObject(place(way))
    expect(object).toEqual({ city: 'Paris', sunny: true })
    expect(way.provider.arrived(0).hasSchema).toBe(!withoutSchema.includes(name))
  })

  if (name === '@ai-sdk/anthropic') {
    // The way it takes by itself with models that it does not know: a tool that must be called.
    row(
      `${name} generateObject, streamObject by a tool`,
      [...conversations.jsonTool, ...conversations.jsonTool],
      wayTo,
      async (way) => {
        const { object } = await generateObject(place(way, 'jsonTool'))
        const result = streamObject({ ...place(way, 'jsonTool'), onError: () => undefined })
        const grown: unknown[] = []
        for await (const partial of result.partialObjectStream) grown.push(partial)
        expect([object, grown.at(-1)]).toEqual([
          { city: 'Paris', sunny: true },
          { city: 'Paris', sunny: true },
        ])
        expect(way.provider.arrived(1).tools).toEqual(['json'])
      },
    )
  }

  row(`${name} streamObject`, conversations.json, wayTo, async (way) => {
    const result = streamObject({ ...place(way), onError: () => undefined })
    const grown: unknown[] = []
    for await (const object of result.partialObjectStream) grown.push(object)
    expect(grown.length).toBeGreaterThan(1)
    expect(await result.object).toEqual({ city: 'Paris', sunny: true })
  })

  row(
    `${name}: an error of the router, and one of its provider`,
    [{ refuse: 429, retryAfter: '7' }],
    wayTo,
    async (way) => {
      const unknown = generateText({ ...common(way, 'nowhere/none'), ...hello })
      await expect(unknown).rejects.toMatchObject({ statusCode: 404, message: expect.stringContaining('nowhere') })
      const limited = generateText({ ...common(way), ...hello })
      await expect(limited).rejects.toMatchObject({ statusCode: 429, message: expect.stringContaining('429') })
    },
    wires.filter(({ failures }) => failures),
  )

  row(`${name} streamText: abort`, [], wayTo, async (way) => {
    way.provider.play('stay')
    const leaving = new AbortController()
    const result = streamText({ ...common(way), ...hello, abortSignal: leaving.signal, onError: () => undefined })
    const parts: string[] = []
    for await (const part of result.fullStream) {
      parts.push(part.type)
      if (part.type === 'text-delta') leaving.abort()
    }
    expect(parts.at(-1)).toBe('abort')
    await within(5_000, 'leaving the provider', way.provider.received[0]?.left ?? pause(0))
  })

  row(`${name} generateText: images`, conversations.hello, wayTo, async (way) => {
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'file' as const, data: pixel, mediaType: 'image/png' },
    ]
    const model = way.wire.models.seer ?? way.wire.models.plain
    await generateText({ ...common(way, model), messages: [{ role: 'user', content }] })
    expect(way.provider.arrived(0).turns).toMatchObject([{ role: 'user', text: 'What is this?', images: [pixel] }])
  })
}
