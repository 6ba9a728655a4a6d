import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import * as key from '../../src/cli/key.ts'
import type { Permissions } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open.ts'
import { printed } from '../cli/administration.ts'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { eventually } from '../helpers/time.ts'
import { administration } from './administration.ts'

// What log-payloads stores of calls, as the management API of a router with several threads reads and deletes it.

let router: TestRouter
let manage: ReturnType<typeof administration>
let url: string
/** Secrets of a key that reads content, of one that also deletes it, and of one that may do everything in another organization. */
let reader: string
let deleter: string
let foreigner: string

const all: Permissions = { manage: 'write', completions: 'write', operate: 'write' }
const folder = mkdtempSync(join(tmpdir(), 'payloads-'))
const stored = () =>
  readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')

beforeAll(async () => {
  router = await testRouter({
    threads: 2,
    files: simulatorOnly,
    settings: {
      folders: { plugins: join(import.meta.dirname, '../../plugins') },
      plugins: [{ name: 'log-payloads', options: { folder } }],
    },
  })
  manage = administration(router)
  url = `sqlite:${router.folder}/data/router.sqlite`
  reader = (await granted('reader', 'read')).api_key
  deleter = (await granted('deleter', 'write')).api_key
  const store = await openStore(url)
  const { id } = await store.organizations.create('other')
  foreigner = newSecret()
  const createdBy = { id: 'test', email: '' }
  const permissions: Permissions = { ...all, content: 'write' }
  await store.keys.create({ ...storedSecret(foreigner), organization: id, name: 'foreigner', permissions, createdBy })
  await store.close()
})
afterAll(async () => {
  await router.end()
  rmSync(folder, { recursive: true })
})

/** Makes a key on the command line. */
async function granted(name: string, content: string): Promise<{ id: string; api_key: string }> {
  const args = ['create', name, '--org', 'default', '--content', content, '--json']
  const { code, stdout, stderr } = await printed((out) => key.run(args, out, () => url))
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

/** Makes a call and returns its id when all of its content is written. */
async function call(content: string, user = 'ann', secret = testKey): Promise<string> {
  const body = { model: 'demo/echo', messages: [{ role: 'user', content }], user, temperature: 0.5 }
  const response = await router.call('/v1/chat/completions', body, { authorization: `Bearer ${secret}` })
  await response.text()
  expect(response.status).toBe(200)
  const id = response.headers.get('x-request-id') ?? ''
  const lines = () =>
    stored()
      .split('\n')
      .filter((line) => line.includes(`"id":"${id}"`))
  await expect.poll(() => lines().length, { timeout: 10_000 }).toBe(3)
  return id
}

const read = (id: string, secret?: string) => manage.get(`/calls/${id}/content`, secret)
const entries = async (limit: number) => (await manage.get(`/audit?limit=${limit}`)).body.entries as object[]

describe('a key with content: read', () => {
  test('reads the request and the reply of a call, whichever thread has stored them', async () => {
    // Each on a connection of its own: the system distributes them among the threads.
    const ids = [await call('Hello one'), await call('Hello two'), await call('Hello three'), await call('Hello four')]
    const found = await Promise.all(ids.map((id) => read(id, reader)))
    expect(found.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(found[0]?.headers.get('cache-control')).toBe('no-store')
    expect(found[2]?.body).toMatchObject({
      id: ids[2],
      stored_by: 'log-payloads',
      operation: 'chat',
      asked: 'demo/echo',
      request: { messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello three' }] }], temperature: 0.5 },
      reply: { parts: [{ type: 'text' }] },
    })
  })

  test('leaves an entry in the log of changes for each reading', async () => {
    const id = await call('Who reads me?')
    await read(id, reader)
    const { body: self } = await manage.get('/apikey/self', reader)
    expect(await entries(1)).toMatchObject([{ action: 'content.read', subject: id, actor: self.id, after: null }])
  })

  test('does not delete', async () => {
    const id = await call('Stay')
    expect((await manage.delete('/content?user=ann', reader)).status).toBe(403)
    expect((await read(id, reader)).status).toBe(200)
  })
})

describe('content is out of reach', () => {
  test('for the key of the first start, and for all that the other permissions give', async () => {
    const id = await call('Not for you')
    const before = await entries(1)
    const { secret } = await manage.newKey({ permissions: all })
    for (const one of [testKey, secret]) {
      expect(await read(id, one)).toMatchObject({ status: 403, text: expect.stringContaining('needs content: read') })
      expect((await manage.delete('/content?user=ann', one)).status).toBe(403)
    }
    expect((await entries(2))[1]).toEqual(before[0])
  })

  test('for the keys of another organization, which also deletes only its own', async () => {
    const own = await call('Mine', 'shared')
    const other = await call('Theirs', 'shared', foreigner)
    expect((await read(own, foreigner)).status).toBe(404)
    expect((await read(other, deleter)).status).toBe(404)
    expect((await read(other, foreigner)).status).toBe(200)
    expect((await manage.delete('/content?user=shared', foreigner)).body).toEqual({ calls: 1 })
    expect((await read(other, foreigner)).status).toBe(404)
    expect((await read(own, reader)).status).toBe(200)
  })

  test('for a key that another one without it makes or changes', async () => {
    const body = { name: 'x', permissions: { content: 'read' } }
    expect(await manage.post('/apikey', body)).toMatchObject({
      status: 403,
      text: expect.stringContaining('the new one would have content: read, and this API key has only content: none'),
    })
    const { id } = await granted('not to be rotated', 'read')
    expect((await manage.post(`/apikey/${id}/rotate`)).status).toBe(403)
  })
})

test('a key that has it grants it to others as far as itself', async () => {
  const { id, api_key: secret } = await granted('head', 'read')
  const { code } = await printed((out) => key.run(['edit', id, '--content', 'none'], out, () => url))
  expect(code).toBe(0)
  const store = await openStore(url)
  await store.keys.update(id, { permissions: { ...all, content: 'read' } })
  await store.close()
  await expect
    .poll(async () => (await manage.get('/apikey/self', secret)).body.permissions)
    .toEqual({
      ...all,
      content: 'read',
    })
  const make = (content: string) => manage.post('/apikey', { name: 'made', permissions: { content } }, secret)
  expect((await make('write')).status).toBe(403)
  expect((await manage.get(`/apikey/${(await make('read')).body.api_key_id}`)).body.permissions).toMatchObject({
    manage: 'none',
    content: 'read',
  })
  expect(await entries(5)).toContainEqual(expect.objectContaining({ actor: 'cli', action: 'apikey.content' }))
})

test('the content of one end user is deleted from the files, and that of others stays', async () => {
  const gone = await call('My address is Elm Street', 'erased')
  const kept = await call('Keep this', 'erased too')
  const { status, body } = await manage.delete('/content?user=erased', deleter)
  expect([status, body]).toEqual([200, { calls: 1 }])
  expect(stored()).not.toContain('Elm Street')
  expect((await read(gone, reader)).status).toBe(404)
  expect((await read(kept, reader)).status).toBe(200)
  expect(await entries(2)).toContainEqual(
    expect.objectContaining({ action: 'content.delete', subject: 'erased', after: { calls: 1 } }),
  )
  expect((await manage.delete('/content', deleter)).status).toBe(400)
  expect((await manage.delete('/content?user=', deleter)).status).toBe(400)
})

test('a call of which nothing is stored is a 404 without an entry in the log', async () => {
  const [before] = await entries(1)
  expect((await read('01990000-0000-7000-8000-000000000000', reader)).status).toBe(404)
  expect((await entries(1))[0]).toEqual(before)
})

test.each([1, 2])(
  'a plugin that fails to read or delete content is a 500, and the log of %i threads has its error',
  async (threads) => {
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
    const hooks = `find() { throw new Error('no disk') }, deleteOf() { throw 'no right' }`
    const source = `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({ setup: () => ({ content: { ${hooks} } }) })`
    const world = await testRouter({
      threads,
      log,
      files: { ...simulatorOnly, 'plugins/broken.ts': source },
      settings: { folders: { plugins: './plugins' }, plugins: [{ name: 'broken' }] },
    })
    onTestFinished(() => world.end())
    const of = `sqlite:${world.folder}/data/router.sqlite`
    const made = await printed((out) => key.run(['create', 'all', '--content', 'write', '--json'], out, () => of))
    const headers = { authorization: `Bearer ${JSON.parse(made.stdout).api_key}` }
    const answer = await world.call('/v1/chat/completions', {
      model: 'demo/echo',
      messages: [{ role: 'user', content: 'Hi' }],
    })
    await answer.text()
    const id = answer.headers.get('x-request-id')
    for (const [method, path, task] of [
      ['GET', `calls/${id}/content`, 'read'],
      ['DELETE', 'content?user=ann', 'delete'],
    ]) {
      const response = await fetch(`${world.url}/v1/manage/${path}`, { method: String(method), headers })
      expect([response.status, JSON.parse(await response.text()).error.message]).toEqual([
        500,
        `The plugin 'broken' failed to ${task} what it has stored; the log has the error.`,
      ])
    }
    await eventually(() => expect(lines.join('')).toMatch(/no disk.*no right/s))
  },
)
