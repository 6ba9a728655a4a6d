import { toFile } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, fileHost, type LoopbackProvider } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import { slow } from '../helpers/slow.ts'
import { type ImageWorld, imageWorld, png } from './image-world.ts'

const gpt = 'openai/gpt-image-1.5'
const small = png().toString('base64')
const dataUrl = `data:image/png;base64,${small}`
const counted = {
  input_tokens: 221,
  input_tokens_details: { image_tokens: 194, text_tokens: 27 },
  output_tokens: 415,
  output_tokens_details: { image_tokens: 272, text_tokens: 143 },
  total_tokens: 636,
}
const reply = { created: 7, data: [{ b64_json: small }], usage: counted }

let world: ImageWorld
let host: LoopbackProvider & { media: object }
beforeAll(async () => {
  host = await fileHost(small)
  world = await imageWorld({ media: host.media, more: { azure: { 'gpt-image-1': { api: 'image' } } } })
})
afterAll(async () => {
  await world?.end()
  await host?.close()
})
beforeEach(() => world.answer((_, response) => answerJson(response, reply)))

const file = (bytes: Buffer = png(), name = 'a.png') => new File([new Uint8Array(bytes)], name, { type: 'text/plain' })
async function asked(body: object | FormData) {
  const isForm = body instanceof FormData
  const response = await fetch(`${world.router.url}/v1/images/edits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${testKey}`, ...(!isForm && { 'content-type': 'application/json' }) },
    body: isForm ? body : JSON.stringify({ prompt: 'Make it green', model: gpt, ...body }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test knows the body it expects.
  return { status: response.status, body: (await response.json()) as any }
}
function form(...more: [string, string | File][]): FormData {
  const made = new FormData()
  for (const [name, value] of [['model', gpt], ['prompt', 'Make it green'], ...more] as [string, string | File][]) {
    made.append(name, value)
  }
  return made
}
async function refused(body: object | FormData, param: string, status = 400) {
  const before = world.provider.received.length
  const { status: got, body: answer } = await asked(body)
  expect([got, answer.error?.origin, answer.error?.param], JSON.stringify(answer)).toEqual([status, 'router', param])
  expect(world.provider.received.length).toBe(before)
}

describe('forms', () => {
  test('12.2 files, a mask and fields reach the provider as a form', async () => {
    const { status, body } = await asked(
      form(['image', file(png(2, 3))], ['mask', file(png(), 'm.png')], ['n', '2'], ['size', '1024x1024'], ['x', 'y']),
    )
    expect(status).toBe(200)
    expect(body.usage).toEqual({ ...counted, cost: 0.014967 })
    const sent = world.last()
    expect(sent).toMatchObject({ model: ['gpt-image-1.5'], n: ['2'], size: ['1024x1024'], x: ['y'] })
    expect(sent.image).toEqual([{ filename: 'a.png', type: 'image/png', bytes: png(2, 3) }])
    expect(sent.mask[0]).toMatchObject({ type: 'image/png', bytes: png() })
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({
      api: 'images',
      usage: { input: 27, input_image: 194, input_images: 2, images: 1 },
    })
  })
  test('12.2 several images', async () => {
    await asked(form(['image[]', file(png(2, 2))], ['image[]', file(png(3, 3))]))
    expect(world.last()['image[]'].map(({ bytes }: { bytes: Buffer }) => bytes.readUInt32BE(16))).toEqual([2, 3])
  })
  test('what is no picture, too much, or missing is refused by its name', async () => {
    await refused(form(), 'image')
    await refused(form(['image', dataUrl]), 'image')
    await refused(form(['image', file(Buffer.from('GIF89a'))]), 'image')
    await refused(form(['image', file(Buffer.alloc(0))]), 'image')
    await refused(form(['image', file()], ['mask', 'text']), 'mask')
    await refused(form(['image', file()], ['mask', file(Buffer.from('no'))]), 'mask')
    await refused(form(['image', file()], ['picture', file()]), 'picture')
    await refused(form(['image', file()], ['n', 'two']), 'n')
    await refused(form(['image', file()], ['n', '11']), 'n')
    await refused(form(['image', file()], ['stream', 'maybe']), 'stream')
    await refused(form(['image', file()], ['input_fidelity', 'some']), 'input_fidelity')
    await refused(form(...Array.from({ length: 17 }, (): [string, File] => ['image[]', file()])), 'image')
  })
  test('12.4 19.9 a file above 50 MB is a 413', slow, async () => {
    const large = Buffer.concat([png(), Buffer.alloc(50 * 1024 * 1024)])
    const { status } = await asked(form(['image', file(large)]))
    expect(status).toBe(413)
  })
  test('the key is checked before the form is read', async () => {
    const response = await fetch(`${world.router.url}/v1/images/edits`, { method: 'POST', body: form() })
    expect(response.status).toBe(401)
  })
})

describe('JSON', () => {
  test('12.3 data URLs become the files of a form', async () => {
    const { status } = await asked({ images: [{ image_url: dataUrl }], mask: { image_url: dataUrl }, n: 1 })
    expect(status).toBe(200)
    expect(world.last()).toEqual({
      model: ['gpt-image-1.5'],
      prompt: ['Make it green'],
      n: ['1'],
      image: [{ filename: 'image.png', type: 'image/png', bytes: png() }],
      mask: [{ filename: 'image.png', type: 'image/png', bytes: png() }],
    })
  })
  test.each([
    [{ image: dataUrl }],
    [{ image: [dataUrl] }],
    [{ images: [dataUrl] }],
    [{ images: [{ type: 'image_url', image_url: { url: dataUrl } }] }],
    [{ images: [{ type: 'image_url', url: dataUrl }] }],
  ])('pictures are written in several ways (%#)', async (body) => {
    await asked(body)
    expect(world.last().image).toMatchObject([{ bytes: png() }])
  })
  test('12.3 ids of files and addresses go on as they are, with the data of the others', async () => {
    const link = 'https://example.com/a.png'
    await asked({ images: [{ file_id: 'file-1' }, { image_url: link }, { image_url: dataUrl }] })
    expect(world.last()).toEqual({
      model: 'gpt-image-1.5',
      prompt: 'Make it green',
      images: [{ file_id: 'file-1' }, { image_url: link }, { image_url: dataUrl }],
    })
  })
  test('elsewhere addresses are fetched, and ids of files are refused', async () => {
    const { status } = await asked({ model: 'azure/gpt-image-1', images: [{ image_url: `${host.url}/a.png` }] })
    expect(status).toBe(200)
    expect(world.last().image).toMatchObject([{ bytes: png() }])
    await refused({ model: 'azure/gpt-image-1', images: [{ file_id: 'file-1' }] }, 'images[0].file_id')
    await refused({ model: 'azure/gpt-image-1', images: [{ image_url: 'http://127.0.0.1:9/a.png' }] }, 'images')
  })
  test('what is no picture is refused by its name', async () => {
    await refused({}, 'images')
    await refused({ images: [] }, 'images')
    await refused({ images: Array(17).fill(dataUrl) }, 'images')
    await refused({ images: [7] }, 'images[0]')
    await refused({ images: [{ image_url: 'ftp://example.com/a' }] }, 'images[0].image_url')
    await refused({ images: [{ image_url: 'data:image/png;base64,AAAA' }] }, 'images[0].image_url')
    await refused({ images: [{ image_url: 7 }] }, 'images[0].image_url')
    await refused({ images: [dataUrl], mask: 'text' }, 'mask')
    await refused({ images: [dataUrl], prompt: '' }, 'prompt')
  })
})

describe('the openai SDK', () => {
  test('12.2 images.edit', async () => {
    const image = await toFile(png(), 'a.png', { type: 'image/png' })
    const result = await world.router.openai().images.edit({ model: gpt, prompt: 'Green', image })
    expect(result.data?.[0]?.b64_json).toBe(small)
    await world.router.openai().images.edit({ model: gpt, prompt: 'Green', image: [image, image] })
    expect(world.last()['image[]']).toHaveLength(2)
  })
  test('1.4, 12.2 at the simulator', async () => {
    const image = await toFile(png(), 'a.png', { type: 'image/png' })
    const size = '256x256' as const
    const result = await world.router.openai().images.edit({ model: 'demo/painter', prompt: 'Green', image, size })
    // A token and 256 of the picture at 0.1 USD per million, 64 at 0.4.
    expect(result.usage).toMatchObject({ input_tokens: 257, output_tokens: 64, cost: 0.0000513 })
  })
  test('a stream', async () => {
    const image = await toFile(png(), 'a.png', { type: 'image/png' })
    const stream = await world.router.openai().images.edit({ model: gpt, prompt: 'Green', image, stream: true })
    const events = []
    for await (const event of stream) events.push(event)
    expect(events).toMatchObject([{ type: 'image_edit.completed', b64_json: small, usage: { cost: 0.014967 } }])
    expect(world.last().stream).toEqual(['true'])
  })
})
