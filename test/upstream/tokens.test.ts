import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { openTokens, requestToken, type Token } from '../../src/upstream/auth/tokens.ts'
import type { HttpClient } from '../../src/upstream/http/types.ts'

const minute = 60_000
const patient = new AbortController().signal

/** A store whose clock stands at `clock.now`, and an issuer that counts its requests. */
function bench() {
  const clock = { now: 0 }
  const issuer = { requested: 0, refuses: false, answer: Promise.resolve() }
  const tokens = openTokens(() => clock.now)
  const fetchToken = async (): Promise<Token> => {
    const number = ++issuer.requested
    await issuer.answer
    if (issuer.refuses) throw new Error('refused')
    return { text: `t${number}`, refreshAt: clock.now + 50 * minute, expiresAt: clock.now + 60 * minute }
  }
  const get = (signal = patient) => tokens.get('credential', fetchToken, signal)
  return { clock, issuer, tokens, fetchToken, get }
}

/** Everything that is only waiting for a promise. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('fifty concurrent calls request one token', async () => {
  const { issuer, get } = bench()
  const texts = await Promise.all(Array.from({ length: 50 }, () => get()))
  expect(new Set(texts)).toEqual(new Set(['t1']))
  expect(await get()).toBe('t1')
  expect(issuer.requested).toBe(1)
})

test('before a token expires the next one is fetched, once, and no call waits for it', async () => {
  const { clock, issuer, get } = bench()
  await get()
  clock.now = 49 * minute
  expect(await get()).toBe('t1')
  expect(issuer.requested).toBe(1)
  clock.now = 51 * minute
  let answer = () => {}
  issuer.answer = new Promise((resolve) => {
    answer = resolve
  })
  expect(await Promise.all(Array.from({ length: 50 }, () => get()))).toEqual(Array(50).fill('t1'))
  expect(issuer.requested).toBe(2)
  answer()
  await settled()
  expect(await get()).toBe('t2')
})

test('an expired token is not used: all wait for the next', async () => {
  const { clock, issuer, get } = bench()
  await get()
  clock.now = 60 * minute - 1_000
  expect(await Promise.all([get(), get()])).toEqual(['t2', 't2'])
  expect(issuer.requested).toBe(2)
})

test('a failure rejects those who waited and is not remembered', async () => {
  const { issuer, get } = bench()
  issuer.refuses = true
  const outcomes = await Promise.allSettled([get(), get()])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(issuer.requested).toBe(1)
  issuer.refuses = false
  expect(await get()).toBe('t2')
})

test('when the refresh ahead of time fails the old token is used on, and the issuer has ten seconds of rest', async () => {
  const { clock, issuer, get } = bench()
  await get()
  clock.now = 51 * minute
  issuer.refuses = true
  for (let call = 0; call < 5; call++) {
    expect(await get()).toBe('t1')
    await settled()
  }
  expect(issuer.requested).toBe(2)
  clock.now += 11_000
  issuer.refuses = false
  expect(await get()).toBe('t1')
  await settled()
  expect(await get()).toBe('t3')
})

test('a caller that leaves does not end what others wait for', async () => {
  const { issuer, get } = bench()
  let answer = () => {}
  issuer.answer = new Promise((resolve) => {
    answer = resolve
  })
  const leaving = new AbortController()
  const left = get(leaving.signal)
  const stayed = get()
  leaving.abort(new Error('left'))
  await expect(left).rejects.toThrow('left')
  answer()
  expect(await stayed).toBe('t1')
  expect(issuer.requested).toBe(1)
})

test('a rejected token is not used again; one that has replaced it stays', async () => {
  const { tokens, get } = bench()
  await get()
  tokens.forget('credential', 't1')
  expect(await get()).toBe('t2')
  tokens.forget('credential', 't1')
  expect(await get()).toBe('t2')
})

test('a token that is being requested is requested once, also while others are asked for', async () => {
  const { clock, issuer, tokens, fetchToken } = bench()
  let answer = () => {}
  issuer.answer = new Promise((resolve) => {
    answer = resolve
  })
  const get = (credential: string) => tokens.get(credential, fetchToken, patient)
  const [first, other, again] = [get('first'), get('other'), get('first')]
  answer()
  expect(await Promise.all([first, other, again])).toEqual(['t1', 't2', 't1'])
  // One whose token has expired, and is being replaced.
  clock.now = 61 * minute
  issuer.answer = new Promise((resolve) => {
    answer = resolve
  })
  const replaced = [get('first'), get('third'), get('first')]
  answer()
  expect(await Promise.all(replaced)).toEqual(['t3', 't4', 't3'])
})

test('a credential that nobody uses any more is forgotten when its token has expired', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const { clock, tokens, fetchToken } = bench()
  const references: WeakRef<Token>[] = []
  const fetchWatched = async () => {
    const token = await fetchToken()
    references.push(new WeakRef(token))
    return token
  }
  await tokens.get('replaced', fetchWatched, patient)
  await tokens.get('used', fetchWatched, patient)
  await settled()
  collectGarbage()
  expect(references.map((one) => one.deref()?.text)).toEqual(['t1', 't2'])
  clock.now = 61 * minute
  await tokens.get('used', fetchWatched, patient)
  await tokens.get('new', fetchWatched, patient)
  await settled()
  collectGarbage()
  expect(references.map((one) => one.deref()?.text)).toEqual([undefined, undefined, 't3', 't4'])
})

test('a token is replaced in time, day after day, with one request for each', async () => {
  const { clock, issuer, get } = bench()
  for (let minutes = 0; minutes < 3 * 24 * 60; minutes += 10) {
    clock.now = minutes * minute
    await get()
    await settled()
  }
  // Every fifty minutes.
  expect(issuer.requested).toBe(1 + Math.floor((3 * 24 * 60 - 10) / 50))
})

const request = { url: 'https://tokens.example/token', form: {}, secrets: [], provider: 'maker' }

test.each([
  [3_600, 3_600],
  ['3600', 3_600],
  [1, 1],
  [0, 300],
  [-1, 300],
  ['soon', 300],
  [undefined, 300],
])('a token with `expires_in` %s is valid for %d seconds', async (expires_in, seconds) => {
  const bytes = [Buffer.from(JSON.stringify({ access_token: 't', expires_in }))]
  const httpClient = { send: async () => ({ status: 200, headers: {}, bytes }) } as unknown as HttpClient
  const { expiresAt, refreshAt } = await requestToken(request, httpClient, () => 1_000)
  expect(expiresAt).toBe(1_000 + seconds * 1_000)
  expect(refreshAt).toBe(expiresAt - Math.min(300_000, seconds * 200))
})

test.each([
  ['provider_timeout', new RouterError('provider_timeout', 'Too late.')],
  ['provider_unreachable', new RouterError('provider_cut', 'Cut off.')],
  ['provider_unreachable', new Error('No route.')],
])('a token endpoint that does not answer is %s', async (code, error) => {
  const httpClient = { send: () => Promise.reject(error) } as unknown as HttpClient
  await expect(requestToken(request, httpClient, () => 0)).rejects.toMatchObject({ code, provider: 'maker' })
})
