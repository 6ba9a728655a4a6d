import type { ServerResponse } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Job } from '../../src/manifest/operation.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { readMapping } from '../../src/mapping/mapping.ts'
import { defaultAnswerBounds } from '../../src/upstream/answer-body.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import type { HttpClient } from '../../src/upstream/http/types.ts'
import { resultOf } from '../../src/upstream/job.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { eventually } from '../helpers/time.ts'

type Answer = (request: Received, response: ServerResponse, asked: number) => void

let httpClient: HttpClient
let provider: LoopbackProvider
let answer: Answer
let asked = 0

beforeEach(async () => {
  httpClient = openHttpClient()
  asked = 0
  provider = await loopbackProvider((request, response) => answer(request, response, ++asked))
})

afterEach(async () => {
  await httpClient.close()
  await provider.close()
})

const job = (changes: Partial<Job> = {}): Job => ({
  id: readMapping('id'),
  poll: '/jobs/{id}',
  done: readMapping('status = "ready" ? result'),
  failed: readMapping('status = "failed" ? { "message": reason, "code": "moderated" }'),
  everyMs: 5,
  withinMs: 2_000,
  ...changes,
})

async function wait(begun: JsonObject, changes: Partial<Job> = {}, signal = new AbortController().signal) {
  const acme = {
    slug: 'acme',
    baseUrl: `${provider.url}/v1`,
    auth: { scheme: 'bearer', secret: 'secret' },
    headers: {},
    timeouts: { connectMs: 1_000, firstEventMs: 1_000, betweenEventsMs: 1_000, totalMs: 2_000 },
    errors: { moderated: 'content_blocked' },
    traits: [],
  } as unknown as Provider
  const options = { signal, bounds: defaultAnswerBounds, httpClient }
  return await resultOf({ provider: acme, model: 'm' }, job(changes), begun, options)
}

const pending = { id: 'a b', status: 'pending' }

describe('a job', () => {
  test('is asked for until it is done', async () => {
    answer = (_, response, times) =>
      answerJson(response, times < 3 ? pending : { status: 'ready', result: { url: 'x' } })
    expect(await wait(pending)).toEqual({ url: 'x' })
    expect(provider.received.map(({ method, path }) => `${method} ${path}`)).toEqual(
      Array(3).fill('GET /v1/jobs/a%20b'),
    )
    expect(provider.received[0]?.headers.authorization).toBe('Bearer secret')
  })

  test('that is done at once is not asked for', async () => {
    expect(await wait({ id: 'a', status: 'ready', result: { n: 1 } })).toEqual({ n: 1 })
    expect(asked).toBe(0)
  })

  test('whose whole answer is the result', async () => {
    answer = (_, response) => answerJson(response, { state: 'ok', n: 2 })
    expect(await wait(pending, { done: readMapping('state = "ok"') })).toEqual({ state: 'ok', n: 2 })
  })

  test('is asked for at the address that the provider named, if that is its own', async () => {
    answer = (_, response) => answerJson(response, { status: 'ready', result: { n: 3 } })
    expect(await wait({ id: `${provider.url}/there?q=1` }, { poll: '{id}' })).toEqual({ n: 3 })
    expect(provider.received[0]?.path).toBe('/there?q=1')
    const elsewhere = { id: 'https://elsewhere.example/there' }
    await expect(wait(elsewhere, { poll: '{id}', hosts: ['*.else.example'] })).rejects.toMatchObject({
      code: 'provider_unreadable',
      message: expect.stringContaining('not its own'),
    })
  })

  test('goes on through failures that pass', async () => {
    answer = (_, response, times) => {
      if (times === 1) response.destroy()
      else if (times === 2) answerJson(response, {}, 503)
      else answerJson(response, { status: 'ready', result: { n: 4 } })
    }
    expect(await wait(pending)).toEqual({ n: 4 })
    expect(asked).toBe(3)
  })
})

describe('the pace of a job', () => {
  /** The waits before each question, none of which takes any time. */
  function watchWaits(): number[] {
    const waits: number[] = []
    const spy = vi.spyOn(timers, 'setTimeout').mockImplementation(async (ms = 0) => void waits.push(ms))
    syncBuiltinESMExports()
    onTestFinished(() => {
      spy.mockRestore()
      syncBuiltinESMExports()
    })
    return waits
  }

  test('doubles with each failure in a row, and is its own again after any answer', async () => {
    const waits = watchWaits()
    const fails = [1, 2, 3, 4, 6, 7, 8, 9, 12, 14, 16]
    answer = (_, response, times) => {
      if (fails.includes(times)) answerJson(response, {}, 503)
      else answerJson(response, times < 18 ? pending : { status: 'ready', result: { n: 5 } })
    }
    expect(await wait(pending, { everyMs: 100, withinMs: 1_000_000 })).toEqual({ n: 5 })
    expect(waits).toEqual([
      ...[100, 200, 400, 800, 1_600],
      ...[100, 200, 400, 800, 1_600],
      ...[100, 100, 200, 100, 200, 100, 200, 100],
    ])
  })

  test('is at least what a busy provider asks for', async () => {
    const waits = watchWaits()
    answer = (_, response, times) => {
      if (times === 1) answerJson(response, {}, 429, { 'retry-after': '7' })
      else if (times === 2) answerJson(response, {}, 429, { 'retry-after-ms': '1' })
      else answerJson(response, { status: 'ready', result: { n: 6 } })
    }
    expect(await wait(pending, { everyMs: 100, withinMs: 1_000_000 })).toEqual({ n: 6 })
    expect(waits).toEqual([100, 7_000, 400])
  })
})

describe('a job ends with an error', () => {
  test('when the provider says that it failed', async () => {
    answer = (_, response) => answerJson(response, { status: 'failed', reason: 'not that' })
    await expect(wait(pending)).rejects.toMatchObject({ code: 'content_blocked', message: 'not that' })
  })

  test('when it is not known any more', async () => {
    answer = (_, response) => answerJson(response, { error: { message: 'no such job' } }, 404)
    await expect(wait(pending)).rejects.toThrow('no such job')
    expect(asked).toBe(1)
  })

  test('when the provider keeps failing', async () => {
    answer = (_, response) => answerJson(response, {}, 500)
    const kept = wait(pending, { everyMs: 1, cancel: '/jobs/{id}/cancel' })
    await expect(kept).rejects.toMatchObject({ code: 'provider_failed' })
    await eventually(() => expect(asked).toBe(6))
    expect(provider.received.at(-1)?.path).toBe('/v1/jobs/a%20b/cancel')
  })

  test.each([[{}], [{ id: '' }], [{ id: '..' }], [{ id: 7 }]])('when there is no id: %j', async (begun) => {
    await expect(wait(begun)).rejects.toThrow('without the id of a job')
    expect(asked).toBe(0)
  })

  test('when its time is over, and is cancelled', async () => {
    answer = (_, response) => answerJson(response, pending)
    await expect(wait(pending, { withinMs: 40, cancel: '/jobs/{id}/cancel' })).rejects.toMatchObject({
      code: 'provider_timeout',
    })
    await eventually(() =>
      expect(provider.received.at(-1)).toMatchObject({ method: 'POST', path: '/v1/jobs/a%20b/cancel' }),
    )
  })

  test('when its client leaves, and is cancelled', async () => {
    const client = new AbortController()
    answer = (_, response, times) => {
      if (times === 2) client.abort(new RouterError('client_gone', 'The client disconnected.'))
      answerJson(response, pending)
    }
    await expect(wait(pending, { cancel: '/jobs/{id}/cancel' }, client.signal)).rejects.toMatchObject({
      code: 'client_gone',
    })
    await eventually(() => expect(provider.received.at(-1)?.path).toBe('/v1/jobs/a%20b/cancel'))
  })
})
