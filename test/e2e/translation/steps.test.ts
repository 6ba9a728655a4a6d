import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson, beginStream, loopbackProvider } from '../../helpers/provider.ts'
import { eventually } from '../../helpers/time.ts'
import { formOf, twoSeconds } from '../../operations/transcription-world.ts'
import {
  type Answer,
  answerHello,
  clientApis,
  type StepsWorld,
  sendEvents,
  stepsWorld,
  streamedText,
  wholeText,
} from './steps-world.ts'

let world: StepsWorld
beforeAll(async () => {
  world = await stepsWorld(100)
})
afterAll(() => world?.end())

const [chat] = clientApis

describe('a stream whose events repeat the whole text so far', () => {
  const grows: Answer = ({ body }, response) => {
    if (!body.live) return answerHello(response)
    sendEvents(response, [
      { words: 'Hel' },
      { words: 'Hel' },
      { words: 'Hello 🙂'.slice(0, 7) },
      { words: 'Hello 🙂' },
      { words: 'Hello 🙂 �' },
      { words: 'Hello 🙂 ż', over: 'stop', meter: { heard: 5, spoken: 2 } },
    ])
  }

  test.each(clientApis)('reaches the client in pieces, at $path', async (api) => {
    world.begin(grows)
    expect(await wholeText(world, api, 'cumulative')).toBe('Hello.')
    const { pieces, isComplete } = await streamedText(world, api, 'cumulative')
    expect(pieces).toEqual(['Hel', 'lo ', '🙂', ' ', 'ż'])
    expect(isComplete).toBe(true)
  })

  test.each(clientApis)('ends with an error where it changes what was sent, at $path', async (api) => {
    world.begin((_, response) => sendEvents(response, [{ words: 'One t' }, { words: 'Two', over: 'stop' }]))
    const { pieces, isComplete, raw } = await streamedText(world, api, 'cumulative')
    expect(pieces).toEqual(['One t'])
    expect(isComplete).toBe(false)
    expect(raw).toContain('changed text in its stream that had been sent already')
  })

  test('repeats nothing with an empty text', async () => {
    world.begin((_, response) => sendEvents(response, [{ words: 'One' }, { words: '' }, { words: '', over: 'stop' }]))
    expect(await streamedText(world, chat, 'cumulative')).toMatchObject({ pieces: ['One'], isComplete: true })
  })
})

describe('a provider that does not stream', () => {
  test.each(clientApis)('is asked for a whole reply, which the client gets as a stream, at $path', async (api) => {
    world.begin((_, response) => answerHello(response))
    expect(await wholeText(world, api, 'still')).toBe('Hello.')
    expect(await streamedText(world, api, 'still')).toMatchObject({ status: 200, pieces: ['Hello.'], isComplete: true })
    expect(world.provider.received.map(({ body, headers }) => [body, headers.accept])).toEqual(
      Array(2).fill([{ words: 'Hi' }, 'application/json']),
    )
  })

  test('of the format of the client gets an edited body without the wish for a stream', async () => {
    const message = { role: 'assistant', content: 'Hello.' }
    const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
    world.begin((_, response) =>
      answerJson(response, { id: 'c', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }),
    )
    const more = { top_a: 1, stream_options: { include_usage: true } }
    const response = await world.router.call(chat.path, { model: 'still-chat/m', ...chat.body, ...more, stream: true })
    const raw = await response.text()
    expect(raw).toContain('"content":"Hello."')
    expect(raw).toContain('"completion_tokens":2')
    expect(raw).toContain(chat.end)
    const [{ body } = { body: {} }] = world.provider.received
    expect(body).toMatchObject({ top_a: 1 })
    expect(body.stream ?? false).toBe(false)
    expect(body).not.toHaveProperty('stream_options')
  })

  test('is asked for one choice of a stream, and says that it was', async () => {
    const message = { role: 'assistant', content: 'Hello.' }
    world.begin((_, response) =>
      answerJson(response, { id: 'c', choices: [{ index: 0, message, finish_reason: 'stop' }] }),
    )
    const asked = async (stream: boolean) => {
      const response = await world.router.call(chat.path, { model: 'still-chat/m', ...chat.body, n: 2, stream })
      await response.text()
      return response.headers.get('x-router-dropped')
    }
    expect(await asked(false)).toBeNull()
    // A stream that is silent for long begins without it.
    await eventually(async () => expect(await asked(true)).toBe('n'))
    const [first, ...others] = world.provider.received.map(({ body }) => body.n)
    expect([first, new Set(others)]).toEqual([2, new Set([undefined])])
  })

  test.each(clientApis)('fails a stream before it begins, at $path', async (api) => {
    world.begin((_, response) => answerJson(response, { error: { message: 'Full.' } }, 503))
    const { status, raw } = await streamedText(world, api, 'still')
    expect([status, raw.includes(api.end)]).toEqual([api.path === '/v1/messages' ? 529 : 502, false])
  })
})

describe('a conversation that is a job', () => {
  const ready = (after: number): Answer => {
    let asked = 0
    return ({ method, path }, response) => {
      if (method === 'POST') return answerJson(response, { id: 'a/b', state: 'waiting' })
      expect(path).toBe('/jobs/a%2Fb')
      if (++asked < after) return answerJson(response, { id: 'a/b', state: 'running' })
      return answerHello(response, { state: 'ready' })
    }
  }

  test.each(clientApis)('is asked for until it is done, whole and as a stream, at $path', async (api) => {
    world.begin(ready(3))
    expect(await wholeText(world, api, 'jobs')).toBe('Hello.')
    expect(world.provider.received.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET', 'GET'])
    expect(world.provider.received.every(({ headers }) => headers.authorization === 'Bearer key-of-provider')).toBe(
      true,
    )
    world.begin(ready(3))
    expect(await streamedText(world, api, 'jobs')).toMatchObject({ pieces: ['Hello.'], isComplete: true })
  })

  test('keeps the connection of a streaming client alive meanwhile', async () => {
    world.begin(ready(40))
    const { raw } = await streamedText(world, chat, 'jobs')
    expect(raw).toMatch(/^: waiting\n\n/)
    expect(raw).toContain('"content":"Hello."')
    expect(raw).toContain(chat.end)
  })

  test.each(clientApis)('that fails is an error with its reason, at $path', async (api) => {
    world.begin(({ method }, response) =>
      answerJson(response, method === 'POST' ? { id: 'a' } : { state: 'failed', reason: 'Too sad.' }),
    )
    const response = await world.router.call(api.path, { model: 'jobs/m', ...api.body })
    expect([response.status, await response.text()]).toEqual([502, expect.stringContaining('Too sad.')])
  })

  test('is cancelled when its client leaves', async () => {
    const client = new AbortController()
    world.begin(({ method, path }, response) => {
      if (path.endsWith('/cancel')) return answerJson(response, {})
      if (method === 'GET') client.abort()
      return answerJson(response, { id: 'a', state: 'running' })
    })
    const leaving = fetch(world.router.url + chat.path, {
      method: 'POST',
      headers: { authorization: 'Bearer ir-test-key-on-loopback', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'jobs/m', ...chat.body }),
      signal: client.signal,
    })
    await expect(leaving).rejects.toThrow()
    await eventually(() => expect(world.provider.received.at(-1)?.path).toBe('/jobs/a/cancel'))
  })

  test('ends with the time that the caller gives', async () => {
    world.begin((_, response) => answerJson(response, { id: 'a', state: 'running' }))
    const response = await world.router.call(
      chat.path,
      { model: 'jobs/m', ...chat.body },
      { 'x-router-timeout': '200ms' },
    )
    expect(response.status).toBeGreaterThanOrEqual(502)
    await response.text()
    await eventually(() => expect(world.provider.received.at(-1)?.path).toBe('/jobs/a/cancel'))
  })
})

describe('a stream whose address is in the first answer', () => {
  const named = (live: unknown): Answer => {
    return ({ method, path, body }, response) => {
      if (method === 'POST') return answerJson(response, path === '/talk' ? { id: 'a', links: { live }, ...body } : {})
      if (path.startsWith('/jobs')) return answerHello(response, { state: 'ready' })
      expect(path).toBe('/live/1?x=y')
      return sendEvents(response, [{ words: 'Hel' }, { words: 'lo.', over: 'stop', meter: { heard: 5, spoken: 2 } }])
    }
  }

  test.each(clientApis)('is read there, at $path', async (api) => {
    world.begin(named(`${world.provider.url}/live/1?x=y`))
    expect(await streamedText(world, api, 'live')).toMatchObject({ pieces: ['Hel', 'lo.'], isComplete: true })
    expect(world.provider.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /talk',
      'GET /live/1?x=y',
    ])
    const [first, second] = world.provider.received
    expect(first?.body).toEqual({ words: 'Hi', live: true })
    expect(second?.headers).toMatchObject({ accept: 'text/event-stream', authorization: 'Bearer key-of-provider' })
  })

  test.each(clientApis)(
    'is the result of the job where there is no address, or no stream is wanted, at $path',
    async (api) => {
      world.begin(named(null))
      expect(await streamedText(world, api, 'live')).toMatchObject({ pieces: ['Hello.'], isComplete: true })
      world.begin(named(`${world.provider.url}/live/1?x=y`))
      expect(await wholeText(world, api, 'live')).toBe('Hello.')
      expect(world.provider.received.map(({ path }) => path)).toEqual(['/talk', '/jobs/a'])
    },
  )

  test('is not read at another host, which learns nothing', async () => {
    const other = await loopbackProvider((_, response) => sendEvents(response, [{ words: 'x', over: 'stop' }]))
    try {
      world.begin(named(`${other.url}/live/1?x=y`))
      const { status, raw } = await streamedText(world, chat, 'live')
      expect(status).toBe(502)
      expect(raw).toContain('named an address that is not its own')
      expect(raw).not.toContain(other.url)
      expect(other.received).toEqual([])
      await eventually(() => expect(world.provider.received.at(-1)?.path).toBe('/jobs/a/cancel'))
      world.begin(({ method, path }, response) => {
        if (method === 'POST') return named(`${world.provider.url}/live/1`)({ method, path } as never, response)
        response.writeHead(302, { location: `${other.url}/live` }).end()
      })
      expect((await streamedText(world, chat, 'live')).status).toBe(502)
      expect(other.received).toEqual([])
    } finally {
      await other.close()
    }
  })

  test('is cancelled as a job when its client leaves', async () => {
    world.begin(({ method, path }, response) => {
      if (method === 'POST') {
        const live = `${world.provider.url}/live`
        return answerJson(response, path === '/talk' ? { id: 'a', links: { live } } : {})
      }
      beginStream(response)
      response.write('data: {"words":"Hel"}\n\n')
    })
    const client = new AbortController()
    const response = await fetch(world.router.url + chat.path, {
      method: 'POST',
      headers: { authorization: 'Bearer ir-test-key-on-loopback', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'live/m', ...chat.body, stream: true }),
      signal: client.signal,
    })
    await response.body?.getReader().read()
    client.abort()
    await eventually(() => expect(world.provider.received.at(-1)?.path).toBe('/jobs/a/cancel'))
  })
})

type Transcript = { text?: string; usage?: { cost: number }; error?: { message: string } }

describe('the file of a transcription', () => {
  const ask = async (slug: string) => {
    const body = formOf([['model', `${slug}/m`]])
    const headers = { authorization: 'Bearer ir-test-key-on-loopback' }
    const response = await fetch(`${world.router.url}/v1/audio/transcriptions`, { method: 'POST', headers, body })
    return { status: response.status, reply: (await response.json()) as Transcript }
  }

  test('is sent first where the provider wants it so, once, and stands in the request by its reference', async () => {
    world.begin(({ path, method }, response) => {
      if (path === '/files') return answerJson(response, { file: { at: 'https://files.example/1' } })
      if (method === 'POST') return answerJson(response, { id: 'j', state: 'waiting' })
      return answerJson(response, { state: 'ready', words: 'Good day.', meter: { seconds: 2 } })
    })
    const { reply } = await ask('uploads')
    expect(reply.text).toBe('Good day.')
    expect(reply.usage?.cost).toBeGreaterThanOrEqual(0.002)
    const [upload, request] = world.provider.received
    expect(world.provider.received.map(({ path }) => path)).toEqual(['/files', '/hear', '/jobs/j'])
    expect(upload?.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': String(twoSeconds.length),
      authorization: 'Bearer key-of-provider',
    })
    expect(Buffer.compare(upload?.body, twoSeconds)).toBe(0)
    expect(request?.body).toEqual({ sound: { at: 'https://files.example/1' }, again: 'https://files.example/1' })
  })

  test('is part of a form where it is sent first so', async () => {
    world.begin(({ path }, response) =>
      answerJson(response, path === '/files' ? { file: { at: 'f1' } } : { words: 'Good day.' }),
    )
    expect(await ask('forms')).toMatchObject({ status: 200, reply: { text: 'Good day.' } })
    const [upload, request] = world.provider.received
    expect(upload?.body).toEqual([
      ['purpose', 'hearing'],
      ['content', expect.objectContaining({ filename: 'sound.wav', type: 'audio/wav' })],
    ])
    expect(request?.body).toEqual({ sound: 'f1' })
  })

  test.each([
    ['is refused', 400, { error: { message: 'No room.' } }, 'No room.'],
    ['is not named', 200, { file: {} }, 'took a file without an answer that names it'],
  ])('that %s when it is sent first ends the call', async (_, status, answer, message) => {
    world.begin((_request, response) => answerJson(response, answer, status))
    const { reply } = await ask('forms')
    expect(reply.error?.message).toContain(message)
    expect(world.provider.received.map(({ path }) => path)).toEqual(['/files'])
  })

  test('stands in a JSON body as base64', async () => {
    world.begin((_, response) => answerJson(response, { words: 'Good day.' }))
    expect(await ask('inline')).toMatchObject({ status: 200 })
    const [request] = world.provider.received
    expect(request?.body).toEqual({ sound: { data: twoSeconds.toString('base64'), type: 'audio/wav' } })
  })

  test('stands in the JSON of a field of a form as base64', async () => {
    world.begin((_, response) => answerJson(response, { words: 'Good day.' }))
    expect(await ask('inline-form')).toMatchObject({ status: 200 })
    const [[name, text] = []] = world.provider.received[0]?.body ?? []
    expect([name, JSON.parse(text)]).toEqual(['what', { sounds: [twoSeconds.toString('base64')], kind: 'wav' }])
  })
})
