import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { folderOf, plainDialect } from '../manifest/files.ts'

const acme = `slug: acme
name: Acme
base_url: "\${ACME_URL:-https://api.acme.example/v1}"
auth: { scheme: bearer, secret: "\${ACME_KEY}" }
dialect: plain
`

/** A manifest of the same account, with the address that is given. */
function variant(base_url: string, more = 'account_of: acme\n') {
  return acme
    .replace('slug: acme', 'slug: acme-two')
    .replace(/base_url: .*/, `base_url: ${base_url}`)
    .replace('bearer,', 'header, header: x-key,')
    .concat(more)
}

const own = 'https://two.acme.example'
const derived = '{ of: acme, path: /two }'
const equal = '"${ACME_URL:-https://api.acme.example/v1}"'

/** The shipped dialects, read once. */
let shipped: KnownSources = new Map()

async function build(two: string, providers: object, env: { [name: string]: string } = {}, more = {}) {
  const folder = folderOf({
    'config.yaml': JSON.stringify({ folders: { providers: './providers', catalog: './catalog' }, providers }),
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': acme,
    'providers/acme-two.yaml': two,
    ...more,
  })
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), env, { known: shipped })
  if (snapshot) shipped = snapshot.sources
  const provider = snapshot?.providers.get('acme-two')
  return {
    provider,
    off: snapshot?.off.get('acme-two'),
    problems: problems.map((problem) => formatProblem(problem).replace(`${folder}/`, '')),
  }
}

test('a secret that is set for a provider holds for the variants of its account', async () => {
  const { provider } = await build(variant(own), { acme: { secret: '${MINE}' } }, { MINE: 'mine' })
  expect(provider?.auth).toEqual({ scheme: 'header', header: 'x-key', secret: 'mine' })
  expect(provider?.missing).toEqual([])
  const { provider: ofItsOwn } = await build(
    variant(own),
    { acme: { secret: '${MINE}' }, 'acme-two': { secret: '${OTHER}' } },
    { MINE: 'mine', OTHER: 'other' },
  )
  expect(ofItsOwn?.auth).toMatchObject({ secret: 'other' })
})

test('a variant that takes no secret has none of its account', async () => {
  const two = variant(own).replace(/auth: .*/, 'auth: { scheme: none }')
  const { provider, problems } = await build(two, { acme: { secret: '${MINE}' } }, { MINE: 'mine' })
  expect(provider?.auth).toEqual({ scheme: 'none' })
  expect(problems).toEqual([])
})

test('a provider that is switched off takes the variants of its account with it, unless they are switched on or have an address or a secret', async () => {
  const { provider, off, problems } = await build(variant(own), { acme: { enabled: false } })
  expect([provider, problems]).toEqual([undefined, []])
  expect(off).toContain('`providers.acme-two.enabled: true`')
  const back = await build(variant(own), { acme: { enabled: false }, 'acme-two': { enabled: true } })
  expect(back.provider?.slug).toBe('acme-two')
  for (const placed of [{ base_url: own }, { secret: 'mine' }]) {
    expect((await build(variant(own), { acme: { enabled: false }, 'acme-two': placed })).off).toBeUndefined()
  }
  const tuned = await build(variant(own), { acme: { enabled: false }, 'acme-two': { timeouts: { total: '1m' } } })
  expect(tuned.provider).toBeUndefined()
  const alone = await build(variant(own), { 'acme-two': { enabled: false } })
  expect([alone.provider, alone.off]).toEqual([undefined, undefined])
})

test.each([
  ['derived', variant(derived), 'https://eu.acme.example/v1/two'],
  ['equal', variant(equal), 'https://eu.acme.example/v1'],
])('an address that is set for a provider moves a variant whose address is %s', async (_, two, expected) => {
  const { provider, problems } = await build(two, { acme: { base_url: 'https://eu.acme.example/v1/' } })
  expect([provider?.baseUrl, problems]).toEqual([expected, []])
  const moved = await build(two, { 'acme-two': { base_url: 'https://own.example' } })
  expect(moved.provider?.baseUrl).toBe('https://own.example')
})

test('a derived address follows the manifest of the other provider and the environment', async () => {
  expect((await build(variant(derived), {})).provider?.baseUrl).toBe('https://api.acme.example/v1/two')
  const moved = await build(variant(derived), {}, { ACME_URL: 'https://eu.acme.example' })
  expect(moved.provider?.baseUrl).toBe('https://eu.acme.example/two')
})

test('an address that is set for a provider switches a variant with an address of its own off', async () => {
  const eu = { acme: { base_url: 'https://eu.acme.example/v1' } }
  const { provider, off, problems } = await build(variant(own), eu)
  expect(provider).toBeUndefined()
  expect(off).toContain('`providers.acme-two.base_url`')
  expect(problems.map((problem) => problem.replace(/:1:\d+:/, ':'))).toEqual([
    'config.yaml: warning: `acme-two` is switched off: the base_url of `acme` is set, and that of `acme-two` does not follow it; set `providers.acme-two.base_url`, or `providers.acme-two.enabled: false`',
  ])
  const silenced = await build(variant(own), { ...eu, 'acme-two': { enabled: false } })
  expect([silenced.provider, silenced.problems]).toEqual([undefined, []])
  const insisting = await build(variant(own), { ...eu, 'acme-two': { enabled: true } })
  expect(insisting.provider).toBeUndefined()
  const placed = await build(variant(own), { ...eu, 'acme-two': { base_url: own } })
  expect([placed.provider?.baseUrl, placed.problems]).toEqual([own, []])
})

test('a variable that moves a provider switches a variant off that it does not move', async () => {
  const { provider, problems } = await build(variant(own), {}, { ACME_URL: 'https://eu.acme.example' })
  expect(provider).toBeUndefined()
  expect(problems).toEqual([expect.stringContaining('ACME_URL moves `acme` and not `acme-two`')])
  const two = variant('"${ACME_TWO_URL:-https://two.acme.example}"')
  const env = { ACME_URL: 'https://eu.acme.example', ACME_TWO_URL: 'https://eu2.acme.example' }
  expect((await build(two, {}, env)).provider?.baseUrl).toBe('https://eu2.acme.example')
  const sharing = variant('"${ACME_URL:-https://api.acme.example}/two"')
  const { provider: shared } = await build(sharing, {}, { ACME_URL: 'https://eu.acme.example' })
  expect(shared?.baseUrl).toBe('https://eu.acme.example/two')
})

test('a manifest without `account_of` has its own settings only', async () => {
  const { provider } = await build(variant(own, ''), { acme: { base_url: 'https://eu.acme.example', enabled: false } })
  expect(provider?.baseUrl).toBe(own)
})

test('a manifest with the models and the secret of a provider that moves past it is named in a warning', async () => {
  const eu = { acme: { base_url: 'https://eu.acme.example' } }
  const copied = variant(own, 'models_of: acme\n')
  expect((await build(copied, eu)).problems).toEqual([
    'providers/acme-two.yaml:3:11: warning: requests of `acme-two` go to this address although the base_url of `acme`, whose secret it has, is set: write `account_of: acme` here, or set `providers.acme-two.base_url`',
  ])
  expect((await build(copied, {})).problems).toEqual([])
  expect((await build(copied, { ...eu, 'acme-two': { enabled: false } })).problems).toEqual([])
  const other = copied.replace('${ACME_KEY}', '${OTHER_KEY}')
  expect((await build(other, eu)).problems).toEqual([])
})

test('an account that does not exist, or belongs to another one, is an error of the manifest', async () => {
  const { problems } = await build(variant(own, 'account_of: akme\n'), {})
  expect(problems).toEqual(['providers/acme-two.yaml:6:13: there is no provider `akme`; did you mean `acme`?'])
  const three = variant(own, 'account_of: acme-two\n').replace('slug: acme-two', 'slug: acme-three')
  const chained = await build(variant(own), {}, {}, { 'providers/acme-three.yaml': three })
  expect(chained.problems).toEqual([
    'providers/acme-three.yaml:6:13: `acme-two` uses the account of `acme`: name that one',
  ])
})

test('an address of a provider that does not exist, or whose own is derived, is an error of the manifest', async () => {
  const unknown = await build(variant('{ of: akme }'), {})
  expect(unknown.problems).toEqual(['providers/acme-two.yaml:3:17: there is no provider `akme`; did you mean `acme`?'])
  const three = variant('{ of: acme-two }').replace('slug: acme-two', 'slug: acme-three')
  const chained = await build(variant(derived), {}, {}, { 'providers/acme-three.yaml': three })
  expect(chained.problems).toEqual([
    'providers/acme-three.yaml:3:17: the address of `acme-two` is that of `acme`: name that one',
  ])
})

test('a wrong address is reported once, where it is written', async () => {
  const { provider, problems } = await build(variant(derived), { acme: { base_url: 'ftp://acme.example' } })
  expect(provider).toBeUndefined()
  expect(problems).toEqual([expect.stringMatching(/^config\.yaml:1:\d+: `base_url` must be an http or https address$/)])
})
