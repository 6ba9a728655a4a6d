import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { pino } from 'pino'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ensureFirstKey } from '../../../src/access/keys.ts'
import { startRouter } from '../../../src/app/router.ts'
import { openStore } from '../../../src/store/open.ts'
import { damage, pagesWithContent } from '../../helpers/damage.ts'
import { cache, routerFolder, simulatorOnly, testKey } from '../../helpers/router.ts'
import { testEach } from '../../helpers/slow.ts'
import { eventually } from '../../helpers/time.ts'
import { plainRecord } from '../../store/plain-record.ts'

/** A sound database with keys, names and calls, and its pages. */
let sound: Buffer
let places: { name: string; page: number }[]

beforeAll(async () => {
  const { folder } = routerFolder({ files: simulatorOnly })
  const path = join(folder, 'data/router.sqlite')
  const store = await openStore(`sqlite:${path}`)
  await ensureFirstKey(store, testKey)
  const organization = (await store.organizations.list())[0]?.id as string
  const key = (await store.keys.page({ limit: 1 }))[0]?.id as string
  await store.organizations.credit(organization, 10n ** 12n)
  await store.groups.create({ organization, name: 'lab' })
  await store.names.setAlias(organization, { name: 'a', target: 'demo/echo' })
  const writer = store.ledger.openWriter()
  await writer.write([plainRecord({ organization, key })])
  await writer.close()
  await store.close()
  places = pagesWithContent(path)
  sound = readFileSync(path)
  rmSync(folder, { recursive: true, force: true })
})

/** A router on a database of which these pages are damaged. */
async function routerOn(pages: readonly number[], { value, threads }: { value?: number; threads?: number } = {}) {
  const { folder, configPath } = routerFolder({ files: simulatorOnly, threads })
  const path = join(folder, 'data/router.sqlite')
  mkdirSync(dirname(path))
  damage(path, sound, pages, value)
  const env = { INFERENCE_ROUTER_ADMIN_KEY: testKey }
  const router = await startRouter({
    configPath,
    env,
    log: pino({ level: 'silent' }),
    earlier: { known: new Map(), cache },
  })
  onTestFinished(async () => {
    await router.stop(1_000)
    rmSync(folder, { recursive: true, force: true })
  })
  const ask = async (at: string, body?: unknown, key = testKey) => {
    const response = await fetch(router.url + at, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, text: await response.text() }
  }
  return { path, ask }
}

type Ask = Awaited<ReturnType<typeof routerOn>>['ask']

const call = { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] }
const reason = 'The router cannot use its database: the database file is damaged.'

async function expectRefusals(ask: Ask) {
  await eventually(async () => expect((await ask('/ready')).status).toBe(503))
  expect(JSON.parse((await ask('/ready')).text).reasons).toEqual([reason])
  for (const [at, body] of [
    ['/v1/chat/completions', call],
    ['/v1/manage/group', { name: 'new' }],
  ] as const) {
    const { status, text } = await ask(at, body)
    expect([at, status, JSON.parse(text).error.code]).toEqual([at, 503, 'unavailable'])
    expect(text).toContain('damaged')
  }
  expect((await ask('/health')).status).toBe(200)
}

test('a sound database is ready', async () => {
  const { ask } = await routerOn([])
  expect((await ask('/v1/chat/completions', call)).status).toBe(200)
  expect((await ask('/ready')).status).toBe(200)
})

describe('damage that is there at the start', () => {
  const deciding = [
    'organizations',
    'credits',
    'groups',
    'aliases',
    'organization_spend',
    'key_spend',
    'api_keys_listed',
  ]

  testEach(deciding, { slowIf: (name) => !['groups', 'key_spend'].includes(name) })(
    'in %s: /ready, calls and changes are 503',
    async (name) => {
      const pages = places.filter((place) => place.name === name).map(({ page }) => page)
      expect(pages).toHaveLength(1)
      const { ask } = await routerOn(pages)
      await expectRefusals(ask)
    },
  )
})

test('damage that a report meets is damage for calls as well', async () => {
  const pages = places.filter(({ name }) => name === 'organization_usage').map(({ page }) => page)
  const { ask } = await routerOn(pages, { value: 0xff })
  expect((await ask('/ready')).status).toBe(200)
  const report = await ask('/v1/manage/org/usage?start=2026-11-01&end=2026-11-30')
  expect([report.status, JSON.parse(report.text).error.code]).toEqual([503, 'unavailable'])
  await expectRefusals(ask)
})

test('a row that is damaged inside is damage, not a failure of the router', async () => {
  const { path, ask } = await routerOn([])
  const { status, text } = await ask('/v1/manage/apikey', { name: 'another' })
  expect(status).toBe(201)
  const other = new Database(path)
  other.pragma('ignore_check_constraints = ON')
  other.prepare("UPDATE api_keys SET labels = '{' WHERE name = 'another'").run()
  other.close()
  const met = await ask('/v1/auth/check', undefined, String(JSON.parse(text).api_key))
  expect([met.status, JSON.parse(met.text).error.code]).toEqual([503, 'unavailable'])
  await expectRefusals(ask)
})

testEach([1, 4], { slowIf: (threads) => threads > 1 })(
  'damage while %d threads run is met by the next call that reads it',
  async (threads) => {
    const { path, ask } = await routerOn([], { threads })
    expect((await ask('/v1/chat/completions', call)).status).toBe(200)
    const other = new Database(path)
    // A change of the schema, after which every connection reads the file again.
    other.exec('CREATE TABLE later (a INTEGER)')
    other.pragma('wal_checkpoint(TRUNCATE)')
    other.close()
    const file = openSync(path, 'r+')
    const zeros = Buffer.alloc(sound.readUInt16BE(16) - 8)
    for (const { name, page } of places)
      if (name === 'organizations' || name === 'aliases')
        writeSync(file, zeros, 0, zeros.length, (page - 1) * 4_096 + 8)
    closeSync(file)
    await eventually(async () => expect((await ask('/v1/manage/org')).status).toBe(503))
    await expectRefusals(ask)
  },
)
