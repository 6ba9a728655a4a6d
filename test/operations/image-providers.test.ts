import { Ajv2020 } from 'ajv/dist/2020.js'
import { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { answerJson } from '../helpers/provider.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { testKey } from '../helpers/router.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'
import { type ImageWorld, imageWorld, png } from './image-world.ts'

const small = png().toString('base64')
const image = { api: 'image', other_prices: { per_image: 0.02 } }
const nova = 'amazon.nova-canvas-v1:0'

let world: ImageWorld
beforeAll(async () => {
  world = await imageWorld({
    more: {
      xai: { 'grok-imagine-image': image, 'grok-imagine-image-pro': image, 'grok-imagine-image-quality': image },
      google: { 'gemini-painter': image, 'imagen-4.0-generate-001': image },
      together: { 'black-forest-labs/FLUX.1-schnell': image },
      fireworks: { 'accounts/fireworks/models/flux-1-schnell-fp8': image },
      bedrock: { [nova]: image },
      stability: { inpaint: image, fast: image, sketch: image, 'sd3.5-large': image, 'stable-image-core': image },
      fal: { 'fal-ai/flux-pro/kontext': image },
      'black-forest-labs': { 'flux-2-pro': image, 'flux-kontext-pro': image, 'flux-pro-1.0-fill': image },
    },
  })
})
afterAll(() => world?.end())

const openai = { data: [{ b64_json: small }] }
const gemini = { candidates: [{ content: { parts: [{ inlineData: { mimeType: 'image/png', data: small } }] } }] }
const shapes = [
  ['xai/grok-imagine-image', openai, '/images/generations', { aspect_ratio: '1:1' }],
  ['google/gemini-painter', gemini, ':generateContent', { contents: [{ parts: [{ text: 'A cat' }] }] }],
  [
    'google/imagen-4.0-generate-001',
    { predictions: [{ bytesBase64Encoded: small, mimeType: 'image/png' }] },
    ':predict',
    { instances: [{ prompt: 'A cat' }] },
  ],
  ['together/black-forest-labs/FLUX.1-schnell', openai, '/images/generations', { width: 1024, height: 1024 }],
  [
    'fireworks/accounts/fireworks/models/flux-1-schnell-fp8',
    { base64: [small] },
    '/workflows/accounts/fireworks/models/flux-1-schnell-fp8/text_to_image',
    { prompt: 'A cat', aspect_ratio: '1:1' },
  ],
  [`bedrock/${nova}`, { images: [small] }, '/invoke', { taskType: 'TEXT_IMAGE' }],
] as const

describe('the openai SDK at each provider', () => {
  test.each(shapes)('12.1 images.generate at %s', async (model, answer, path, sent) => {
    world.answer((_, response) => answerJson(response, answer))
    const result = await world.router.openai().images.generate({ model, prompt: 'A cat', size: '1024x1024' })
    expect(result).toMatchObject({ data: [{ b64_json: small }], usage: { cost: 0.02 } })
    expect(decodeURIComponent(world.provider.received.at(-1)?.path ?? '')).toContain(path)
    expect(world.last()).toMatchObject(sent)
  })
  test.each([
    ['xai/grok-imagine-image', openai, { image: { url: `data:image/png;base64,${small}` } }],
    ['google/gemini-painter', gemini, { contents: [{ parts: [{ text: 'Green' }, { inlineData: { data: small } }] }] }],
    [
      'fal/fal-ai/flux-pro/kontext',
      { images: [{ url: `data:image/png;base64,${small}`, width: 1_000, height: 1_000 }] },
      { prompt: 'Green', image_url: `data:image/png;base64,${small}` },
    ],
    [`bedrock/${nova}`, { images: [small] }, { imageVariationParams: { images: [small] } }],
  ])('12.2 images.edit at %s', async (model, answer, sent) => {
    world.answer((_, response) => answerJson(response, answer))
    const file = await toFile(png(), 'a.png', { type: 'image/png' })
    const result = await world.router.openai().images.edit({ model, prompt: 'Green', image: file })
    expect(result.data).toMatchObject([{ b64_json: small }])
    expect(world.last()).toMatchObject(sent)
  })
  test('12.2 images.edit where each way to edit is a model', async () => {
    world.answer((_, response) => answerJson(response, { image: small }))
    const files = { image: await toFile(png(), 'a.png'), mask: await toFile(png(), 'm.png') }
    const images = world.router.openai().images
    const sent = async (model: string) => {
      const { data } = await images.edit({ model, prompt: 'A hat', ...files })
      expect(data).toMatchObject([{ b64_json: small }])
      return [world.provider.received.at(-1)?.path, Object.keys(world.last())]
    }
    expect(await sent('stability/inpaint')).toEqual(['/v1/edit/inpaint', ['image', 'prompt', 'mask']])
    expect(await sent('stability/fast')).toEqual(['/v1/upscale/fast', ['image']])
    expect(await sent('stability/sketch')).toEqual(['/v1/control/sketch', ['image', 'prompt']])
    const before = world.provider.received.length
    for (const model of ['inpaint', 'fast', 'sketch']) {
      await expect(images.generate({ model: `stability/${model}`, prompt: 'A hat' }), model).rejects.toThrow(/404|400/)
    }
    for (const model of ['sd3.5-large', 'stable-image-core']) {
      await expect(images.edit({ model: `stability/${model}`, prompt: 'A hat', ...files }), model).rejects.toThrow(
        /404|400/,
      )
    }
    expect(world.provider.received.length).toBe(before)
  })
  test('12.2 images.edit where the answer is a job', async () => {
    const { url } = world.provider
    const edited = async (model: string, more: object = {}) => {
      world.answer(({ method }, response) => {
        if (method === 'POST') return answerJson(response, { id: 'j1', polling_url: `${url}/v1/result?id=j1` })
        return answerJson(response, {
          status: 'Ready',
          result: { sample: `${url}/a.png`, prompt: 'Green', start_time: 1 },
        })
      })
      const before = world.provider.received.length
      const file = await toFile(png(), 'a.png', { type: 'image/png' })
      const result = await world.router.openai().images.edit({ model, prompt: 'Green', image: file, ...more })
      expect(result.data).toMatchObject([{ url: `${url}/a.png` }])
      return world.provider.received[before]?.body
    }
    expect(await edited('black-forest-labs/flux-2-pro', { size: '1024x1000' })).toEqual({
      prompt: 'Green',
      input_image: small,
      width: 1024,
      height: 992,
    })
    const ratio = await edited('black-forest-labs/flux-kontext-pro', { size: '1536x1024' })
    expect(ratio).toEqual({ prompt: 'Green', input_image: small, aspect_ratio: '3:2' })
    const mask = await toFile(png(), 'm.png', { type: 'image/png' })
    const filled = await edited('black-forest-labs/flux-pro-1.0-fill', { mask })
    expect(filled).toEqual({ prompt: 'Green', image: small, mask: small })
  })
  test('several images of a provider that draws one at a time are one call', async () => {
    world.answer((_, response) => answerJson(response, gemini))
    const before = world.provider.received.length
    const model = 'google/gemini-painter'
    const result = await world.router.openai().images.generate({ model, prompt: 'A cat', n: 3 })
    expect(result.data).toHaveLength(3)
    expect(result.usage).toMatchObject({ cost: 0.06 })
    expect(world.provider.received.length).toBe(before + 3)
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({ usage: { images: 3 } })
  })
})

describe('recorded exchanges', () => {
  // There is no endpoint of variations.
  const recorded = recordings('openai-images').filter(({ feature }) => feature !== 'variation-url')
  test.skipIf(recordingsMissing !== undefined)('are there', () => expect(recorded.length).toBeGreaterThan(4))
  test.each(recorded.map((one) => [one.case, one] as const))('12.1 12.3 %s', async (_, one) => {
    const { status, body: answer } = one.response
    world.answer((_, response) => answerJson(response, answer, status))
    const { path = '', body: asked } = one.request ?? {}
    const response = await fetch(world.router.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...asked, model: `${one.provider}/${one.model}` }),
    })
    expect(response.status).toBe(status)
    expect(world.provider.received.at(-1)?.path).toBe(path)
    const sent = world.last()
    if (one.feature === 'edit-b64') {
      expect(sent.image[0].bytes.toString('base64')).toBe(asked.images[0].image_url.split(',')[1])
      expect(sent.quality).toEqual([asked.quality])
    } else expect(sent).toEqual(asked)
    const body = (await response.json()) as JsonObject
    if (status !== 200) return expect(body.error).toMatchObject({ origin: 'provider' })
    const { created: __, usage, ...members } = answer
    expect(body).toMatchObject({ ...members, ...(usage?.input_tokens && { usage }) })
    expect((body.usage as JsonObject).cost).toBeGreaterThan(0)
  })
})

test.skipIf(specMissing('openai.openapi.yaml'))('12.1 replies are as published, whoever draws', async () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false })
  ajv.addSchema({ ...publishedSpec('openai.openapi.yaml'), $id: 'spec' })
  const accepts = ajv.compile({ $ref: 'spec#/components/schemas/ImagesResponse' })
  for (const [model, answer] of shapes) {
    world.answer((_, response) => answerJson(response, answer))
    const response = await world.router.call('/v1/images/generations', { model, prompt: 'A cat' })
    expect([accepts(await response.json()), accepts.errors]).toEqual([true, null])
  }
})

describe('money', () => {
  test('as many calls as a limit pays for, and no more', async () => {
    world.answer((_, response) => answerJson(response, openai))
    const made = await world.router.call('/v1/manage/apikey', { name: 'painter', monthly_limit: 0.06 })
    const { api_key: key } = (await made.json()) as { api_key: string }
    const call = () =>
      fetch(`${world.router.url}/v1/images/generations`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'openai/by-image', prompt: 'A cat' }),
      }).then(({ status }) => status)
    const statuses = await Promise.all(Array.from({ length: 8 }, call))
    expect(statuses.sort()).toEqual([200, 200, 200, 402, 402, 402, 402, 402])
  })

  test('who leaves pays for the prompt, and no image', async () => {
    let came = () => {}
    const arrived = new Promise<void>((resolve) => {
      came = resolve
    })
    world.answer(() => came())
    const leaving = new AbortController()
    const call = fetch(`${world.router.url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'openai/gpt-image-1.5', prompt: 'A cat' }),
      signal: leaving.signal,
    })
    await arrived
    leaving.abort()
    await expect(call).rejects.toThrow()
    await world.provider.received.at(-1)?.left
    await vi.waitFor(async () => {
      const row = (await Array.fromAsync(world.store.ledger.each({}))).at(-1)
      expect(row).toMatchObject({ model: 'gpt-image-1.5', error: 'client_gone', usage: { input: 2 } })
      expect(row?.usage.images).toBeUndefined()
    })
  })
})
