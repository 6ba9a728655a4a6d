import { describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { MediaPart, Part } from '../../src/core/parts.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { HistoryRules } from '../../src/manifest/run/repair-history.ts'
import type { Fetched, FetchMedia } from '../../src/upstream/files/fetcher.ts'
import { type CallMedia, inlineMedia, openCallMedia } from '../../src/upstream/files/inline.ts'
import { pause, within } from '../helpers/provider.ts'

const file: Fetched = { data: 'aGk=', media_type: 'image/png' }
const requested: string[] = []
const usual: FetchMedia = async (url) => {
  requested.push(url)
  return file
}

function media(fetchMedia: FetchMedia = usual, limits = {}, signal = new AbortController().signal): CallMedia {
  requested.length = 0
  const settings = { maxFiles: 9, maxTotalBytes: 100, ...limits }
  return openCallMedia({ fetchMedia, settings }, { param: 'messages', signal })
}

const image = (url: string, more: Partial<MediaPart> = {}): MediaPart => ({ type: 'image', url, ...more })
const user = (...parts: Part[]): NeutralRequest => request({ messages: [{ role: 'user', parts }] })
const request = (more: Partial<NeutralRequest>): NeutralRequest => ({
  model: 'm',
  messages: [],
  origin: { api: 'chat', body: {} },
  ...more,
})
const a = 'https://a.test/1.png'
const b = 'https://b.test/2.png'

describe('media given by URL', () => {
  test('become data in instructions, messages and tool results; all else stays', async () => {
    const text: Part = { type: 'text', text: a }
    const call: Part = { type: 'tool_call', id: 'c', name: 'f', arguments: '{}' }
    const had: Part[] = [
      { type: 'image', data: 'eA==', media_type: 'image/gif' },
      { type: 'file', file_id: a },
    ]
    const before = request({
      system: [text, image(a)],
      messages: [
        { role: 'user', name: 'Ada', parts: [text, image(b, { detail: 'high', cache: { ttl: '5m' } }), ...had] },
        { role: 'assistant', parts: [call] },
        { role: 'user', parts: [{ type: 'tool_result', id: 'c', parts: [text, image(a)], is_error: true }] },
      ],
    })
    const copy = structuredClone(before)
    const after = await inlineMedia(before, true, media())
    const data = { type: 'image', ...file }
    expect(after).toEqual({
      ...before,
      system: [text, data],
      messages: [
        { role: 'user', name: 'Ada', parts: [text, { ...data, detail: 'high', cache: { ttl: '5m' } }, ...had] },
        { role: 'assistant', parts: [call] },
        { role: 'user', parts: [{ type: 'tool_result', id: 'c', parts: [text, data], is_error: true }] },
      ],
    })
    expect(before).toEqual(copy)
    expect(requested.toSorted()).toEqual([a, b])
  })

  test('stay as they are where the provider takes them so', async () => {
    const before = user(image(a))
    expect(await inlineMedia(before, undefined, media())).toBe(before)
    expect(await inlineMedia(before, false, media())).toBe(before)
    expect(requested).toEqual([])
  })

  test.each<[HistoryRules['inline_media'], string[]]>([
    [{}, ['image', 'audio', 'video', 'file']],
    [{ kinds: ['image', 'file'] }, ['image', 'file']],
    [{ except: /^gs:|\/watch/ }, ['image', 'file']],
    [{ kinds: ['image', 'video'], except: /^gs:|\/watch/ }, ['image']],
  ])('are chosen by kind and by address: %j', async (rule, kinds) => {
    const parts: MediaPart[] = [
      image(a),
      { type: 'audio', url: 'gs://bucket/a.mp3', media_type: 'audio/mpeg' },
      { type: 'video', url: 'https://tube.test/watch?v=1' },
      { type: 'file', url: 'https://a.test/a.pdf' },
    ]
    const { messages } = await inlineMedia(
      user(...parts),
      rule,
      media(async () => ({ data: 'aGk=', media_type: 'x/y' })),
    )
    expect(messages[0]?.parts.flatMap((part) => ('data' in part ? [part.type] : []))).toEqual(kinds)
  })

  test('keep the declared type when it cannot be detected', async () => {
    const bare = media(async () => ({ data: 'aGk=', media_type: 'application/octet-stream' }))
    const typeOf = async (part: MediaPart) => (await inlineMedia(user(part), true, bare)).messages[0]?.parts[0]
    expect(await typeOf(image(a, { media_type: 'image/webp' }))).toMatchObject({ media_type: 'image/webp' })
    expect(await typeOf({ type: 'file', url: a })).toMatchObject({ media_type: 'application/octet-stream' })
    await expect(typeOf(image(b))).rejects.toThrow(`The file at ${b} is application/octet-stream, not an image.`)
  })

  test.each(['text/html', 'application/json', 'application/problem+json', 'application/xml'])(
    'that are %s are no image, but may be a file',
    async (media_type) => {
      const page = media(async () => ({ data: 'aGk=', media_type }))
      const refused = inlineMedia(user(image(`${a}?sig=secret`)), true, page)
      await expect(refused).rejects.toThrow(`The file at ${a} is ${media_type}, not an image.`)
      await expect(refused).rejects.toMatchObject({ code: 'invalid_request', param: 'messages' })
      await expect(inlineMedia(user({ type: 'file', url: a }), true, page)).resolves.toBeDefined()
    },
  )

  test('that are drawings in SVG are images', async () => {
    const drawing = media(async () => ({ data: 'aGk=', media_type: 'image/svg+xml' }))
    await expect(inlineMedia(user(image(a)), true, drawing)).resolves.toBeDefined()
  })
})

describe('the files of a call', () => {
  test('are fetched once, however many targets want them', async () => {
    const files = media()
    await inlineMedia(user(image(a), image(a), image(b)), true, files)
    await inlineMedia(user(image(a), image(b), image('https://c.test/')), true, files)
    expect(requested).toEqual([a, b, 'https://c.test/'])
  })

  test('are not even begun when there are too many', async () => {
    const urls = Array.from({ length: 4 }, (_, index) => image(`${a}?${index}`))
    const refused = inlineMedia(user(...urls), true, media(usual, { maxFiles: 3 }))
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request', param: 'messages' })
    await expect(refused).rejects.toThrow('more than 3 URLs')
    expect(requested).toEqual([])
    await expect(inlineMedia(user(image(a)), true, media(usual, { maxFiles: 0 }))).rejects.toThrow('more than 0')
  })

  test('are counted together, whichever target they are for', async () => {
    const files = media(usual, { maxFiles: 3 })
    await inlineMedia(user(image(a), image(b)), true, files)
    await inlineMedia(user(image(a), image('https://c.test/')), true, files)
    await expect(inlineMedia(user(image('https://d.test/')), true, files)).rejects.toThrow('more than 3 URLs')
    expect(requested).toEqual([a, b, 'https://c.test/'])
  })

  test('are stopped when together they are too large', async () => {
    const large: FetchMedia = async (_url, _signal, spend) => {
      for (let index = 0; index < 6; index++) spend?.(10)
      return file
    }
    await expect(inlineMedia(user(image(a)), true, media(large))).resolves.toBeDefined()
    const refused = inlineMedia(user(image(a), image(b)), true, media(large))
    await expect(refused).rejects.toThrow('larger than 100 bytes')
    await expect(refused).rejects.toMatchObject({ param: 'messages' })
  })

  test('come side by side, but never many at a time', async () => {
    let [running, most] = [0, 0]
    const slow: FetchMedia = async () => {
      most = Math.max(most, ++running)
      await pause(5)
      running--
      return file
    }
    const urls = Array.from({ length: 9 }, (_, index) => image(`${a}?${index}`))
    await inlineMedia(user(...urls), true, media(slow))
    expect(most).toBe(4)
  })

  test('are all given up when one cannot be had, and the error names the field', async () => {
    const stopped: unknown[] = []
    const fetchMedia: FetchMedia = async (url, signal) => {
      if (url === a) throw new RouterError('invalid_request', 'It is gone.')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      stopped.push(url)
      throw signal.reason
    }
    const refused = inlineMedia(user(image(b), image(a)), true, media(fetchMedia))
    await expect(within(5_000, 'giving up', refused)).rejects.toMatchObject({
      message: 'It is gone.',
      param: 'messages',
    })
    await pause(0)
    expect(stopped).toEqual([b])
  })

  test('are given up when the client leaves', async () => {
    const client = new AbortController()
    const disconnect = new RouterError('client_gone', 'The client disconnected.')
    const waiting: FetchMedia = (_url, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const left = inlineMedia(user(image(a)), true, media(waiting, {}, client.signal))
    client.abort(disconnect)
    await expect(within(5_000, 'giving up', left)).rejects.toBe(disconnect)
  })
})
