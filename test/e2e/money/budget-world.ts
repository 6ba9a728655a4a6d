import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { newSecret, storedSecret } from '../../../src/access/secrets.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { NewKey } from '../../../src/store/keys.ts'
import { openStore, type Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, pause } from '../../helpers/provider.ts'

/** The cost of a call to `priced/m1` with ten tokens of output: 0.001 USD, in nano-USD. */
export const callNano = 1_000_000n

/** A call of known cost. */
export const tenTokens = { model: 'priced/m1', max_tokens: 10, messages: [{ role: 'user', content: 'Go on' }] }

/** A model whose prompts cost nothing and whose output 0.0001 USD per token, and one that costs nothing. */
export const pricedManifest = (url: string) => `slug: priced
name: Priced
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  m1:
    api: chat
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0.0001 }]
  free:
    api: chat
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }]
`

/** Ends a call in a way of its own. */
export type OddEnd = (response: ServerResponse) => void

/** A call that the provider refuses. */
export const refused: OddEnd = (response) =>
  answerJson(response, { error: { message: 'The kitchen is on fire.' } }, 500)

/** A provider that uses all the tokens it may, after a wait; `oddly` gives the end of the calls that end otherwise. */
export async function pricedProvider({
  wait = () => pause(20),
  oddly = () => undefined,
}: {
  wait?: (n: number) => Promise<void>
  oddly?: (n: number) => OddEnd | undefined
} = {}): Promise<LoopbackProvider> {
  let calls = 0
  return await loopbackProvider(async ({ body }, response) => {
    const n = calls++
    await wait(n)
    const odd = oddly(n)
    if (odd) odd(response)
    else answerWith(response, body.max_tokens ?? 10, body.stream === true)
  })
}

function answerWith(response: ServerResponse, used: number, stream: boolean): void {
  const usage = { prompt_tokens: 9, completion_tokens: used, total_tokens: 9 + used }
  const facts = { id: 'c', created: 1, model: 'm1' }
  if (!stream) {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Gone' }, finish_reason: 'length' }]
    answerJson(response, { ...facts, object: 'chat.completion', choices, usage })
    return
  }
  beginStream(response)
  const chunk = (choices: object[], more = {}) =>
    `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  response.write(chunk([{ index: 0, delta: { content: 'Gone' }, finish_reason: null }]))
  response.end(`${chunk([{ index: 0, delta: {}, finish_reason: 'length' }])}${chunk([], { usage })}data: [DONE]\n\n`)
}

/** The database of a router that runs, beside the router. */
export function storeIn(folder: string): Promise<Store> {
  return openStore(`sqlite:${join(folder, 'data/router.sqlite')}`)
}

/** A key that calls models, with its secret. */
export async function newKey(store: Store, changes: Partial<NewKey> = {}): Promise<{ id: string; secret: string }> {
  const secret = newSecret()
  const organization = (await store.organizations.list())[0]?.id ?? ''
  const { id } = await store.keys.create({
    ...storedSecret(secret),
    organization,
    name: 'spender',
    permissions: { manage: 'none', completions: 'write' },
    createdBy: { id: 'test', email: '' },
    ...changes,
  })
  return { id, secret }
}

/** How one call ended: its status, its text, and whether it is complete; or why it could not be made. */
export type Ended = { status: number; text: string; whole: boolean; failure?: Error }

/** Makes one call on a connection of its own, which any thread may get; one whose router died has status 0. */
export async function callOnce(url: string, secret: string, body: object): Promise<Ended> {
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    const whole = response.status === 200 && ('stream' in body ? text.includes('[DONE]') : text.endsWith('}'))
    return { status: response.status, text, whole }
  } catch (thrown) {
    return { status: 0, text: '', whole: false, failure: thrown as Error }
  }
}

/** The error in the body of an answer. */
export async function errorIn(response: Response): Promise<JsonObject> {
  const { error } = (await response.json()) as { error: JsonObject }
  return error
}

/** How often each status came. */
export function byStatus(ended: readonly Ended[]): Record<string, number> {
  return Object.fromEntries(
    [...Map.groupBy(ended, ({ status }) => status)].map(([status, all]) => [status, all.length]),
  )
}
