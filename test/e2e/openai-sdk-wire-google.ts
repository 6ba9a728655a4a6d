import { expect } from 'vitest'
import { frame, type Wire } from './openai-sdk-provider.ts'
import { citySchema, counted, offered, pieces, pixel, placeSchema, type Said } from './openai-sdk-talks.ts'

const thoughts = 4
const usageMetadata = {
  promptTokenCount: counted.input,
  cachedContentTokenCount: counted.cached,
  candidatesTokenCount: counted.output - thoughts,
  thoughtsTokenCount: thoughts,
  totalTokenCount: counted.input + counted.output,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: counted.input }],
}
const facts = { modelVersion: 'gemini-3.5-flash', responseId: 'mFNKaZ6UNKyMvdIP' }

const sealOf = (id: string) => Buffer.from(`seal of ${id}`).toString('base64')

/** Tool calls have no reason of their own. */
const reasons = { length: 'MAX_TOKENS', filter: 'SAFETY' }
const reasonOf = ({ ended }: Said) => (ended ? reasons[ended] : 'STOP')

/** Of parallel calls only the first is sealed. Ids are told or not. */
const callParts = ({ calls = [] }: Said) =>
  calls.map(({ id, nameless, name, arguments: args }, index) => ({
    functionCall: { ...(!nameless && { id: `fc-${id}` }), name, args },
    ...(index === 0 && { thoughtSignature: sealOf(id) }),
  }))

const thoughtParts = ({ thought }: Said) => (thought === undefined ? [] : [{ text: thought, thought: true }])

const chunk = (parts: object[], more: object = {}) => ({
  candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }],
  usageMetadata,
  ...facts,
})

function frames(said: Said): string[] {
  return [
    ...thoughtParts(said).map((part) => frame(chunk([part]))),
    ...pieces(said.text ?? '').map((text) => frame(chunk([{ text }]))),
    ...callParts(said).map((part) => frame(chunk([part]))),
    // The last chunk of a text holds nothing but a seal.
    frame(
      chunk([{ text: '', ...(said.text && { thoughtSignature: sealOf('text') }) }], { finishReason: reasonOf(said) }),
    ),
  ]
}

const names: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}
const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '6.4s' }

const user = (...parts: object[]) => ({ role: 'user', parts })
const model = (...parts: object[]) => ({ role: 'model', parts })
const call = (id: string, name: string) => ({ functionCall: { id, name, args: { city: 'Paris' } } })
const result = (id: string, name: string, output: string) => ({ functionResponse: { id, name, response: { output } } })
const sealed = (id: string, name: string) => ({ ...call(`fc-${id}`, name), thoughtSignature: sealOf(id) })
const declared = offered.map(({ name, description }) => ({ name, description, parametersJsonSchema: citySchema }))
const calling = (functionDeclarations: object[], mode = 'VALIDATED') => ({
  tools: [{ functionDeclarations }],
  toolConfig: { functionCallingConfig: { mode } },
})

const greeting = {
  systemInstruction: { parts: [{ text: 'Be brief.' }] },
  contents: [user({ text: 'Hello there' })],
  generationConfig: { maxOutputTokens: 100, stopSequences: ['END'] },
}
const schema = {
  contents: [user({ text: 'Where?' })],
  generationConfig: { responseMimeType: 'application/json', responseJsonSchema: placeSchema },
}

const loopTurns = [
  user({ text: 'Weather and time in Paris?' }),
  model(sealed('w1', 'get_weather')),
  user(result('fc-w1', 'get_weather', 'sunny, now ask local_time')),
  model(sealed('t1', 'local_time')),
  user(result('fc-t1', 'local_time', '12:00')),
]
const loop = [1, 3, 5].map((passed) => ({
  contents: loopTurns.slice(0, passed),
  ...calling(declared, passed === 3 ? 'ANY' : 'VALIDATED'),
  generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: 'MEDIUM' } },
}))

/** Ids that the provider left out are invented, and the same on call and result; the test compares them. */
const anyId = expect.stringMatching(/^\S+$/)
const parallelTurns = [
  user({ text: 'Use all tools.' }),
  model({ ...call(anyId, 'get_weather'), thoughtSignature: sealOf('w1') }, call(anyId, 'local_time')),
  user(result(anyId, 'get_weather', 'sunny'), result(anyId, 'local_time', '12:00')),
]

const parallel = [1, 3].map((passed) => ({
  contents: parallelTurns.slice(0, passed),
  ...calling(declared),
  generationConfig: {},
}))

/** A seal goes back on its text, also where a stream told it after the last word. */
const again = (...parts: object[]) => {
  const turns = [...greeting.contents, model(...parts), ...greeting.contents]
  const { systemInstruction } = greeting
  return [1, 3].map((passed) => ({ systemInstruction, contents: turns.slice(0, passed), generationConfig: {} }))
}

/** The runner of the SDK forgets what it does not know: the router remembers the seal. */
const runTurns = [
  user({ text: 'Weather, please' }),
  model({ ...call('fc-w1', 'get_weather'), thoughtSignature: 'c2VhbCBvZiB3MQ==' }),
  user(result('fc-w1', 'get_weather', 'sunny')),
]
const run = [1, 3].map((passed) => ({
  contents: runTurns.slice(0, passed),
  ...calling(declared.slice(0, 1)),
  generationConfig: {},
}))

const picture = (part: object) => ({ contents: [user({ text: 'What is this?' }, part)], generationConfig: {} })

/** Gemini API v1beta. */
export const googleWire: Wire = {
  slug: 'google',
  models: { plain: 'gemini-3.5-flash', thinker: 'gemini-3.5-flash' },
  cost: (30 * 1.5 + 10 * 0.15 + 12 * 9) / 1e6,
  reasoningTokens: thoughts,
  wantsData: true,
  address: (name, stream) => ({
    path: `/models/${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: { 'x-goog-api-key': 'sk-played', 'content-type': 'application/json' },
  }),
  whole: (said) => {
    const text = said.text === undefined ? [] : [{ text: said.text, thoughtSignature: sealOf('text') }]
    return chunk([...thoughtParts(said), ...text, ...callParts(said)], { finishReason: reasonOf(said) })
  },
  frames,
  failure: frame({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
  refusal: (status) => ({
    status,
    body: {
      error: {
        code: status,
        message: `Played ${status}`,
        status: names[status],
        ...(status === 429 && { details: [retryInfo] }),
      },
    },
  }),
  bodies: {
    create: [greeting],
    stream: [greeting],
    helper: [greeting],
    again: again({ text: 'You said: Hello there', thoughtSignature: sealOf('text') }),
    'again streamed': again({ text: 'You said: Hello there', thoughtSignature: sealOf('text') }),
    schema: [schema],
    'schema streamed': [schema],
    loop,
    'loop streamed': loop,
    parallel,
    'parallel streamed': parallel,
    run,
    'run streamed': run,
    'picture inside': [picture({ inlineData: { mimeType: 'image/png', data: pixel } })],
    'picture elsewhere': [picture({ inlineData: { mimeType: 'image/png', data: pixel } })],
  },
}
