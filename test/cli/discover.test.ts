import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../../tools/discover/discover.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

let provider: LoopbackProvider

const manifest = (slug: string, more = '') => `slug: ${slug}
name: ${slug}
base_url: ${provider.url}/${slug}
auth: { scheme: bearer, secret: "\${KEY_OF_PROVIDER:-a secret of the provider}" }
dialect: openai-chat
models: { m1: { api: chat }, m2: { api: chat, aliases: [m2-latest] } }
${more}`

/** A configuration with all of them. */
function config(): string {
  const folder = folderOf({
    'config.yaml': '',
    'providers/plain.yaml': manifest('plain'),
    'providers/other.yaml': manifest(
      'other',
      'endpoints: { models: { path: "/v2/list?all=1", list: items, id: name, prefix: models/ } }\n',
    ),
    'providers/bare.yaml': manifest('bare', 'endpoints: { models: { path: /list, id: name } }\n'),
    'providers/paged.yaml': manifest(
      'paged',
      'endpoints: { models: { path: "/list?most=2", next: { member: last, parameter: after } } }\n',
    ),
    'providers/endless.yaml': manifest(
      'endless',
      'endpoints: { models: { path: /list, next: { member: last, parameter: after } } }\n',
    ),
    'providers/own.yaml': manifest('own', 'endpoints: { models: { path: /list, id: name } }\n').replace('m2:', '"*":'),
    'providers/odd.yaml': manifest('odd'),
    'providers/none.yaml': manifest('none', 'endpoints: { models: false }\n'),
    'providers/strange.yaml': manifest('strange'),
    'providers/refuses.yaml': manifest('refuses'),
    'providers/unset.yaml': manifest('unset').replace('KEY_OF_PROVIDER:-a secret of the provider', 'NO_SUCH_KEY'),
  })
  return join(folder, 'config.yaml')
}

beforeAll(async () => {
  provider = await loopbackProvider(({ path }, response) => {
    if (path === '/plain/models')
      return answerJson(response, { data: [{ id: 'm2-latest' }, { id: 'm3' }, { no: 'id' }] })
    if (path === '/other/v2/list?all=1') return answerJson(response, { items: [{ name: 'models/m1' }, { name: 'm4' }] })
    if (path === '/bare/list' || path === '/own/list')
      return answerJson(response, [{ name: 'm1' }, { name: ' m2 ' }, { name: '' }])
    if (path === '/paged/list?most=2') return answerJson(response, { data: [{ id: 'm1' }, { id: 'm1' }], last: 'm1' })
    if (path === '/paged/list?most=2&after=m1') return answerJson(response, { data: [{ id: 'm5' }], last: 'm/5' })
    if (path === '/paged/list?most=2&after=m%2F5') return answerJson(response, { data: [], last: 'm/5' })
    const [, after] = /^\/endless\/list(?:\?after=(\d+))?$/.exec(path) ?? []
    if (path.startsWith('/endless/'))
      return answerJson(response, { data: [{ id: `m${after}` }], last: String(Number(after ?? 0) + 1) })
    if (path === '/odd/models') return answerJson(response, { data: [{ id: '\u001b[2Jx\u202ey' }] })
    if (path === '/strange/models') return answerJson(response, { models: [] })
    answerJson(response, { error: { message: 'the key "a secret of the provider" is wrong' } }, 401)
  })
})
afterAll(() => provider?.close())

test('what the provider lists is compared with the catalog', async () => {
  const { code, stdout } = await ran(run, 'plain', '--config', config())
  expect([code, stdout]).toEqual([
    0,
    `plain lists 2 models: 1 are not in the catalog.
  plain/m3
1 of the catalog's models are not in its list:
  plain/m1
`,
  ])
  expect(provider.received[0]).toMatchObject({
    method: 'GET',
    headers: { authorization: 'Bearer a secret of the provider' },
  })
})

test('a manifest says where the list is, and of what form', async () => {
  const { stdout } = await ran(run, 'other', '--json', '--config', config())
  expect(JSON.parse(stdout)).toEqual({ provider: 'other', listed: 2, new: ['m4'], unlisted: ['m2'] })
})

test('the answer may be the list; every page of it is asked for, and every model counted once', async () => {
  const found = async (slug: string) => JSON.parse((await ran(run, slug, '--json', '--config', config())).stdout)
  expect(await found('bare')).toEqual({ provider: 'bare', listed: 2, new: [], unlisted: [] })
  expect(await found('paged')).toEqual({ provider: 'paged', listed: 2, new: ['m5'], unlisted: ['m2'] })
})

test('models that only the entry for all of them knows are new', async () => {
  const { stdout } = await ran(run, 'own', '--config', config())
  expect(stdout).toBe('own lists 2 models: 1 are not in the catalog.\n  own/m2\n')
})

test('names are printed without what a terminal would obey', async () => {
  const { stdout } = await ran(run, 'odd', '--config', config())
  expect(stdout).toContain('  odd/\\u001b[2Jx\\u202ey\n')
})

test('what goes wrong is said, without secrets', async () => {
  const cases = [['strange'], ['endless'], ['none'], ['refuses'], ['unset'], ['nobody'], []]
  const said = []
  for (const names of cases) said.push(await ran(run, ...names, '--config', config()))
  expect(said.map(({ code, stderr }) => [code, stderr.split('\n')[0]])).toEqual([
    [1, expect.stringContaining("The answer has no list 'data'")],
    [1, 'endless: The list has more than 100 pages.'],
    [1, expect.stringContaining("The manifest of 'none' does not say where the provider lists its models")],
    [1, expect.stringMatching(/^refuses: /)],
    [1, "'unset' needs NO_SUCH_KEY: set it first."],
    [1, expect.stringContaining("There is no provider 'nobody'")],
    [2, 'name a provider'],
  ])
  expect(JSON.stringify(said)).not.toContain('a secret of the provider')
})
