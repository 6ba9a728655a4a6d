import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openStore, type Store } from '../../src/store/open.ts'
import { type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { wav } from '../media/sounds.ts'

/** How a provider answers a transcription. */
export type Answering = Parameters<typeof loopbackProvider>[0]

/** A file of a form; `name` is that of the field. */
export type Sent = { bytes?: Buffer; filename?: string; type?: string; name?: string }

/** The fields of a form in their order: each a text, several texts, or a file. */
export type FormFields = readonly (readonly [name: string, value: string | Sent])[]

/** A router with one provider behind all others, which says what each test wants. */
export type TranscriptionWorld = {
  router: TestRouter
  provider: LoopbackProvider
  store: Store
  /** What the provider says next. */
  answer(answering: Answering): void
  /** Sends a form, the file first as SDKs do. */
  ask(fields: FormFields, secret?: string, headers?: Record<string, string>): Promise<Response>
  /** The form that the provider got last: texts, and files as `{filename, type, bytes}`. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it sent.
  last(): Record<string, any>
  end(): Promise<void>
}

/** A sound of two seconds. */
export const twoSeconds = wav(2)

/** A form of a file and other fields. */
export function formOf(fields: FormFields, { withFile = true } = {}): FormData {
  const form = new FormData()
  const all: FormFields = withFile ? [['file', {}], ...fields] : fields
  for (const [name, value] of all) {
    if (typeof value === 'string') form.append(name, value)
    else {
      const { bytes = twoSeconds, filename = 'sound.wav', type = 'audio/wav' } = value
      form.append(value.name ?? name, new File([new Uint8Array(bytes)], filename, { type }))
    }
  }
  return form
}

const second = (price: number, more: object = {}) => ({
  api: 'transcription',
  other_prices: { per_second: price },
  ...more,
})

/** Models by provider: those that are paid by the second cost 0.0001 USD. */
const models = {
  openai: { 'whisper-1': second(1e-4, { streams: false }) },
  groq: { 'whisper-large-v3': second(1e-4, { min_seconds: 10 }) },
  mistral: { voxtral: second(1e-4, { granularities: ['word', 'segment'], granularities_at_once: 1 }) },
  together: { whisper: second(1e-4) },
  fireworks: { asr: second(1e-4) },
  openrouter: { whisper: second(1e-4) },
  deepgram: { 'nova-x': second(1e-4) },
  elevenlabs: { scribe_x: second(1e-4) },
  cohere: { 'transcribe-x': second(1e-4) },
  xai: { 'grok-voice-transcribe-2.0': second(1e-4) },
}

/** Providers whose paths have the version. */
const bare: ReadonlySet<string> = new Set(['deepgram', 'elevenlabs', 'cohere'])

/** Starts a world; `settings` are those of the router. */
export async function transcriptionWorld(settings: object = {}): Promise<TranscriptionWorld> {
  let answering: Answering = (_, response) => void response.writeHead(500).end()
  const provider = await loopbackProvider((request, response) => answering(request, response))
  const providers = Object.fromEntries(
    Object.entries(models).map(([slug, own]) => [
      slug,
      { base_url: provider.url + (bare.has(slug) ? '' : '/v1'), secret: 'provider-secret', models: own },
    ]),
  )
  const router = await testRouter({ providers, settings })
  const file = join(router.folder, 'data/router.sqlite')
  if (!existsSync(file)) throw new Error(`no ${file}`)
  const store = await openStore(`sqlite:${file}`)
  return {
    router,
    provider,
    store,
    answer: (next) => {
      answering = next
    },
    ask: (fields, secret = testKey, headers = {}) =>
      fetch(`${router.url}/v1/audio/transcriptions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, ...headers },
        body: formOf(fields, { withFile: !fields.some(([name]) => name === 'file') }),
      }),
    last: () => {
      const grouped = Map.groupBy<string, [string, unknown]>(provider.received.at(-1)?.body ?? [], ([name]) => name)
      return Object.fromEntries(
        [...grouped].map(([name, all]) => [name, all.length > 1 ? all.map(([, value]) => value) : all[0]?.[1]]),
      )
    },
    async end() {
      await store.close()
      await router.end()
      await provider.close()
    },
  }
}
