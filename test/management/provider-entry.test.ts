import { join } from 'node:path'
import { expect, test } from 'vitest'
import { knownProviders, providerEntry } from '../../src/management/providers.ts'
import { buildSnapshot, type Snapshot } from '../../src/snapshot/snapshot.ts'
import { cache } from '../helpers/router.ts'
import { folderOf, writeIn } from '../manifest/files.ts'

test('what a provider can be asked for is what its present models can', async () => {
  const models = (text: string) => `provider: acme\nmodels: { m: { api: chat }${text} }\n`
  const folder = folderOf({
    'config.yaml': '',
    'providers/acme.yaml':
      'slug: acme\nname: Acme\nbase_url: http://127.0.0.1:9/v1\nauth: { scheme: none }\ndialect: openai-chat\n',
    'catalog/acme.yaml': models(''),
  })
  const config = join(folder, 'config.yaml')
  const operationsIn = (snapshot: Snapshot) =>
    knownProviders(snapshot, [], []).providers.map((known) => providerEntry(known, snapshot).operations)
  const { snapshot: first, problems } = await buildSnapshot(config, {}, { cache })
  expect(problems).toEqual([])
  expect(operationsIn(first as Snapshot)).toEqual([['chat']])
  writeIn(folder, 'catalog/acme.yaml', models(', e: { api: embedding }'))
  const { snapshot: second } = await buildSnapshot(config, {}, { previous: first })
  expect(operationsIn(second as Snapshot)).toEqual([['chat', 'embed']])
  expect(second?.providers.get('acme')).toBe(first?.providers.get('acme'))
})
