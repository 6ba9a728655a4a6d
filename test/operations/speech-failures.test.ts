import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { newKey } from '../e2e/money/budget-world.ts'
import { pause, within } from '../helpers/provider.ts'
import { testEach } from '../helpers/slow.ts'
import {
  answerJson,
  audioOf,
  eventsIn,
  type SpeechWorld,
  sendPieces,
  speechWorld,
  type Unanswered,
  until,
} from './speech-world.ts'

// What goes wrong with speech: before the provider, at it, in the middle of an answer, and at the client.

let world: SpeechWorld
afterEach(() => world.end())

const fine = (_: unknown, response: Unanswered) => sendPieces(response, [audioOf(100)])

/** Begins a request whose body does not come; resolves with the status that answers it all the same. */
async function unsent(path: string, authorization?: string): Promise<number | undefined> {
  const { port } = new URL(world.router.url)
  const request = httpRequest({
    port,
    path,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': 1_000, ...(authorization && { authorization }) },
  })
  request.on('error', () => {})
  request.flushHeaders()
  request.write('{')
  const [response] = await within(2_000, 'an answer', once(request, 'response'))
  request.destroy()
  return response.statusCode
}

describe('17.5, 19.12 refusals of the router', () => {
  test('who may not call is told before the body is read, who cannot pay before anything is sent', async () => {
    world = await speechWorld(fine)
    const poor = await newKey(world.store, { monthlyLimitNano: 90_000n })
    await (await world.speak({}, { authorization: `Bearer ${poor.secret}` })).arrayBuffer()
    expect(await unsent('/v1/audio/speech')).toBe(401)
    expect(await unsent('/v1/audio/speech', 'Bearer nobody')).toBe(403)
    expect((await world.speak({}, { authorization: `Bearer ${poor.secret}` })).status).toBe(402)
    expect(world.provider.received).toHaveLength(1)
  })

  test('what cannot be called', async () => {
    world = await speechWorld(fine)
    expect((await world.speak({ model: 'nobody/tts' })).status).toBe(404)
    expect((await world.speak({ model: 'openai/tts-99' })).status).toBe(404)
    expect((await world.speak({ model: 'demo/echo' })).status).toBe(400)
    const { secret } = await newKey(world.store, { accessList: ['openai/tokens'] })
    expect((await world.speak({}, { authorization: `Bearer ${secret}` })).status).toBe(403)
    expect(world.provider.received).toHaveLength(0)
  })

  test('a limit of requests', async () => {
    world = await speechWorld(fine)
    const { secret } = await newKey(world.store, {
      limits: { requestsPerMinute: 1, tokensPerMinute: null, concurrentCalls: null },
    })
    const first = await world.speak({}, { authorization: `Bearer ${secret}` })
    expect([first.status, first.headers.get('x-ratelimit-remaining-requests')]).toEqual([200, '0'])
    const second = await world.speak({}, { authorization: `Bearer ${secret}` })
    expect([second.status, Number(second.headers.get('retry-after')) > 0]).toEqual([429, true])
  })

  test('a loss is refused on demand, and nothing is sent', async () => {
    world = await speechWorld(fine, { slug: 'groq', base: '/openai/v1' })
    const response = await world.speak({ response_format: 'mp3' }, { 'x-router-strict': 'true' })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'loss_refused', param: 'response_format' } })
    expect(world.provider.received).toHaveLength(0)
  })
})

describe('failures of the provider before its first byte', () => {
  const cases: [string, number, (response: Unanswered) => void][] = [
    ['400', 400, (response) => answerJson(response, { error: { message: 'No such voice.' } }, 400)],
    ['401', 502, (response) => answerJson(response, { error: { message: 'Bad key secret-of-provider.' } }, 401)],
    ['429', 429, (response) => answerJson(response, { error: { message: 'Slow down.' } }, 429, { 'retry-after': '7' })],
    ['500', 502, (response) => answerJson(response, { error: { message: 'Oh.' } }, 500)],
    ['JSON instead of audio', 502, (response) => answerJson(response, { message: 'All is well.' })],
    ['a page', 502, (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello</p>')],
    ['nothing', 502, (response) => response.writeHead(200, { 'content-type': 'audio/mpeg' }).end()],
    ['a cut', 502, (response) => response.destroy()],
  ]
  testEach(cases, { slowIf: (_, index) => index % 3 !== 0 })('%s is a %i', async (_, status, answer) => {
    world = await speechWorld((_request, response) => answer(response))
    for (const stream_format of ['audio', 'sse']) {
      const response = await world.speak({ stream_format })
      const body = await response.text()
      expect(response.status).toBe(status)
      expect(response.headers.get('content-type')).toContain('application/json')
      expect(JSON.parse(body)).toMatchObject({ error: { origin: 'provider', provider: 'openai' } })
      expect(body).not.toContain('secret-of-provider')
      expect(response.headers.get('x-router-cost')).toBe(null)
      expect((await world.rows())[0]).toMatchObject({ outcome: 'failed', status, cost: { nanoUsd: 0 } })
    }
  })

  test('another target is tried, also when nothing came', async () => {
    world = await speechWorld(({ body }, response) => {
      if (body.model === 'tokens') response.writeHead(200, { 'content-type': 'audio/mpeg' }).end()
      else return sendPieces(response, [audioOf(100)])
    })
    const made = await world.router.call('/v1/manage/policy', {
      id: 'voices',
      targets: ['openai/tokens', 'openai/characters'],
    })
    expect([made.status, await made.text()]).toEqual([201, expect.any(String)])
    const response = await world.speak({ model: 'voices' })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-router-model')).toBe('openai/characters')
    expect(response.headers.get('x-router-attempts')).toBe('2')
    expect(Buffer.from(await response.arrayBuffer()).equals(audioOf(100))).toBe(true)
  })
})

describe('an answer that breaks in the middle', () => {
  test('audio: the client sees an incomplete body, and pays by what is known', async () => {
    world = await speechWorld((_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' })
      response.write(audioOf(1_000), () => setTimeout(() => response.destroy(), 50))
    })
    const response = await world.speak({})
    expect(response.status).toBe(200)
    const { came, isWhole } = await drained(response)
    expect([came, isWhole]).toEqual([999, false])
    await until(async () => (await world.rows()).length === 1)
    expect(await world.rows()).toMatchObject([{ outcome: 'partial', status: 502, cost: { nanoUsd: 90_000 } }])
  })

  test.each([
    ['made of bytes', 'openai/characters'],
    ['of the provider', 'openai/tokens'],
  ])('13.4 events %s: an error, and no end', async (_, model) => {
    world = await speechWorld(({ body }, response) => {
      const isEvents = body.stream_format === 'sse'
      response.writeHead(200, { 'content-type': isEvents ? 'text/event-stream' : 'audio/mpeg' })
      const event = `data: ${JSON.stringify({ type: 'speech.audio.delta', audio: 'AAAA' })}\n\n`
      response.write(isEvents ? event : audioOf(1_000), () => setTimeout(() => response.destroy(), 50))
    })
    const response = await world.speak({ model, stream_format: 'sse' })
    const events = await eventsIn(response)
    expect(events.map(({ data }) => data.type)).toEqual(['speech.audio.delta', 'error'])
    expect(events.at(-1)).toMatchObject({ name: 'error', data: { error: { message: expect.any(String) } } })
    expect(await world.rows()).toMatchObject([{ outcome: 'partial', status: 502 }])
  })

  test('events that end without an end', async () => {
    world = await speechWorld((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${JSON.stringify({ type: 'speech.audio.delta', audio: 'AAAA' })}\n\n`)
    })
    const events = await eventsIn(await world.speak({ model: 'openai/tokens', stream_format: 'sse' }))
    expect(events.map(({ data }) => data.type)).toEqual(['speech.audio.delta', 'error'])
    expect(await world.rows()).toMatchObject([{ outcome: 'partial', error: 'provider_cut' }])
  })

  test('an event that reports an error', async () => {
    world = await speechWorld(async (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ type: 'speech.audio.delta', audio: 'AAAA' })}\n\n`)
      await pause(50)
      response.end(`data: ${JSON.stringify({ type: 'error', error: { message: 'The voice broke.' } })}\n\n`)
    })
    const events = await eventsIn(await world.speak({ model: 'openai/tokens', stream_format: 'sse' }))
    expect(events.map(({ data }) => data.type)).toEqual(['speech.audio.delta', 'error'])
    expect(events.at(-1)?.data.error?.message).toContain('The voice broke.')
  })
})

describe('a client that leaves', () => {
  test.each(['audio', 'sse'])('%s: the provider is told, and what came is paid', async (stream_format) => {
    world = await speechWorld((_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' })
      response.write(audioOf(1_000))
    })
    const leaving = new AbortController()
    const response = await world.speak({ stream_format }, {}, leaving.signal)
    const reader = response.body?.getReader()
    await reader?.read()
    leaving.abort()
    await within(2_000, 'the end of the provider’s answer', world.provider.received[0]?.left ?? Promise.reject())
    await until(async () => (await world.rows()).length === 1)
    expect(await world.rows()).toMatchObject([{ outcome: 'partial', status: 499, cost: { nanoUsd: 90_000 } }])
  })
})

/** How many bytes came, and whether the response came to its end. */
async function drained({ body }: Response): Promise<{ came: number; isWhole: boolean }> {
  let came = 0
  try {
    for await (const piece of body ?? []) came += piece.length
    return { came, isWhole: true }
  } catch {
    return { came, isWhole: false }
  }
}

test('a key that is not the router’s never reaches a provider', async () => {
  world = await speechWorld(fine)
  await (await world.speak({})).arrayBuffer()
  expect(JSON.stringify(world.provider.received)).not.toContain(world.secret)
})
