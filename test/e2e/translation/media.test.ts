import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const pngBase64 = png.toString('base64')

const pdf = Buffer.from('%PDF-1.4\n')

const whole = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'A cat.' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
}

const chatReply = {
  id: 'c1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'A report.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
}

/** A host of files, reached as localhost (which the router may use) and as 127.0.0.1 (which it may not). */
const pages: Record<string, (response: ServerResponse) => void> = {
  '/cat': (response) => response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(png),
  '/report.pdf': (response) => response.writeHead(200, { 'content-type': 'application/pdf' }).end(pdf),
  '/page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>'),
  '/inside': (response) => response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data/' }).end(),
  '/large': (response) => response.writeHead(200).end(Buffer.alloc(5_000)),
}
const requested: string[] = []
const files = createServer((request, response) => {
  requested.push(request.url ?? '')
  pages[request.url ?? '']?.(response)
})
let port: number
let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  await new Promise<void>((resolve) => files.listen(0, resolve))
  port = (files.address() as AddressInfo).port
  provider = await loopbackProvider(({ path }, response) =>
    answerJson(response, /completions$/.test(path) ? chatReply : whole),
  )
  const settings = config({ schemes: ['https', 'http'], allow_hosts: ['localhost'], max_bytes: 1_000 })
  router = await testRouter({ files: { 'config.yaml': settings }, env: { UPSTREAM_KEY: 'upstream' } })
})
afterAll(async () => {
  await router.end()
  await provider.close()
  files.close()
  files.closeAllConnections()
})
beforeEach(() => {
  requested.length = 0
  provider.received.length = 0
})

const root = join(import.meta.dirname, '../../..')

const upstream = () => ({ base_url: provider.url, secret: '${UPSTREAM_KEY}' })

function config(media: object): string {
  return JSON.stringify({
    server: { host: '127.0.0.1', port: 0 },
    store: { url: 'sqlite:data/router.sqlite' },
    folders: { providers: join(root, 'providers'), catalog: join(root, 'catalog') },
    providers: { google: upstream(), openai: upstream() },
    media,
  })
}

const look = (url: string, more: object = {}) =>
  router.call('/v1/chat/completions', {
    model: 'google/gemini-3.5-flash',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
    ...more,
  })

describe('a provider that wants data', () => {
  test('gets an image of the web inlined, fetched once for all its mentions', async () => {
    const seen = { type: 'image_url', image_url: { url: `http://localhost:${port}/cat` } }
    const call = { id: 'c1', type: 'function', function: { name: 'photo', arguments: '{}' } }
    const answer = await look('', {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'What is this?' }, seen] },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: [seen] },
      ],
    })
    expect(answer.status).toBe(200)
    const inlined = { inlineData: { mimeType: 'image/png', data: pngBase64 } }
    const { contents } = provider.received[0]?.body ?? {}
    expect(contents[0].parts).toEqual([{ text: 'What is this?' }, inlined])
    expect(JSON.stringify(contents[2])).toContain(pngBase64)
    expect(JSON.stringify(contents)).not.toContain('localhost')
    expect(requested).toEqual(['/cat'])
  })

  test('gets data URLs as the data they are, and its own addresses untouched', async () => {
    expect((await look(`data:image/png;base64,${pngBase64}`)).status).toBe(200)
    expect(provider.received[0]?.body.contents[0].parts[1]).toEqual({
      inlineData: { mimeType: 'image/png', data: pngBase64 },
    })
    for (const fileUri of [
      'https://www.youtube.com/watch?v=x',
      'https://youtu.be/x',
      'gs://bucket/cat.png',
      'https://generativelanguage.googleapis.com/v1beta/files/abc',
    ]) {
      provider.received.length = 0
      expect((await look(fileUri)).status).toBe(200)
      expect(provider.received[0]?.body.contents[0].parts[1]).toMatchObject({ fileData: { fileUri } })
    }
    expect(requested).toEqual([])
  })

  test.each([
    ['http://127.0.0.1:PORT/cat', 'not public'],
    ['http://[::1]:PORT/cat', 'not public'],
    ['http://[::ffff:10.0.0.1]/cat', 'not public'],
    ['http://0.0.0.0:PORT/cat', 'not public'],
    ['http://2130706433:PORT/cat', 'not public'],
    ['http://0x7f.1:PORT/cat', 'not public'],
    ['http://169.254.169.254/latest/meta-data/', 'not public'],
    ['https://www.youtube.com.localhost:PORT/cat', 'cannot be fetched'],
    ['http://localhost:PORT/inside', 'after a redirect, the address of its host is not public'],
    ['http://localhost:PORT/large', 'larger than 1000 bytes'],
    ['http://localhost:PORT/page', 'is text/html, not an image'],
    ['http://u:p@localhost:PORT/cat', 'a user name or a password'],
    ['file:///etc/passwd', 'only https or http is fetched, not file'],
    ['gopher://localhost:PORT/_', 'not gopher'],
    ['ftp://localhost:PORT/cat', 'not ftp'],
  ])('is sent nothing when %s is refused', async (url, reason) => {
    const answer = await look(url.replace('PORT', String(port)))
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect(error).toMatchObject({ origin: 'router', type: 'invalid_request_error', code: 'invalid_request' })
    expect(error).toMatchObject({ param: 'messages', message: expect.stringContaining(reason) })
    if (url.endsWith('/inside')) expect(error.message).not.toContain('169.254')
    expect(provider.received).toEqual([])
    expect(requested).not.toContain('/cat')
  })

  test('gets a document inlined into a body of its own format, whatever the client calls it', async () => {
    const link = `http://localhost:${port}/report.pdf`
    const parts = [
      { type: 'file', file: { filename: 'report.pdf', file_data: link } },
      { type: 'input_file', filename: 'report.pdf', file_data: link },
    ]
    const answer = await look('', { model: 'openai/gpt-4o', messages: [{ role: 'user', content: parts }] })
    expect([answer.status, answer.headers.get('x-router-dropped')]).toEqual([200, null])
    const data = `data:application/pdf;base64,${pdf.toString('base64')}`
    const file = { type: 'file', file: { filename: 'report.pdf', file_data: data } }
    expect(provider.received[0]?.body.messages).toEqual([{ role: 'user', content: [file, file] }])
    expect(requested).toEqual(['/report.pdf'])
  })

  test.each([
    ['google/gemini-3.5-flash', 'file-1'],
    ['openai/gpt-4o', 'file-1'],
  ])('%s is sent nothing of an image that it would have to know by its id', async (model, file_id) => {
    const input = [{ role: 'user', content: [{ type: 'input_image', file_id }] }]
    const answer = await router.call('/v1/responses', { model, input })
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      {
        error: {
          origin: 'router',
          code: 'invalid_request',
          param: 'input.input_image.file_id',
          message: `${model} cannot read the file 'file-1' by its id. Send the file as data or by URL, or call the provider that it was uploaded to.`,
        },
      },
    ])
    expect(provider.received).toEqual([])
  })

  test('is sent nothing by the settings every router begins with, in use as soon as they are saved', async () => {
    const { generation } = router.snapshot()
    router.put('config.yaml', config({}))
    await expect.poll(() => router.snapshot().generation).toBeGreaterThan(generation)
    const answer = await look(`http://localhost:${port}/cat`)
    expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining('only https is fetched') } })
    expect([answer.status, provider.received, requested]).toEqual([400, [], []])
  })
})
