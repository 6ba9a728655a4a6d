import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { fakeProvider } from '../clients/sdk-provider.ts'
import type { Body, Reply, Step } from '../clients/sdk-wire.ts'
import { messagesWire } from '../clients/sdk-wire-messages.ts'
import { responsesWire } from '../clients/sdk-wire-responses.ts'
import { chatWire } from '../clients/sdk-wires-chat.ts'
import { geminiWire } from '../clients/sdk-wires-cloud.ts'

const wires = [chatWire, responsesWire, messagesWire, geminiWire]

/** A model of each format: the ordinary prefix, the native one, and providers whose requests are converted. */
export const models = {
  ordinary: chatWire.models.plain,
  native: responsesWire.models.plain,
  anthropic: messagesWire.models.plain,
  google: geminiWire.models.plain,
}
export const everyModel = Object.values(models)

export const said: Reply = { text: 'Hello to you' }
export const called: Reply = { calls: [{ id: 'w1', name: 'weather', arguments: { city: 'Graz' } }] }
export const searched: Reply = { search: 'ruby', text: 'Ruby is at 4.0', cited: true }

/** What the client read, and what the provider got; `sent` is undefined when nothing was sent. */
export type Answer = {
  status: number
  headers: Headers
  text: string
  body: Body
  /** The events of a stream. */
  events: Body[]
  path: string | undefined
  sent: Body
}

/** A router in front of a provider of each format. */
export type World = {
  router: TestRouter
  /** The address of the provider that speaks Chat Completions. */
  url: string
  ask(path: string, body: Body, options?: { step?: Step; headers?: Record<string, string> }): Promise<Answer>
  end(): Promise<void>
}

/** `models` are more models of `openai`, `settings` the rest of the configuration. */
export async function specificationWorld(
  options: { models?: object; settings?: object; env?: NodeJS.ProcessEnv } = {},
): Promise<World> {
  const played = await Promise.all(wires.map(fakeProvider))
  const overrides = played.map(({ url, wire: { slug } }) => [
    slug,
    { base_url: url, ...(slug === 'openai' && { models: options.models ?? {} }) },
  ])
  const router = await testRouter({
    providers: Object.fromEntries(overrides),
    env: Object.assign({ ...options.env }, ...wires.map(({ env }) => env)),
    ...(options.settings && { settings: options.settings }),
  })
  return {
    router,
    url: played[0]?.url ?? '',
    async ask(path, body, { step = said, headers } = {}) {
      for (const provider of played) provider.play(step)
      const answer = await router.call(path, body, headers)
      const text = await answer.text()
      const received = played.flatMap((provider) => provider.received)[0]
      return {
        ...{ status: answer.status, headers: answer.headers, text },
        body: answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined,
        events: [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data)),
        ...{ path: received?.path, sent: received?.body },
      }
    },
    async end() {
      await router.end()
      await Promise.all(played.map((provider) => provider.close()))
    },
  }
}

/** A rule of a request's fields: bodies that are taken, and bodies that are refused with the field to blame. */
export type FieldRule = [statement: string, taken: object[], refused: [body: object, param: string][]]
