import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { beginStream, type LoopbackProvider, loopbackProvider, pause } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { eventually, limit } from '../../helpers/time.ts'
import { administration } from '../../management/administration.ts'

const manifest = (url: string) => `slug: near
name: Near
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  m1: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] }
`
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`

let provider: LoopbackProvider

beforeAll(async () => {
  provider = await loopbackProvider(async ({ body }, response) => {
    const prompt = body.messages.at(-1).content as string
    beginStream(response)
    if (prompt === 'endless') {
      while (!response.destroyed) if (!response.write(chunk({ content: 'x'.repeat(10_000) }))) await pause(1)
      return
    }
    response.write(chunk({ content: 'one' }))
    if (prompt === 'silent') await pause(3_000)
    response.end(`${chunk({ content: 'two' })}${chunk({}, 'stop')}data: [DONE]\n\n`)
  })
})

afterAll(() => provider.close())

/** A router with so many places, in one thread: several have a share each. */
async function routerWith(server: object): Promise<TestRouter> {
  const router = await testRouter({
    files: { 'providers/near.yaml': manifest(provider.url) },
    settings: { server: { host: '127.0.0.1', port: 0, ...server } },
  })
  onTestFinished(() => router.end())
  return router
}

const asking = (content: string) => ({
  model: 'near/m1',
  stream: true,
  messages: [{ role: 'user', content }],
})

/** A client that sends a call and reads nothing of its answer. */
function unreadCall({ url }: TestRouter, content: string): Socket {
  const text = JSON.stringify(asking(content))
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\ncontent-type: application/json`
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  socket.pause().write(`${head}\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
  onTestFinished(() => void socket.destroy())
  return socket
}

/** Lets a client take about so many bytes every 200 ms. Returns how many it has taken. */
function takingSome(socket: Socket, bytes: number): () => number {
  let taken = 0
  let left = 0
  socket.on('data', (chunk) => {
    taken += chunk.length
    left -= chunk.length
    if (left <= 0) socket.pause()
  })
  socket.pause()
  const timer = setInterval(() => {
    left = bytes
    socket.resume()
  }, 200)
  onTestFinished(() => clearInterval(timer))
  return () => taken
}

async function outcomes(router: TestRouter): Promise<unknown[]> {
  const { body } = await administration(router).get('/calls')
  return (body.calls as { outcome: string }[]).map(({ outcome }) => outcome)
}

describe('a stream that nobody reads', () => {
  test('is cut once its client has taken no byte for client_timeout, not twice as late, and is charged as left', async () => {
    const router = await routerWith({ client_timeout: '2s' })
    const begun = performance.now()
    unreadCall(router, 'endless')
    await eventually(async () => expect(await outcomes(router)).toEqual(['partial']))
    const ms = performance.now() - begun
    expect(ms).toBeGreaterThan(2_000)
    expect(ms).toBeLessThan(limit(3_500))
    const { body } = await administration(router).get('/calls')
    expect(body.calls).toMatchObject([{ status: 499, estimated: true }])
  })

  test('and one that is read too slowly is cut, however often its client takes a little', async () => {
    const router = await routerWith({ client_timeout: '3s', client_min_rate: '4mb' })
    takingSome(unreadCall(router, 'endless'), 300_000)
    await eventually(async () => expect(await outcomes(router)).toEqual(['partial']))
  })

  test('at the least rate it goes on', async () => {
    const router = await routerWith({ client_timeout: '2s', client_min_rate: '10kb' })
    const taken = takingSome(unreadCall(router, 'endless'), 300_000)
    // More than the buffers of both sides hold, in twice the time after which a client that takes nothing is cut.
    await eventually(() => expect(taken()).toBeGreaterThan(8_000_000), 25_000)
    expect(await outcomes(router)).toEqual([])
  })

  test('gives its place to another key at once: four of them do not stop the fifth call at a limit of four', async () => {
    const router = await routerWith({ client_timeout: '10m', limits: { concurrent: 4, queue: 4 } })
    const { secret } = await administration(router).newKey({ name: 'other' })
    for (let count = 0; count < 4; count++) unreadCall(router, 'endless')
    await eventually(async () => {
      const metrics = await (await router.call('/metrics')).text()
      expect(metrics).toMatch(/inference_router_limit_running\{[^}]*"server"[^}]*\} 4/)
    })
    // Once they have taken nothing for a second.
    await eventually(async () => {
      const answer = await router.call('/v1/chat/completions', asking('hi'), { authorization: `Bearer ${secret}` })
      expect([answer.status, (await answer.text()).includes('[DONE]')]).toEqual([200, true])
    })
    // The others go on: one place was wanted.
    await eventually(async () => expect((await outcomes(router)).toSorted()).toEqual(['complete', 'partial']))
  })

  test('is not cut for its own key, which may use all places', async () => {
    const router = await routerWith({ limits: { concurrent: 2, queue: 2 } })
    for (let count = 0; count < 2; count++) unreadCall(router, 'endless')
    await pause(1_500)
    expect((await router.call('/v1/chat/completions', asking('hi'))).status).toBe(429)
    expect(await outcomes(router)).toEqual([])
  })
})

test('silence of the provider is not taken for that of the client', async () => {
  const router = await routerWith({ client_timeout: '1s' })
  const answer = await router.call('/v1/chat/completions', asking('silent'))
  expect(await answer.text()).toContain('[DONE]')
  expect(await outcomes(router)).toEqual(['complete'])
})
