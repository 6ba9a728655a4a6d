import type OpenAI from 'openai'

/** What a model says in one answer. Thoughts are sealed by providers that seal; `ended` is why it was cut. */
export type Said = { thought?: string; text?: string; calls?: SaidCall[]; ended?: 'length' | 'filter' }

/** A call; `id` is completed by each provider in its own manner, and left out by those that may, where it says so. */
export type SaidCall = { id: string; nameless?: true; name: string; arguments: object }

/** One exchange with a provider: which model is asked, whether for a stream, and what it says. */
export type Step = { model: 'plain' | 'thinker'; stream: boolean; said: Said }

const plain = (said: Said): Step => ({ model: 'plain', stream: false, said })
const streamed = (step: Step): Step => ({ ...step, stream: true })
const thinker = (said: Said): Step => ({ model: 'thinker', stream: false, said })

const paris = { city: 'Paris' }
const greeting = plain({ text: 'You said: Hello there' })
const weather = (id: string): SaidCall => ({ id, name: 'get_weather', arguments: paris })
const time = (id: string): SaidCall => ({ id, name: 'local_time', arguments: paris })
const loop = [
  thinker({ thought: 'First the weather.', calls: [weather('w1')] }),
  thinker({ thought: 'Then the time.', calls: [time('t1')] }),
  thinker({ text: 'The tool said: 12:00' }),
]
const parallel = [
  plain({
    calls: [
      { ...weather('w1'), nameless: true },
      { ...time('w2'), nameless: true },
    ],
  }),
  plain({ text: 'The tools said: 12:00; sunny' }),
]
const run = [plain({ calls: [weather('w1')] }), plain({ text: 'The tool said: sunny' })]

/** The conversations of the table: the words are those of the simulator, so that every provider gives the same answers. */
export const talks = {
  create: [greeting],
  stream: [streamed(greeting)],
  helper: [streamed(greeting)],
  again: [greeting, greeting],
  'again streamed': [streamed(greeting), streamed(greeting)],
  schema: [plain({ text: '{"city":"Paris","sunny":true}' })],
  'schema streamed': [streamed(plain({ text: '{"city":"Paris","sunny":true}' }))],
  loop,
  'loop streamed': loop.map(streamed),
  parallel,
  'parallel streamed': parallel.map(streamed),
  run,
  'run streamed': run.map(streamed),
  'picture inside': [plain({ text: 'You said: What is this? I see an image (image/png, 67 bytes).' })],
  'picture elsewhere': [plain({ text: 'You said: What is this? I see an image at https://example.com/cat.png.' })],
} satisfies Record<string, Step[]>

export type Talk = keyof typeof talks

export const hello: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hello there' },
]

const city = { type: 'string', enum: ['Paris', 'Rome'] }

export const citySchema = { type: 'object', properties: { city }, required: ['city'], additionalProperties: false }

export const placeSchema = {
  type: 'object',
  properties: { city, sunny: { type: 'boolean' } },
  required: ['city', 'sunny'],
  additionalProperties: false,
}

/** The tools that are offered everywhere, and what they answer. */
export const offered = [
  { name: 'get_weather', description: 'The weather of a city', result: 'sunny' },
  { name: 'local_time', description: 'The time in a city', result: '12:00' },
] as const

/** The offered tools as this API writes them. */
export const tools = offered.map(
  ({ name, description }): OpenAI.ChatCompletionFunctionTool => ({
    type: 'function',
    function: { name, description, parameters: citySchema, strict: true },
  }),
)

/** One black pixel. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=='

export const pictures = { inside: `data:image/png;base64,${pixel}`, elsewhere: 'https://example.com/cat.png' }

/** What every played provider counts. Tokens; thoughts are part of the output. */
export const counted = { input: 40, cached: 10, output: 12 }

/** A text in the pieces of a stream. */
export function pieces(text: string): string[] {
  const size = Math.ceil(text.length / 3)
  return [text.slice(0, size), text.slice(size, 2 * size), text.slice(2 * size)].filter(Boolean)
}
