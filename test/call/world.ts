import type { ServerResponse } from 'node:http'
import type { CallRecord } from '../../src/core/call.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { NewKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/open.ts'
import { newKey, storeIn } from '../e2e/money/budget-world.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { limit } from '../helpers/time.ts'
import { answer } from './answers.ts'
import { type Format, modelApis, type Route, routes } from './examples.ts'

// A router with two providers of every format behind it, `one` and `two`. `two` is the cheaper one.

/** Handles one request as a provider. */
export type Act = (response: ServerResponse, request: Received) => void | Promise<void>

export type Slot = 'one' | 'two'

/** USD for a token of a model: of a cheap one at `two`, and a hundred times as much. */
const prices = { one: 2e-6, two: 1e-6, costly: 1e-4 }
const dialects: { readonly [format in Format]: string } = {
  chat: 'openai-chat',
  responses: 'openai-responses',
  messages: 'anthropic-messages',
}

/** Providers here fetch no files. */
const history = { inline_media: true }

/** The endpoints of a format, each without one field. */
const endpoints: { readonly [format in Format]: object } = {
  chat: {
    chat: { losses: ['seed', 'top_k', 'temperature', 'reasoning'], history },
    embed: { losses: ['input_type'] },
    image: { stream: {}, losses: ['seed'] },
    image_edit: { stream: {}, takes: [], losses: ['seed'] },
    speech: { stream: {}, losses: ['instructions'] },
    transcribe: { stream: { done: '[DONE]' }, losses: ['languages'] },
    complete: { losses: ['seed'] },
    rerank: {},
    moderate: {},
    decide: { losses: ['safety_identifier'] },
  },
  responses: {
    chat: { losses: ['temperature', 'reasoning'], history },
    count: { path: '/responses/input_tokens' },
    compact: { path: '/responses/compact' },
  },
  messages: {
    chat: { losses: ['top_k', 'temperature', 'reasoning'], history },
    count: { path: '/v1/messages/count_tokens' },
  },
}

/** The facts of a model by its variant; `''` is the usual one. */
const variants: { readonly [variant: string]: object } = {
  '': { context_window: 100_000, geolocation: 'us', data_retention: true, data_used_for_training: true },
  '-costly': { context_window: 100_000, geolocation: 'us', price: prices.costly },
  '-unpriced': { context_window: 100_000, price: null },
  '-european': { geolocation: 'eu', data_retention: false, data_used_for_training: false },
  '-small': { context_window: 1 },
  '-larger': { context_window: 200_000 },
}

function modelsOf(slot: Slot): JsonObject {
  const entries = modelApis.flatMap((api) =>
    Object.entries(variants).map(
      ([variant, { price = prices[slot], ...facts }]: [string, { price?: number | null }]) => {
        const pricing = price === null ? [] : [{ prompt_tokens_threshold: 0, input_price: price, output_price: price }]
        const limits = { max_output_tokens: 100 }
        return [`${api}${variant}`, { api, ...limits, ...facts, ...(price !== null && { pricing }) }]
      },
    ),
  )
  const own = routes.flatMap((route) => {
    const pricing = [{ prompt_tokens_threshold: 0, input_price: prices[slot], output_price: prices[slot] }]
    const entry = { api: route.models, max_output_tokens: 100, context_window: 100_000, pricing }
    return ['', '.again'].map((more) => [`${route.models}${ownVariant(route)}${more}`, entry])
  })
  return Object.fromEntries([...entries, ...own])
}

/**
 * The variant of a model that one route alone is asked for; with `.again` after it there is another one. What is known of the health of
 * such a model is about the calls of that route.
 */
export function ownVariant({ path }: Route): string {
  return path.replaceAll('/', '.')
}

function manifest(slot: Slot, format: Format, url: string): string {
  return JSON.stringify({
    slug: `${slot}-${format}`,
    name: `${slot} ${format}`,
    base_url: `${url}/${slot}`,
    auth: { scheme: 'bearer', secret: `\${KEY_OF_${slot.toUpperCase()}}` },
    dialect: dialects[format],
    idempotency: 'idempotency-key',
    endpoints: endpoints[format],
    models: modelsOf(slot),
  })
}

/** Policies over both providers, for every format and kind of model: the one that costs more comes first. */
function policies(): JsonObject {
  const made: JsonObject = {}
  for (const format of Object.keys(dialects) as Format[]) {
    for (const api of modelApis) {
      const targets: [string, string] = [`one-${format}/${api}`, `two-${format}/${api}`]
      made[`both-${format}-${api}`] = { targets }
      made[`price-${format}-${api}`] = { targets, sort: 'price' }
      made[`session-${format}-${api}`] = { targets, sticky: 'session' }
      made[`larger-${format}-${api}`] = { targets: [`one-${format}/${api}-small`, targets[1]] }
      made[`whole-${format}-${api}`] = { targets, on_cut: 'hold' }
      made[`brief-${format}-${api}`] = { targets, total: `${limit(400)}ms` }
      made[`user-${format}-${api}`] = { targets, sticky: 'user' }
      made[`weighted-${format}-${api}`] = {
        targets: [{ target: targets[0], weight: 0 }, targets[1]],
        sort: 'weighted',
      }
      made[`priced-${format}-${api}`] = { targets: [`one-${format}/${api}-unpriced`, targets[1]] }
      made[`region-${format}-${api}@eu`] = { targets: [targets[0], `two-${format}/${api}-european`] }
    }
  }
  for (const route of routes) {
    const targets = (['one', 'two'] as const).map((slot) => idOf(route, slot, ownVariant(route)))
    made[`own${ownVariant(route)}`] = { targets }
  }
  return made
}

/** The policy over models that one route alone is asked for. */
export function ownPolicy(route: Route): string {
  return `own${ownVariant(route)}`
}

/** A call and who makes it. */
export type Asking = {
  model?: string
  /** Further members of the body, or others than those of the example. */
  body?: JsonObject
  headers?: Record<string, string>
  secret?: string
  signal?: AbortSignal
  stream?: boolean
  /** A text in place of the body of the example. */
  raw?: { text: string; type?: string }
}

export type Answer = {
  status: number
  headers: Headers
  text: string
  /** The JSON of the answer; undefined where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  json: any
}

/** A key; it has made no call before `since`, in Unix milliseconds. */
export type Keyed = { id: string; secret: string; organization: string; since: number }

export class World {
  readonly router: TestRouter
  readonly store: Store
  readonly providers: { readonly [slot in Slot]: LoopbackProvider }
  /** Handlers of the next requests; later ones are answered as usual. */
  readonly acts: { readonly [slot in Slot]: Act[] }
  #organizations = 0

  constructor(parts: Pick<World, 'router' | 'store' | 'providers' | 'acts'>) {
    this.router = parts.router
    this.store = parts.store
    this.providers = parts.providers
    this.acts = parts.acts
  }

  /** Forgets what providers were to do and have received. */
  clear(): void {
    for (const slot of ['one', 'two'] as const) {
      this.acts[slot].length = 0
      this.providers[slot].received.length = 0
    }
  }

  /** A key of the first organization, or of another one. */
  async key(changes: Partial<NewKey> = {}): Promise<Keyed> {
    const organization = changes.organization ?? (await this.store.organizations.list())[0]?.id ?? ''
    return { ...(await newKey(this.store, { ...changes, organization })), organization, since: Date.now() }
  }

  /** A key of an organization of its own, which has made no calls. */
  async keyOfOwn(changes: Partial<NewKey> = {}): Promise<Keyed> {
    const { id } = await this.store.organizations.create(`organization ${++this.#organizations}`)
    return this.key({ ...changes, organization: id })
  }

  async rows({ id, organization, since }: Keyed): Promise<CallRecord[]> {
    return await Array.fromAsync(this.store.ledger.each({ organization, key: id, from: since }))
  }

  /** The requests that providers received, `one` first. */
  get received(): Received[] {
    return [...this.providers.one.received, ...this.providers.two.received]
  }

  fetch(route: Route, asking: Asking = {}): Promise<Response> {
    const { headers = {}, secret, signal } = asking
    const { body, type } = bodyOf(route, asking)
    return fetch(this.router.url + route.path, {
      method: 'POST',
      headers: {
        ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
        ...(type !== undefined && { 'content-type': type }),
        ...headers,
      },
      body,
      ...(signal && { signal }),
    })
  }

  async ask(route: Route, asking: Asking = {}): Promise<Answer> {
    return await read(await this.fetch(route, asking))
  }

  async end(): Promise<void> {
    await this.store.close()
    await this.router.end()
    await this.providers.one.close()
    await this.providers.two.close()
  }
}

/** Reads an answer to its end. */
export async function read(response: Response): Promise<Answer> {
  const text = await response.text()
  const json = /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : undefined
  return { status: response.status, headers: response.headers, text, json }
}

/** The body of a call: JSON, or the form of a route with a file. */
export function bodyOf(
  route: Route,
  asking: Asking,
): { body: string | FormData | Uint8Array<ArrayBuffer>; type?: string } {
  const { model = idOf(route), stream, raw } = asking
  // Without a type of its own, a text would get one.
  if (raw) return { body: new TextEncoder().encode(raw.text), ...(raw.type !== undefined && { type: raw.type }) }
  // In a form further names come before the first one, which is read as soon as it comes.
  const all: JsonObject = { models: undefined, model, ...route.body, ...(stream && route.stream), ...asking.body }
  const { file } = route
  if (!file) return { body: JSON.stringify(all), type: 'application/json' }
  const form = new FormData()
  for (const [name, value] of Object.entries(all)) {
    // Lists of names are several fields; what has members is JSON.
    if (Array.isArray(value)) for (const item of value) form.append(`${name}[]`, String(item))
    else if (value !== undefined) form.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  }
  form.append(file.field, new File([new Uint8Array(file.bytes)], file.name, { type: file.type }))
  return { body: form }
}

/** The bytes of a body, and their type. */
export async function bytesOf(route: Route): Promise<{ bytes: Buffer; type: string }> {
  const { body, type } = bodyOf(route, {})
  const whole = new Response(body)
  return {
    bytes: Buffer.from(await whole.arrayBuffer()),
    type: type ?? whole.headers.get('content-type') ?? '',
  }
}

/** The id of a model for a route: of a slot, and a variant such as `-unpriced`. */
export function idOf({ format, models }: Route, slot: Slot = 'one', variant = ''): string {
  return `${slot}-${format}/${models}${variant}`
}

/** The name of a policy for a route: `both`, `price`, … */
export function policyOf({ format, models }: Route, name: string): string {
  return `${name}-${format}-${models}`
}

/** Fails with a status. */
export const failing =
  (status: number, headers = {}, error: JsonObject = { message: `failed with ${status}` }): Act =>
  (response) =>
    answerJson(response, { error }, status, headers)

/** Answers as usual, after something else. */
export const answering =
  (...more: [saying?: Parameters<typeof answer>[2], headers?: object]): Act =>
  (response, request) =>
    answer(response, request, ...more)

type Setup = { settings?: object; files?: Record<string, string>; threads?: number; keepAliveMs?: number }

/** Starts a world; `settings` are those of the router beside its policies. */
export async function callWorld({ settings = {}, files = {}, threads = 1, keepAliveMs }: Setup = {}): Promise<World> {
  const acts: World['acts'] = { one: [], two: [] }
  const serve = (slot: Slot) =>
    loopbackProvider((request, response) => (acts[slot].shift() ?? answering())(response, request))
  const providers = { one: await serve('one'), two: await serve('two') }
  const manifests = (['one', 'two'] as const).flatMap((slot) =>
    (Object.keys(dialects) as Format[]).map((format) => [
      `providers/${slot}-${format}.yaml`,
      manifest(slot, format, providers[slot].url),
    ]),
  )
  const router = await testRouter({
    env: { KEY_OF_ONE: 'secret-of-one', KEY_OF_TWO: 'secret-of-two' },
    files: { ...Object.fromEntries(manifests), ...files },
    // The provider `two` has files as well.
    media: { schemes: ['https', 'http'], allow_hosts: [new URL(providers.two.url).host] },
    settings: { policies: policies(), ...settings },
    threads,
    ...(keepAliveMs !== undefined && { keepAliveMs }),
  })
  return new World({ router, store: await storeIn(router.folder), providers, acts })
}

/** A world whose settings are the usual ones. */
export function plainWorld(): Promise<World> {
  return callWorld()
}
