import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Provider } from '../../src/manifest/provider.ts'
import { referencesIn } from '../../src/manifest/read/environment.ts'
import { buildSnapshot, type Snapshot } from '../../src/snapshot/snapshot.ts'
import { urlOf } from '../../src/upstream/provider-request.ts'
import { cache } from '../helpers/router.ts'

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'residency-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Manifest = { account_of?: string; models_of?: string; base_url: string | { of: string }; auth: object }

/** A snapshot of the shipped files with settings of providers, without any problem that is an error. */
async function shipped(providers: object, env: { [name: string]: string } = {}) {
  const config = join(folder, 'config.yaml')
  const folders = { providers: join(root, 'providers'), catalog: join(root, 'catalog') }
  writeFileSync(config, JSON.stringify({ folders, providers }))
  const { snapshot, problems } = await buildSnapshot(config, env, { cache })
  if (!snapshot) throw new Error(problems.map(({ message }) => message).join('\n'))
  return { snapshot, problems: problems.map(({ message }) => message) }
}

function manifestsOf({ sources }: Snapshot): Map<string, Manifest> {
  const prefix = join(root, 'providers/')
  const files = [...sources].filter(([file]) => file.startsWith(prefix) && !file.slice(prefix.length).includes('/'))
  return new Map(files.map(([file, { value }]) => [file.slice(prefix.length, -'.yaml'.length), value as Manifest]))
}

/** The address of every endpoint of a provider, those of its variants and of jobs included. */
function addressesOf(provider: Provider): string[] {
  const all = [provider, ...(provider.variants ?? []).map((variant) => variant.provider)]
  return all.flatMap((one) => {
    const paths = pathsIn({ chat: one.chat, operations: one.operations, count: one.count, compact: one.compact })
    return ['/', ...paths].map((path) => urlOf(one, path, 'model'))
  })
}

/** Every text below a member named `path`, `poll` or `cancel`. A poll of a whole address is bound to hosts of its own. */
function pathsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return ['path', 'poll', 'cancel'].includes(name) && value !== '{id}' ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => pathsIn(member, key))
}

function accountOf(slug: string, manifests: ReadonlyMap<string, Manifest>): string {
  return manifests.get(slug)?.account_of ?? slug
}

const { snapshot: usual } = await shipped({})
const manifests = manifestsOf(usual)
const accounts = [...manifests.keys()].filter((slug) => !manifests.get(slug)?.account_of)
const variants = [...manifests.keys()].filter((slug) => manifests.get(slug)?.account_of)

test('no shipped provider sends anything past the address that is set for its account', async () => {
  const resident = (slug: string) => `https://${slug}.resident.example`
  const settings = accounts.map((slug) => [slug, { base_url: `${resident(slug)}/gateway` }])
  const { snapshot, problems } = await shipped(Object.fromEntries(settings))
  const seen = [...snapshot.providers].map(([slug, provider]) => {
    const addresses = addressesOf(provider)
    expect(addresses.length, slug).toBeGreaterThan(0)
    for (const address of addresses) expect(address, slug).toMatch(`${resident(accountOf(slug, manifests))}/gateway`)
    return slug
  })
  expect([...seen, ...snapshot.off.keys()].sort()).toEqual([...manifests.keys()].sort())
  for (const [slug, message] of snapshot.off) {
    expect(message).toContain(`\`providers.${slug}.base_url\``)
    expect(problems.join('\n')).toContain(`set \`providers.${slug}.base_url\``)
  }
  expect([...snapshot.off.keys()]).toEqual(variants.filter((slug) => typeof manifests.get(slug)?.base_url === 'string'))
})

test('no shipped provider sends anything to its usual address while a variable moves its account', async () => {
  const moving = accounts.flatMap((slug) => {
    const { base_url } = manifests.get(slug) as Manifest
    const isWhole = typeof base_url === 'string' && /^\$\{\w+:-https?:.*\}$/.test(base_url)
    return isWhole ? [[slug, referencesIn(base_url)[0] as string] as const] : []
  })
  expect(moving.length).toBeGreaterThan(5)
  const env = Object.fromEntries(moving.map(([slug, name]) => [name, `https://${slug}.resident.example/gateway`]))
  const { snapshot } = await shipped({}, env)
  const moved = [...snapshot.providers].filter(([slug]) =>
    moving.some(([account]) => account === accountOf(slug, manifests)),
  )
  expect(moved.length).toBeGreaterThan(moving.length)
  for (const [slug, provider] of moved) {
    for (const address of addressesOf(provider))
      expect(address, slug).toMatch(`https://${accountOf(slug, manifests)}.resident.example/gateway`)
  }
})

test('the secret and the switch of an account hold for all its shipped variants', async () => {
  const secrets = accounts.map((slug) => [slug, { secret: `secret of ${slug}` }])
  const taking = Object.fromEntries(
    secrets.filter(([slug]) => referencesIn(JSON.stringify(manifests.get(slug as string)?.auth)).length > 0),
  )
  const { snapshot } = await shipped(taking)
  for (const slug of variants) {
    const { auth, missing } = snapshot.providers.get(slug) as Provider
    expect(auth, slug).toMatchObject({ secret: `secret of ${accountOf(slug, manifests)}` })
    expect(
      missing.filter((name) => /KEY|TOKEN|SECRET|PAT/.test(name)),
      slug,
    ).toEqual([])
  }
  const off = await shipped(Object.fromEntries(accounts.map((slug) => [slug, { enabled: false }])))
  expect(off.snapshot.providers.size).toBe(0)
  expect(off.problems).toEqual([])
})

test('every shipped manifest that needs the credentials of another one is of its account', () => {
  const needed = (slug: string) =>
    referencesIn(JSON.stringify(manifests.get(slug)?.auth).replaceAll(/\$\{\w+:-[^}]*\}/g, ''))
  const owners = Map.groupBy(
    [...manifests.keys()].flatMap((slug) => needed(slug).map((name) => ({ slug, name }))),
    ({ name }) => name,
  )
  for (const [name, users] of owners) {
    expect([...new Set(users.map(({ slug }) => accountOf(slug, manifests)))], name).toHaveLength(1)
  }
  for (const [slug, { models_of }] of manifests) if (models_of) expect(accountOf(slug, manifests)).toBe(models_of)
  expect(variants).toHaveLength(40)
})
