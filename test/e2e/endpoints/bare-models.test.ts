import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { simulatorOnly, type TestRouter, testRouter } from '../../helpers/router.ts'

describe.each(['refuse', 'first'])('unprefixed_models: %s', (unprefixed_models) => {
  let router: TestRouter
  const isFirst = unprefixed_models === 'first'

  beforeAll(async () => {
    router = await testRouter({ files: simulatorOnly, settings: { unprefixed_models } })
  })
  afterAll(() => router.end())

  test('a model without its provider is looked up as it is called', async () => {
    for (const path of ['/v1/models/echo', '/v1/models/vectors']) {
      const response = await fetch(router.url + path)
      const body = (await response.json()) as { id?: string; error?: { code: string; message: string } }
      const id = `demo/${path.split('/').at(-1)}`
      if (isFirst) expect([response.status, body.id]).toEqual([200, id])
      else expect([response.status, body.error?.code]).toEqual([404, 'model_not_found'])
      if (!isFirst) expect(body.error?.message).toContain(` Did you mean '${id}'?`)
    }
  })

  test('a call of it names the model that served, and its further names may be written so as well', async () => {
    const body = { messages: [{ role: 'user', content: 'Hello' }] }
    const call = (names: object) => router.call('/v1/chat/completions', { ...body, ...names })
    const plain = await call({ model: 'echo' })
    expect([plain.status, plain.headers.get('x-router-model')]).toEqual(isFirst ? [200, 'demo/echo'] : [404, null])
    expect((await call({ model: 'demo/none', models: ['echo'] })).status).toBe(isFirst ? 200 : 404)
  })

  test('a mistyped name is a 404 in the form of each API, with the words that clients look for', async () => {
    const messages = [{ role: 'user', content: 'Hello' }]
    const chat = await router.call('/v1/chat/completions', { model: 'demo/ecoh', messages })
    expect(await chat.json()).toMatchObject({
      error: { code: 'model_not_found', param: 'model', message: expect.stringContaining("Did you mean 'demo/echo'?") },
    })
    const message = await router.call('/v1/messages', { model: 'ecoh', max_tokens: 5, messages })
    expect(await message.json()).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
    const response = await router.call('/v1/responses', { model: 'ecoh', input: 'Hello' })
    expect(await response.json()).toMatchObject({ error: { code: 'model_not_found' } })
  })
})
