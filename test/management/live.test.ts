import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { LiveCounts, maxWatches } from '../../src/observe/live-counts.ts'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { beginStream, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { describeEach, testEach } from '../helpers/slow.ts'
import { eventually, limit } from '../helpers/time.ts'
import { plainRecord } from '../store/plain-record.ts'
import { administration } from './administration.ts'

type Figures = { [name: string]: number | string }
const matchesSchema = validator(schemaOf('LiveFigures'))

/** Looks on; each `next` is the next event. */
async function watching(router: Pick<TestRouter, 'manageUrl'>, secret = testKey, query = '') {
  const left = new AbortController()
  onTestFinished(() => left.abort())
  const response = await fetch(`${router.manageUrl}/v1/manage/live${query}`, {
    headers: { authorization: `Bearer ${secret}` },
    signal: left.signal,
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  /** The next event as its lines; undefined at the end. */
  const next = async (): Promise<string | undefined> => {
    while (!text.includes('\n\n')) {
      const { value, done } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) return undefined
      text += value
    }
    const end = text.indexOf('\n\n')
    const event = text.slice(0, end)
    text = text.slice(end + 2)
    return event
  }
  const figures = async (): Promise<Figures> => {
    const found = JSON.parse(String(await next()).replace('data: ', ''))
    expect(matchesSchema(found), JSON.stringify(matchesSchema.errors)).toBe(true)
    return found
  }
  return { response, next, figures, leave: () => left.abort() }
}

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('what happens now (%i threads)', (threads) => {
  let router: TestRouter
  let manage: ReturnType<typeof administration>
  let provider: LoopbackProvider
  let finish: () => void

  beforeAll(async () => {
    provider = await loopbackProvider(async (_, response) => {
      beginStream(response)
      const chunk = (delta: object, more: object = {}) =>
        `data: ${JSON.stringify({ id: 'x', model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`
      response.write(chunk({ role: 'assistant', content: 'Hello' }))
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      response.end(`${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`)
    })
    router = await testRouter({
      threads,
      providers: { vllm: { base_url: provider.url, models: { slow: { api: 'chat' } } } },
    })
    manage = administration(router)
  })
  afterAll(async () => {
    await router.end()
    await provider.close()
  })

  const call = { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 9 }

  test('is told once a second, from zero on, whatever thread the calls come to', async () => {
    const { figures, response } = await watching(router)
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const first = await figures()
    expect(first).toMatchObject({ calls: 0, failed: 0, input_tokens: 0, output_tokens: 0, cost: 0 })
    expect(first).not.toHaveProperty('newest')
    const replies = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const answered = await router.call('/v1/chat/completions', call, { connection: 'close' })
        const { usage } = (await answered.json()) as { usage: { cost: number } }
        return { id: answered.headers.get('x-request-id'), cost: usage.cost }
      }),
    )
    const later = await eventually(async () => {
      const told = await figures()
      expect(told).toMatchObject({ calls: 8, failed: 0 })
      return told
    })
    expect(later.cost).toBeCloseTo(
      replies.reduce((sum, { cost }) => sum + cost, 0),
      9,
    )
    expect(replies.map(({ id }) => id)).toContain(later.newest)
    expect(Date.parse(String(later.at)) - Date.parse(String(first.at))).toBeGreaterThan(900)
  })

  test('has what is under way', async () => {
    const { figures } = await watching(router)
    const streamed = await router.call('/v1/chat/completions', { ...call, model: 'vllm/slow', stream: true })
    const body = streamed.text()
    await eventually(async () => expect(await figures()).toMatchObject({ under_way: 1, streams: 1 }))
    finish()
    await body
    await eventually(async () => expect(await figures()).toMatchObject({ under_way: 0, streams: 0, calls: 1 }))
  })

  test('ends for a key that is deleted', async () => {
    const { id, secret } = await manage.newKey({ permissions: { manage: 'read' } })
    const { next } = await watching(router, secret)
    expect(await next()).toContain('data: {"at"')
    await manage.delete(`/apikey/${id}`)
    expect(await next()).toMatch(/^event: error\ndata: .*revoked/)
    expect(await next()).toBeUndefined()
  })

  test('is for so many, and a place is free when one has left', async () => {
    const open = await Promise.all(Array.from({ length: maxWatches }, () => watching(router)))
    expect(open.map(({ response }) => response.status)).toEqual(open.map(() => 200))
    const refused = await manage.get('/live?events=1')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    open[0]?.leave()
    await eventually(async () => {
      const response = await fetch(`${router.manageUrl}/v1/manage/live?events=1`, {
        headers: { authorization: `Bearer ${testKey}` },
      })
      expect(response.status).toBe(200)
      expect(await response.text()).toMatch(/^data: \{[^\n]+\}\n\n$/)
    })
    for (const { leave } of open) leave()
  })

  test('has no body for HEAD', async () => {
    const response = await fetch(`${router.manageUrl}/v1/manage/live`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${testKey}` },
    })
    expect([response.status, await response.text()]).toEqual([200, ''])
  })

  test.each(['events=0', 'events=x', 'seconds=1'])('is a 400 for %s', async (query) => {
    expect(await manage.get(`/live?${query}`)).toMatchObject({ status: 400 })
  })
})

testEach([1, 2], { slowIf: (threads) => threads > 1 })(
  'what happens now ends when the router stops (%i threads)',
  async (threads) => {
    const router = await testRouter({
      threads,
      files: simulatorOnly,
      settings: threads === 2 ? { manage: { port: 0 } } : {},
    })
    const { next } = await watching(router)
    await next()
    const begun = performance.now()
    const stopped = router.stop(20_000)
    expect(await next()).toBeUndefined()
    await stopped
    expect(performance.now() - begun).toBeLessThan(limit(10_000))
    await router.end().catch(() => {})
  },
)

test('counts are those of an organization, while somebody looks on', () => {
  const live = new LiveCounts()
  live.count(plainRecord())
  const watch = live.watch('org-1')
  live.count(plainRecord({ organization: 'org-2' }))
  expect(watch?.totals()).toEqual({ calls: 0, failed: 0, inputTokens: 0, outputTokens: 0, nanoUsd: 0n })
  const failed = plainRecord({ outcome: 'failed' })
  live.count(failed)
  live.count(plainRecord({ attemptOf: failed.id }))
  const later = live.watch('org-1')
  live.count(plainRecord({ id: 'last' }))
  expect(watch?.totals()).toMatchObject({ calls: 2, failed: 1, inputTokens: 30, nanoUsd: 3_000n, newest: 'last' })
  expect(later?.totals()).toMatchObject({ calls: 1, failed: 0, inputTokens: 10, nanoUsd: 1_000n, newest: 'last' })
  watch?.close()
  watch?.close()
  expect(later?.totals().calls).toBe(1)
  later?.close()
  live.count(plainRecord())
  expect(live.watch('org-1')?.totals().calls).toBe(0)
})

test('only so many can watch an organization at once, and others can when some have left', () => {
  const live = new LiveCounts()
  for (let round = 0; round < 3; round++) {
    expect(live.isWatched).toBe(false)
    const watches = Array.from({ length: maxWatches }, () => live.watch('org-1'))
    expect(watches).not.toContain(undefined)
    expect([live.watch('org-1'), live.watch('org-2')?.close()]).toEqual([undefined, undefined])
    watches[0]?.close()
    watches[0]?.close()
    watches[0] = live.watch('org-1')
    expect([watches[0] === undefined, live.watch('org-1')]).toEqual([false, undefined])
    for (const watch of watches) watch?.close()
  }
  expect(live.isWatched).toBe(false)
})
