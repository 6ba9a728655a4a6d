import { expect, test } from 'vitest'
import type { Access } from '../../src/access/keys.ts'
import { modelRoutes } from '../../src/http/model-lists.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Listable } from '../../src/routing/names/listed.ts'

test('a list that is larger than all kept ones may be is not written again for every answer', async () => {
  const entry = { api: 'chat', description: 'x'.repeat(70 * 1024 * 1024) }
  const provider = { slug: 'large', missing: [], chat: {} } as unknown as Provider
  const directory = {
    providers: new Map([['large', provider]]),
    models: () => [{ provider: 'large', model: 'm', entry }],
    identify: () => undefined,
    managed: new Map(),
  } as unknown as Listable
  const routes = modelRoutes({ access: {} as Access, directory: () => directory, rulesOf: () => expect.fail() })
  const all = routes.find(({ path }) => path === '/v1/models/all')
  const ask = async () => all?.answer({ headers: {}, params: {}, query: {} } as never)
  const first = await ask()
  expect((first as { text: Buffer }).text.length).toBeGreaterThan(70 * 1024 * 1024)
  // Not `toBe`: what differs would be printed.
  expect((await ask()) === first).toBe(true)
})
