import { createHash } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, pause, within } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import { limit, processorTime } from '../helpers/time.ts'
import { administration } from '../management/administration.ts'
import { flac, mp3, mp4, oggWith, wav, webm } from '../media/sounds.ts'
import { type FormFields, type TranscriptionWorld, transcriptionWorld } from './transcription-world.ts'

const whisper = 'openai/whisper-1'
const hello = { text: 'Hello.', usage: { type: 'duration', seconds: 2 } }

let world: TranscriptionWorld
let manage: ReturnType<typeof administration>
beforeAll(async () => {
  world = await transcriptionWorld()
  manage = administration(world.router)
})
afterAll(() => world?.end())
beforeEach(() => world.answer((_, response) => answerJson(response, hello)))

const asked: FormFields = [['model', whisper]]
const rowsOf = async (key: string) => await Array.fromAsync(world.store.ledger.each({ key }))
const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('hex')

/** An upload without a declared length: its answer, and how many bytes were sent until then. */
function upload(headers: Record<string, string>, { head, size }: { head: string; size: number }) {
  let sent = 0
  const leaving = new AbortController()
  async function* body() {
    yield Buffer.from(`--b\r\n${head}\r\n\r\nRIFF0000WAVE`)
    for (; sent < size; sent += piece.length) {
      yield piece
      await pause(0)
    }
    // The rest does not come before the answer does.
    await new Promise((resolve) => leaving.signal.addEventListener('abort', resolve))
  }
  const answer = fetch(`${world.router.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=b', ...headers },
    body: ReadableStream.from(body()),
    duplex: 'half',
    signal: leaving.signal,
  } as RequestInit).then(async (response) => ({ status: response.status, text: await response.text() }))
  return { answer, sent: () => sent, leave: () => leaving.abort() }
}
const piece = Buffer.alloc(64 * 1024)

const filePart = 'content-disposition: form-data; name="file"; filename="a.wav"'

describe('before the file is read', () => {
  const refused = async (headers: Record<string, string>, status: number) => {
    const { answer, sent } = upload(headers, { head: filePart, size: 30 * 1024 * 1024 })
    expect((await within(5_000, 'the answer', answer)).status).toBe(status)
    expect(sent()).toBeLessThan(10 * 1024 * 1024)
  }
  test('401 and 403 for who may not call', async () => {
    await refused({}, 401)
    await refused({ authorization: 'Bearer ir-nobody' }, 403)
  })
  test('402 for who cannot pay', async () => {
    const { id, secret } = await manage.newKey({ monthly_limit: 0.0002 })
    expect((await world.ask(asked, secret)).status).toBe(200)
    await refused({ authorization: `Bearer ${secret}` }, 402)
    expect(await rowsOf(id)).toHaveLength(1)
  })
  test('404 and 403 for a model, as soon as it is named', async () => {
    const { id, secret } = await manage.newKey()
    await manage.post(`/apikey/${id}/access`, { models: ['groq/whisper-large-v3'] })
    const named = async (model: string) => {
      const head = `content-disposition: form-data; name="model"\r\n\r\n${model}\r\n--b\r\n${filePart}`
      const { answer, sent } = upload({ authorization: `Bearer ${secret}` }, { head, size: 30 * 1024 * 1024 })
      const { status } = await answer
      expect(sent()).toBeLessThan(10 * 1024 * 1024)
      return status
    }
    expect(await named('nobody/x')).toBe(404)
    expect(await named(whisper)).toBe(403)
  })
  test('14.3 19.9 20.1 413 for a file of more than 32 MB, before all of it has come', async () => {
    const headers = { authorization: `Bearer ${testKey}` }
    const { answer, sent } = upload(headers, { head: filePart, size: 60 * 1024 * 1024 })
    const { status, text } = await answer
    expect([status, JSON.parse(text).error]).toEqual([
      413,
      expect.objectContaining({ origin: 'router', param: 'file' }),
    ])
    expect(sent()).toBeLessThan(40 * 1024 * 1024)
    const form = new FormData()
    form.append('file', new File([Buffer.alloc(34 * 1024 * 1024)], 'a.wav'))
    const declared = await fetch(`${world.router.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form })
    expect(declared.status).toBe(413)
  })
  test('a client that leaves during the upload leaves nothing: no row, no file', async () => {
    const { id, secret } = await manage.newKey()
    const { answer, leave } = upload({ authorization: `Bearer ${secret}` }, { head: filePart, size: 5 * 1024 * 1024 })
    await expect.poll(spooled).toBe(1)
    leave()
    await expect(answer).rejects.toThrow()
    await expect.poll(spooled).toBe(0)
    expect(await rowsOf(id)).toEqual([])
    expect((await world.ask(asked, secret)).status).toBe(200)
  })
})

/** Temporary files of uploads that this process has open. */
function spooled(): number {
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return links.filter((link) => link.includes('router-upload-')).length
}

describe('money', () => {
  const fileOf = (seconds: number) => ['file', { bytes: wav(seconds) }] as const
  test('a burst on a limit: exactly those that it pays are answered', async () => {
    // A call of two seconds costs 0.0002 USD.
    const { id, secret } = await manage.newKey({ monthly_limit: 0.001 })
    const answers = await Promise.all(Array.from({ length: 12 }, () => world.ask(asked, secret)))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(7).fill(402)])
    const rows = await rowsOf(id)
    expect(rows.map(({ cost }) => cost.nanoUsd)).toEqual(Array(5).fill(200_000))
  })
  test('what is reserved is what the file is long', async () => {
    const { secret } = await manage.newKey({ monthly_limit: 0.001 })
    expect((await world.ask([fileOf(11), ...asked], secret)).status).toBe(402)
    expect((await world.ask([fileOf(9.5), ...asked], secret)).status).toBe(200)
  })
  describe('a recording of which a header says that it is shorter', () => {
    const forged: readonly (readonly [string, string, Buffer])[] = [
      ['WAV', 'a.wav', wav(60, { byteRate: 16_000 * 600 })],
      ['FLAC', 'a.flac', flac(60 * 16_000, 16_000, 1_600)],
      ['Ogg', 'a.ogg', oggWith((samples) => samples / 600, 60)],
      ['M4A', 'a.m4a', mp4(60, { stated: 0.1 })],
      ['WebM', 'a.webm', webm(60, { stated: 0.1 })],
      ['WebM in another unit', 'a.webm', webm(60, { scale: 1_000 })],
      ['MP3', 'a.mp3', Buffer.concat([Buffer.from([0xff, 0xf3, 0x84, 0xc0]), mp3(2_300)])],
    ]
    const billed = { text: 'Hello.', usage: { type: 'duration', seconds: 60 } }
    const paidBy = async (
      key: { id: string; secret: string },
      reply: object,
      [, filename, bytes]: (typeof forged)[0],
    ) => {
      world.answer((_, response) => answerJson(response, reply))
      const response = await world.ask([['file', { filename, bytes }], ...asked], key.secret)
      const [row] = await rowsOf(key.id)
      return { status: response.status, nanoUsd: row?.cost.nanoUsd ?? 0 }
    }

    test.each(forged)('pays for all of it: %s', async (...file) => {
      const [limited, unlimited] = [{ monthly_limit: 0.012 }, {}]
      for (const limits of [limited, unlimited]) {
        for (const reply of [billed, { text: 'Hello.' }]) {
          const { status, nanoUsd } = await paidBy(await manage.newKey(limits), reply, file)
          expect(status).toBe(200)
          expect(nanoUsd).toBeGreaterThanOrEqual(0.98 * 6_000_000)
          expect(nanoUsd).toBeLessThanOrEqual(1.1 * 6_000_000)
        }
      }
      expect(await paidBy(await manage.newKey({ monthly_limit: 0.005 }), billed, file)).toEqual({
        status: 402,
        nanoUsd: 0,
      })
    })

    test('a length that the provider counts is believed as far as the bytes of the file can last', async () => {
      const sound = ['file', { bytes: mp3(8), filename: 'a.mp3' }] as const
      for (const [seconds, paid] of [
        [3, 3],
        [60, 60],
        [1e6, 62],
      ] as const) {
        const { id, secret } = await manage.newKey()
        world.answer((_, response) => answerJson(response, { text: 'Hello.', usage: { type: 'duration', seconds } }))
        expect((await world.ask([sound, ...asked], secret)).status).toBe(200)
        expect((await rowsOf(id))[0]?.usage.seconds).toBeCloseTo(paid, 0)
      }
    })
  })
  test('a file that does not tell its length reserves and pays what its bytes can last', async () => {
    world.answer((_, response) => answerJson(response, { text: 'Hello.' }))
    const film = Buffer.concat([Buffer.from([0, 0, 1, 0xba]), Buffer.alloc(80_000 - 4)])
    const file = ['file', { bytes: film, filename: 'a.mpeg', type: 'video/mpeg' }] as const
    const poor = await manage.newKey({ monthly_limit: 0.01 })
    // 107 seconds at 6 kbit/s.
    expect((await world.ask([file, ...asked], poor.secret)).status).toBe(402)
    const rich = await manage.newKey({ monthly_limit: 0.02 })
    const response = await world.ask([file, ...asked], rich.secret)
    const seconds = expect.closeTo(80_000 / 750, 5)
    const cost = expect.closeTo(0.010667, 5)
    expect(await response.json()).toEqual({ text: 'Hello.', usage: { type: 'duration', seconds, cost } })
    expect(await rowsOf(rich.id)).toMatchObject([{ usage: { seconds }, cost: { estimated: true } }])
  })
  test('a file of millions of elements is read for a moment only, and pays an estimate', async () => {
    world.answer((_, response) => answerJson(response, { text: 'Hello.' }))
    const film = Buffer.alloc(31 * 1024 * 1024, Buffer.from([0xec, 0x80]))
    webm(1, { live: true }).copy(film, 0, 0, 44)
    const { id, secret } = await manage.newKey()
    const file = ['file', { bytes: film, filename: 'a.webm', type: 'audio/webm' }] as const
    const { result, ms } = await processorTime(() => world.ask([file, ...asked], secret))
    expect(result.status).toBe(200)
    // Most of it goes into sending the file twice, which this process does too.
    expect(ms).toBeLessThan(limit(5_000))
    expect(await rowsOf(id)).toMatchObject([{ usage: { seconds: film.length / 750 }, cost: { estimated: true } }])
  })
  test('a model that is billed for some seconds at least', async () => {
    world.answer((_, response) => answerJson(response, { text: 'Hello.', duration: 2 }))
    const { id, secret } = await manage.newKey({ monthly_limit: 0.001 })
    const groq: FormFields = [['model', 'groq/whisper-large-v3']]
    expect(await (await world.ask(groq, secret)).json()).toMatchObject({ usage: { seconds: 10, cost: 0.001 } })
    expect((await world.ask(groq, secret)).status).toBe(402)
    expect(await rowsOf(id)).toMatchObject([{ usage: { seconds: 10 } }])
  })
  test('a provider cannot bill what no file is long', async () => {
    world.answer((_, response) => answerJson(response, { text: 'Hello.', usage: { type: 'duration', seconds: 1e8 } }))
    const { secret } = await manage.newKey()
    // Twice what the file is long, and a minute.
    expect(await (await world.ask(asked, secret)).json()).toMatchObject({ usage: { seconds: 64, cost: 0.0064 } })
  })
})

describe('providers that fail', () => {
  test('429 and 5xx are told as they are, and cost nothing', async () => {
    const { id, secret } = await manage.newKey()
    world.answer((_, response) =>
      answerJson(response, { error: { message: 'slow down' } }, 429, { 'retry-after': '7' }),
    )
    const busy = await world.ask(asked, secret)
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([429, '7'])
    world.answer((_, response) => answerJson(response, { error: { message: 'broken' } }, 500))
    expect((await world.ask(asked, secret)).status).toBe(502)
    expect((await rowsOf(id)).map(({ cost }) => cost.nanoUsd)).toEqual([0, 0])
  })
  test('what they counted all the same is paid, though it is no token', async () => {
    const { id, secret } = await manage.newKey()
    const usage = { type: 'duration', seconds: 2 }
    world.answer((_, response) => answerJson(response, { error: { message: 'broken' }, usage }))
    expect((await world.ask(asked, secret)).status).toBe(502)
    expect(await rowsOf(id)).toMatchObject([{ outcome: 'failed', usage: { seconds: 2 }, cost: { nanoUsd: 200_000 } }])
  })
  test('the next target gets the whole file again', async () => {
    expect((await manage.post('/policy', { id: 'ears', targets: ['groq/whisper-large-v3', whisper] })).status).toBe(201)
    const file = wav(30)
    const got: string[] = []
    world.answer(({ body }, response) => {
      const { bytes } = new Map(body).get('file') as { bytes: Buffer }
      got.push(md5(bytes))
      if (got.length === 1) answerJson(response, { error: { message: 'broken' } }, 503)
      else answerJson(response, hello)
    })
    const response = await world.ask([
      ['file', { bytes: file }],
      ['model', 'policy/ears'],
    ])
    expect([
      response.status,
      response.headers.get('x-router-attempts'),
      response.headers.get('x-router-model'),
    ]).toEqual([200, '2', whisper])
    expect(got).toEqual([md5(file), md5(file)])
    await expect.poll(spooled).toBe(0)
  })
  test('a client that leaves while the provider hears', async () => {
    const { id, secret } = await manage.newKey()
    const leaving = new AbortController()
    const left = Promise.withResolvers<void>()
    world.answer(async (incoming) => {
      leaving.abort()
      await incoming.left
      left.resolve()
    })
    const body = new FormData()
    body.append('file', new File([new Uint8Array(wav(20))], 'a.wav'))
    body.append('model', whisper)
    const call = fetch(`${world.router.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}` },
      body,
      signal: leaving.signal,
    })
    await expect(call).rejects.toThrow()
    await within(5_000, 'the end of the call', left.promise)
    await expect.poll(async () => (await rowsOf(id)).length).toBe(1)
    expect((await rowsOf(id))[0]).toMatchObject({ status: 499 })
    await expect.poll(spooled).toBe(0)
  })
})
