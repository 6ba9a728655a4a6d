import type { ServerResponse } from 'node:http'
import type { CallRecord } from '../../src/core/call.ts'
import { newKey, storeIn } from '../e2e/money/budget-world.ts'
import {
  answerJson,
  type LoopbackProvider,
  loopbackProvider,
  pause,
  type Received,
  within,
} from '../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../helpers/router.ts'

/** Bytes that say where they are. */
export function audioOf(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, index) => (index * 7 + (index >> 8)) % 256))
}

/** A WAV file of so many seconds of silence: 24,000 samples of 16 bits. */
export function wavOf(seconds: number): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF')
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(24_000, 24)
  header.writeUInt32LE(48_000, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  return Buffer.concat([header, Buffer.alloc(seconds * 48_000)])
}

/** MPEG audio of so many seconds: 64 kilobits a second, at 24,000 samples. */
export function mp3Of(seconds: number): Buffer {
  const audio = Buffer.alloc(seconds * 8_000)
  // MPEG-2, layer III, without a checksum.
  audio.set([0xff, 0xf3, 0x84, 0xc4])
  return audio
}

/** Sends pieces, each in a write of its own. */
export async function sendPieces(response: ServerResponse, pieces: readonly Uint8Array[], type = 'audio/mpeg') {
  response.writeHead(200, { 'content-type': type })
  for (const piece of pieces) {
    response.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

/** Sends audio as the events of OpenAI. */
export function sendEvents(response: ServerResponse, pieces: readonly Uint8Array[], usage?: object): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const piece of pieces) {
    const audio = Buffer.from(piece).toString('base64')
    response.write(`data: ${JSON.stringify({ type: 'speech.audio.delta', audio })}\n\n`)
  }
  if (usage) response.write(`data: ${JSON.stringify({ type: 'speech.audio.done', usage })}\n\n`)
  response.end()
}

/** A speech model priced by character. */
export const byCharacter = { api: 'speech', other_prices: { per_character: 15e-6 }, max_characters: 100 }
/** One priced by token. */
export const byToken = {
  api: 'speech',
  pricing: [{ prompt_tokens_threshold: 0, input_price: 0.6e-6, output_price: 12e-6 }],
}
/** One priced by second of audio. */
export const bySecond = { api: 'speech', other_prices: { per_second: 1e-4 } }

type Answer = (request: Received, response: ServerResponse) => void | Promise<void>

/** A shipped provider: where its API begins, and its models. */
export type SpeechProvider = { base: string; models: object }

/** OpenAI with a model of each price. */
export const openaiSpeech: SpeechProvider = {
  base: '/v1',
  models: {
    characters: { ...byCharacter, streams: false },
    tokens: byToken,
    seconds: { ...bySecond, streams: false },
  },
}

/** A router before a server that is all of these providers, or that of `manifest`, whose slug is `own`. */
export async function speechStage(shipped: Record<string, SpeechProvider>, manifest?: (url: string) => string) {
  let answering: Answer = () => {}
  const provider: LoopbackProvider = await loopbackProvider((request, response) => answering(request, response))
  const providers = Object.entries(shipped).map(([slug, { base, models }]) => [
    slug,
    { base_url: `${provider.url}${base}`, secret: 'secret-of-provider', models },
  ])
  const router: TestRouter = await testRouter(
    manifest
      ? { files: { 'providers/own.yaml': manifest(provider.url) } }
      : { providers: alone(Object.fromEntries(providers)) },
  )
  const store = await storeIn(router.folder)
  return {
    /** For one test: what the provider answers now, a key of its own, and only the requests and rows from now on. */
    async begin(answer: Answer, slug = 'openai') {
      answering = answer
      provider.received.length = 0
      const earlier = new Set((await store.keys.page({ limit: 1_000 })).map(({ id }) => id))
      const { secret } = await newKey(store)
      return {
        provider,
        router,
        store,
        secret,
        speak: (fields: object, headers: Record<string, string> = {}, signal?: AbortSignal) =>
          fetch(`${router.url}/v1/audio/speech`, {
            method: 'POST',
            headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
            body: JSON.stringify({ model: `${slug}/characters`, input: 'Hello.', voice: 'alloy', ...fields }),
            ...(signal && { signal }),
          }),
        /** The rows of all calls, the last one first. */
        rows: async (): Promise<CallRecord[]> =>
          (await Array.fromAsync(store.ledger.each({})))
            .filter(({ key }) => !earlier.has(key))
            .toSorted((one, other) => other.at - one.at || (one.id < other.id ? 1 : -1)),
      }
    },
    async end() {
      await store.close()
      await router.end()
      await provider.close()
    },
  }
}

/** A router of its own before one provider that answers as `answer` says: a shipped one, or `manifest`, whose slug is `own`. */
export async function speechWorld(
  answer: Answer,
  options: { slug?: string; base?: string; models?: object; manifest?: (url: string) => string } = {},
) {
  const { slug = 'openai', base = openaiSpeech.base, models = openaiSpeech.models, manifest } = options
  const stage = await speechStage({ [slug]: { base, models } }, manifest)
  return { ...(await stage.begin(answer, slug)), end: stage.end }
}

export type SpeechStage = Awaited<ReturnType<typeof speechStage>>
export type SpeechWorld = Awaited<ReturnType<typeof speechWorld>>

/** The events of a response: the name and the data of each. */
export async function eventsIn(response: Response): Promise<{ name: string | undefined; data: SpeechEvent }[]> {
  const text = await response.text()
  return text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => ({
      name: /^event: (.*)$/m.exec(block)?.[1],
      data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null'),
    }))
}

type SpeechEvent = { type: string; audio?: string; usage?: Record<string, number>; error?: { message: string } }

/** The bytes of all events, each decoded on its own. */
export function decoded(events: readonly { data: SpeechEvent }[]): Buffer {
  return Buffer.concat(
    events.flatMap(({ data }) => (data.audio === undefined ? [] : Buffer.from(data.audio, 'base64'))),
  )
}

/** Resolves when something holds, soon. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await within(
    5_000,
    'what is waited for',
    (async () => {
      while (!(await holds())) await pause(10)
    })(),
  )
}

/** A response that is not answered yet. */
export type Unanswered = ServerResponse

export { answerJson }
