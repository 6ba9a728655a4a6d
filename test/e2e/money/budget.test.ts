import { randomUUIDv7 } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, pause } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { describeEach, slow } from '../../helpers/slow.ts'
import {
  byStatus,
  callNano,
  callOnce,
  errorIn,
  newKey,
  type OddEnd,
  pricedManifest,
  pricedProvider,
  refused,
  storeIn,
  tenTokens,
} from './budget-world.ts'

// Limits that pay exactly so many calls, and many more calls at the same time.

let provider: LoopbackProvider
let router: TestRouter
let store: Store
/** The organization of a test, and what it has of the provider. */
let organization = ''
let behaviour: Parameters<typeof pricedProvider>[0] = {}
let callsBefore = 0

async function begin(how: Parameters<typeof pricedProvider>[0] = {}): Promise<void> {
  behaviour = how
  callsBefore = provider.received.length
  organization = (await store.organizations.create(randomUUIDv7())).id
}

const received = () => provider.received.slice(callsBefore)
const keyWith = (changes: Parameters<typeof newKey>[1] = {}) => newKey(store, { organization, ...changes })

describeEach([1, 4], { slowIf: (threads) => threads > 1 })('%d threads', (threads) => {
  beforeAll(async () => {
    provider = await pricedProvider({
      wait: (n) => behaviour?.wait?.(n - callsBefore) ?? pause(20),
      oddly: (n) => behaviour?.oddly?.(n - callsBefore),
    })
    router = await testRouter({ threads, files: { 'providers/priced.yaml': pricedManifest(provider.url) } })
    store = await storeIn(router.folder)
  })

  afterAll(async () => {
    await store.close()
    await router.end()
    await provider.close()
  })

  const now = Date.now()

  /** The state of the ledger after calls: the totals of the rows, and each sum. */
  async function ledgerState(keyIds: string[]) {
    const rows = (
      await Promise.all(keyIds.map(async (id) => await Array.fromAsync(store.ledger.each({ key: id }))))
    ).flat()
    let keys = 0n
    for (const id of keyIds) keys += await store.spend.ofKey(id, now)
    return {
      rows: rows.reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n),
      keys,
      organization: await store.spend.ofOrganization(organization, now),
    }
  }

  const all = (nano: bigint) => ({ rows: nano, keys: nano, organization: nano })

  test.each([
    ['whole', {}],
    ['streamed', { stream: true }],
  ])('of 200 calls at once, %s, a key that pays 20 makes exactly 20', async (_, how) => {
    await begin()
    const key = await keyWith({ monthlyLimitNano: 20n * callNano })
    const ended = await Promise.all(
      Array.from({ length: 200 }, () => callOnce(router.url, key.secret, { ...tenTokens, ...how })),
    )
    expect(byStatus(ended)).toEqual({ 200: 20, 402: 180 })
    expect(ended.filter(({ whole }) => whole)).toHaveLength(20)
    expect(received()).toHaveLength(20)
    expect(await ledgerState([key.id])).toEqual(all(20n * callNano))
    const last = await callOnce(router.url, key.secret, tenTokens)
    const reset = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 1)).toISOString()
    expect(JSON.parse(last.text).error).toEqual({
      origin: 'router',
      type: 'billing_error',
      code: 'budget_exhausted',
      param: null,
      doc_url: '/docs/errors.html#budget_exhausted',
      message:
        'The monthly limit of this API key is 0.02 USD: 0.02 USD spent, 0.00 USD reserved by running calls, and this ' +
        `call could cost up to 0.001 USD. It resets at ${reset.replace('.000Z', 'Z')}.`,
    })
  })

  test('the balance of an organization pays exactly so many calls of all its keys', async () => {
    await begin()
    await store.organizations.credit(organization, 20n * callNano)
    const keys = [await keyWith(), await keyWith(), await keyWith({ monthlyLimitNano: 5n * callNano })]
    const ended = await Promise.all(
      Array.from({ length: 200 }, (_, n) => callOnce(router.url, keys[n % 3]?.secret ?? '', tenTokens)),
    )
    expect(byStatus(ended)).toEqual({ 200: 20, 402: 180 })
    expect(await ledgerState(keys.map(({ id }) => id))).toEqual(all(20n * callNano))
    const { creditNano, spendNano } = (await store.organizations.list()).find(({ id }) => id === organization) ?? {}
    expect([creditNano, spendNano]).toEqual([20n * callNano, 20n * callNano])
    expect(ended.find(({ text }) => text.includes('balance'))?.text).toContain('It does not reset: add credit.')
  })

  test('the keys of a group share its limit; its other keys go on', slow, async () => {
    await begin()
    const group = await store.groups.create({
      organization: organization,
      name: 'lab',
      monthlyLimitNano: 20n * callNano,
    })
    const keys = [await keyWith({ groupId: group.id }), await keyWith({ groupId: group.id })]
    const outside = await keyWith()
    const ended = await Promise.all(
      Array.from({ length: 200 }, (_, n) => callOnce(router.url, keys[n % 2]?.secret ?? '', tenTokens)),
    )
    expect(byStatus(ended)).toEqual({ 200: 20, 402: 180 })
    expect(await ledgerState(keys.map(({ id }) => id))).toEqual(all(20n * callNano))
    expect(await store.spend.ofGroup(group.id, now)).toBe(20n * callNano)
    expect(ended.find(({ status }) => status === 402)?.text).toContain(
      "The monthly limit of the group 'lab' of this API key is 0.02 USD: ",
    )
    expect((await callOnce(router.url, outside.secret, tenTokens)).status).toBe(200)
  })

  test('calls that fail release their reservation, and the whole limit can be spent', async () => {
    await begin({ oddly: (n) => (n % 3 === 0 ? refused : undefined) })
    const key = await keyWith({ monthlyLimitNano: 7n * callNano })
    const ended = []
    for (let n = 0; n < 12; n++) ended.push(await callOnce(router.url, key.secret, tenTokens))
    expect(byStatus(ended)).toEqual({ 200: 7, 402: 1, 502: 4 })
    expect(await ledgerState([key.id])).toEqual(all(7n * callNano))
  })

  test('however a call ends, nothing stays reserved: a key that can pay one call can still make it', async () => {
    const ends: OddEnd[] = [
      refused,
      (response) => response.destroy(),
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices": ['),
      (response) => answerJson(response, { error: { message: 'No such model.' } }, 404),
      (response) => answerJson(response, { error: { message: 'Slowly.' } }, 429),
      (response) => {
        beginStream(response)
        response.destroy()
      },
      (response) => {
        beginStream(response)
        response.end('data: {"error": {"message": "overloaded"}}\n\n')
      },
      (response) => {
        beginStream(response)
        const call = { index: 0, id: 'c', function: { name: 7, arguments: '' } }
        response.end(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`)
      },
      // The client leaves before anything came.
      () => {},
    ]
    // Of the call, not of the request: one over a kept connection that breaks is sent again.
    let current = 0
    await begin({ oddly: () => ends[current] })
    const key = await keyWith({ monthlyLimitNano: callNano })
    for (const [n] of ends.entries()) {
      current = n
      const signal = n === ends.length - 1 ? AbortSignal.timeout(100) : null
      const body = JSON.stringify({ ...tenTokens, stream: n >= 5 && n <= 7 })
      const headers = { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' }
      const requested = fetch(`${router.url}/v1/chat/completions`, { method: 'POST', headers, body, signal })
      expect(
        await requested.then(
          ({ status }) => status,
          () => 499,
        ),
        `ending ${n}`,
      ).not.toBe(402)
      await expect.poll(async () => (await Array.fromAsync(store.ledger.each({ key: key.id }))).length).toBe(n + 1)
    }
    current = ends.length
    expect(await ledgerState([key.id])).toEqual(all(0n))
    expect((await callOnce(router.url, key.secret, tenTokens)).status).toBe(200)
    expect(await ledgerState([key.id])).toEqual(all(callNano))
  })

  test('a free model is usable when the limit is reached', async () => {
    await begin()
    const key = await keyWith({ monthlyLimitNano: callNano })
    expect((await callOnce(router.url, key.secret, tenTokens)).status).toBe(200)
    expect((await callOnce(router.url, key.secret, tenTokens)).status).toBe(402)
    expect((await callOnce(router.url, key.secret, { ...tenTokens, model: 'priced/free' })).status).toBe(200)
  })

  test('a call without an output limit gets the configured number of tokens at least, and is held to it', async () => {
    await begin()
    const key = await keyWith({ monthlyLimitNano: 40n * callNano })
    const { max_tokens: _, ...unbounded } = tenTokens
    const rejected = await callOnce(router.url, key.secret, unbounded)
    expect(rejected.status).toBe(402)
    expect(rejected.text).toContain('(it sets no output limit such as max_tokens, so 4096 output tokens are assumed)')
    const config = JSON.stringify({ server: { port: 0, threads }, budget: { default_output_tokens: 400 } })
    const generation = router.snapshot().generation
    router.put('config.yaml', config)
    await expect.poll(() => router.snapshot().generation).toBeGreaterThan(generation)
    expect((await callOnce(router.url, key.secret, unbounded)).status).toBe(200)
    expect(provider.received.at(-1)?.body.max_tokens).toBe(400)
    expect(await ledgerState([key.id])).toEqual(all(40n * callNano))
  })

  test('each API reports an exhausted budget in its own form', async () => {
    await begin()
    const key = await keyWith({ monthlyLimitNano: 1n })
    const headers = { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' }
    const messages = await router.call('/v1/messages', tenTokens, headers)
    expect([messages.status, (await errorIn(messages)).type]).toEqual([402, 'billing_error'])
    const responses = await router.call('/v1/responses', { model: 'priced/m1', input: 'x' }, headers)
    expect([responses.status, (await errorIn(responses)).code]).toEqual([402, 'budget_exhausted'])
  })

  test('a row has the group of its key and the tags of its call, which override the metadata of the body', async () => {
    await begin()
    const group = await store.groups.create({ organization: organization, name: randomUUIDv7() })
    const key = await keyWith({ groupId: group.id })
    const body = { ...tenTokens, metadata: { team: 'body', task: 'nightly' } }
    const call = (tags: string) =>
      router.call('/v1/chat/completions', body, { authorization: `Bearer ${key.secret}`, 'x-router-tags': tags })
    expect((await call('team=search, cost-center=4711,')).status).toBe(200)
    expect((await Array.fromAsync(store.ledger.each({ key: key.id })))[0]).toMatchObject({
      group: group.id,
      metadata: { team: 'search', task: 'nightly', 'cost-center': '4711' },
    })
    expect(received()[0]?.body.metadata).toEqual({ team: 'body', task: 'nightly' })
    const bad = await call('no tag')
    expect(bad.status).toBe(400)
    expect(await errorIn(bad)).toMatchObject({
      param: 'x-router-tags',
      message:
        "The header x-router-tags has the tag 'no tag'; write name=value; names may contain letters, digits, _ . and -.",
    })
  })
})
