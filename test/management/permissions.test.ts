import { type Dispatcher, Pool } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import { areas, type KeyRecord, type Level, levels, type Permissions } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { describeEach, slow, testEach } from '../helpers/slow.ts'
import { png } from '../operations/image-world.ts'
import { administration } from './administration.ts'

/** The requirement of an endpoint: none, an optional valid key, any valid key, or a permission. */
type Need =
  | 'nothing'
  | 'no bad key'
  | 'any key'
  | Permission
  | `${Permission} or ${Permission}`
  | `${Permission} or ${Permission} or ${Permission}`
type Permission = `${keyof Permissions}: ${Exclude<Level, 'none'>}`

/**
 * An endpoint's row: what it needs; a request that would change or show something, for those that may not; and, where it
 * must not be repeated, another one for those that may, with its status.
 */
type Row = { need: Need; path?: string; body?: unknown; allowed?: { path?: string; body?: unknown }; status?: number }

const messages = [{ role: 'user', content: 'Hello' }]
const call = { model: 'demo/echo', messages, max_tokens: 9 }
const order = { model: 'demo/ranker', query: 'Hello', documents: ['Hello'] }
const list: Row = { need: 'no bad key' }
const read: Row = { need: 'manage: read' }
const either: Row = { need: 'manage: read or operate: read' }
const ofAll: Row = { need: 'instance: read' }
const noKey = '/v1/manage/apikey/nobody'

/** The whole service. Names in capitals are the ids of records that the test created. */
const table: { readonly [endpoint: string]: Row } = {
  'POST /v1/chat/completions': { need: 'completions: write', body: call },
  'POST /v1/messages': { need: 'completions: write', body: call },
  'POST /v1/messages/count_tokens': { need: 'completions: write', body: call },
  'POST /v1/responses': { need: 'completions: write', body: { model: 'demo/echo', input: 'Hello' } },
  'POST /v1/images/edits': {
    need: 'completions: write',
    body: {
      model: 'demo/painter',
      prompt: 'Hello',
      size: '64x64',
      image: `data:image/png;base64,${png().toString('base64')}`,
    },
  },
  'POST /v1/images/generations': {
    need: 'completions: write',
    body: { model: 'demo/painter', prompt: 'Hello', size: '64x64' },
  },
  'POST /v1/completions': { need: 'completions: write', body: { model: 'demo/writer', prompt: 'Hello' } },
  'POST /v1/embeddings': { need: 'completions: write', body: { model: 'demo/vectors', input: 'Hello' } },
  'POST /v1/rerank': { need: 'completions: write', body: order },
  'POST /v1/moderations': { need: 'completions: write', body: { model: 'demo/moderator', input: 'Hello' } },
  'POST /v1/audio/speech': {
    need: 'completions: write',
    body: { model: 'demo/tone', input: 'Hi', voice: 'tone', response_format: 'wav' },
  },
  'POST /v1/audio/transcriptions': { need: 'completions: write', body: { model: 'demo/tone' }, status: 415 },
  'POST /v1/decisions': {
    need: 'completions: write',
    body: { model: 'demo/echo', input: 'Hello', questions: [{ type: 'predicate', instructions: 'Polite?' }] },
  },
  'POST /v1/responses/input_tokens': { need: 'completions: write', body: { model: 'demo/echo', input: 'Hello' } },
  'POST /v1/responses/compact': {
    need: 'completions: write',
    body: { model: 'demo/echo', input: 'Hello' },
    status: 400,
  },
  'GET /v1/responses/:id': { need: 'completions: read', path: '/v1/responses/RESPONSE' },
  'GET /v1/responses/:id/input_items': { need: 'completions: read', path: '/v1/responses/RESPONSE/input_items' },
  'POST /v1/responses/:id/cancel': { need: 'completions: write', path: '/v1/responses/RESPONSE/cancel', status: 400 },
  'DELETE /v1/responses/:id': {
    need: 'completions: write',
    path: '/v1/responses/RESPONSE',
    allowed: { path: '/v1/responses/none' },
    status: 404,
  },

  'GET /health': { need: 'nothing' },
  'GET /ready': { need: 'nothing' },
  'GET /metrics': { need: 'manage: read or operate: read or instance: read' },
  'GET /openapi.json': { need: 'nothing' },
  'GET /docs/errors.html': { need: 'nothing' },
  'GET /v1/models/managed': { need: 'nothing' },
  'GET /v1/models': list,
  'GET /v1/models/chat': list,
  'GET /v1/models/all': list,
  'GET /v1/models/decision': list,
  'GET /v1/models/embedding': list,
  'GET /v1/models/image': list,
  'GET /v1/models/transcription': list,
  'GET /v1/models/speech': list,
  'GET /v1/models/rerank': list,
  'GET /v1/models/moderation': list,
  'GET /v1/models/completion': list,
  'GET /v1/models/*id': { need: 'no bad key', path: '/v1/models/demo/echo' },

  'GET /v1/auth/check': { need: 'any key' },

  'GET /v1/manage/org': either,
  'GET /v1/manage/org/balance': either,
  'GET /v1/manage/org/models': read,
  'GET /v1/manage/org/rules': either,
  'GET /v1/manage/org/plugins': either,
  'GET /v1/manage/org/limits': either,
  'GET /v1/manage/org/usage': read,
  'GET /v1/manage/audit': read,
  'GET /v1/manage/instance': ofAll,
  'GET /v1/manage/instance/org': ofAll,
  'GET /v1/manage/instance/apikey': ofAll,
  'GET /v1/manage/instance/usage': ofAll,
  'GET /v1/manage/instance/calls': ofAll,
  'GET /v1/manage/health': read,
  'GET /v1/manage/targets': read,
  'GET /v1/manage/problems': read,
  'GET /v1/manage/plugins': read,
  'GET /v1/manage/instance/settings': ofAll,
  'GET /v1/manage/instance/targets': ofAll,
  'GET /v1/manage/providers': read,
  'GET /v1/manage/providers/:slug': { need: 'manage: read', path: '/v1/manage/providers/demo' },
  'POST /v1/manage/providers/:slug/try': {
    need: 'manage: read',
    path: '/v1/manage/providers/demo/try',
    body: { model: 'echo', request: { messages } },
  },
  'GET /v1/manage/calls': read,
  'GET /v1/manage/refusals': read,
  'GET /v1/manage/latency': read,
  'GET /v1/manage/live': { need: 'manage: read', path: '/v1/manage/live?events=1' },
  'GET /v1/manage/calls/:id/content': { need: 'content: read', path: '/v1/manage/calls/CALL/content', status: 404 },
  'DELETE /v1/manage/content': { need: 'content: write', path: '/v1/manage/content?user=nobody' },
  'GET /v1/manage/calls/:id': { need: 'manage: read', path: '/v1/manage/calls/CALL' },
  'POST /v1/manage/org/credit': { need: 'operate: write', body: { amount: 1 } },
  'PUT /v1/manage/org/balance': {
    need: 'operate: write',
    body: { enforces_balance: true },
    allowed: { body: { enforces_balance: false } },
  },
  'PUT /v1/manage/org/models': {
    need: 'manage: write',
    body: { approved_models: [] },
    allowed: { body: { approved_models: null } },
  },
  'PUT /v1/manage/org/rules': {
    need: 'operate: write',
    body: { data_retention: false },
    allowed: { body: { data_retention: null } },
  },
  'PUT /v1/manage/org/plugins': { need: 'operate: write', body: { plugins: { gone: null } } },
  'PUT /v1/manage/org/limits': {
    need: 'operate: write',
    body: { requests_per_minute: 1 },
    allowed: { body: { requests_per_minute: null } },
  },

  'GET /v1/manage/apikey': read,
  'GET /v1/manage/apikey/:id': { need: 'manage: read', path: '/v1/manage/apikey/KEY' },
  'GET /v1/manage/apikey/:id/usage': { need: 'manage: read', path: '/v1/manage/apikey/KEY/usage' },
  'POST /v1/manage/apikey': { need: 'manage: write', body: { name: 'made' }, status: 201 },
  'POST /v1/manage/apikey/:id/limit': keyChange('limit', { monthly_limit: 1 }),
  'POST /v1/manage/apikey/:id/label': { ...keyChange('label', { labels: { a: 'b' } }), status: 204 },
  'POST /v1/manage/apikey/:id/expiry': keyChange('expiry', { expires_at: null }),
  'POST /v1/manage/apikey/:id/limits': keyChange('limits', { concurrent_calls: 1 }),
  'POST /v1/manage/apikey/:id/access': keyChange('access', { models: [] }),
  'POST /v1/manage/apikey/:id/plugins': {
    ...keyChange('plugins', { plugins: { gone: null } }),
    need: 'operate: write',
  },
  'POST /v1/manage/apikey/:id/group': keyChange('group', { group_id: null }),
  'POST /v1/manage/apikey/:id/rotate': keyChange('rotate'),
  'DELETE /v1/manage/apikey/:id': {
    need: 'manage: write',
    path: '/v1/manage/apikey/KEY',
    allowed: { path: noKey },
    status: 404,
  },

  'GET /v1/manage/group': read,
  'GET /v1/manage/group/:id': { need: 'manage: read', path: '/v1/manage/group/GROUP' },
  'POST /v1/manage/group': { need: 'manage: write', body: { name: 'made' }, allowed: { body: {} }, status: 400 },
  'POST /v1/manage/group/:id/limit': {
    need: 'manage: write',
    path: '/v1/manage/group/GROUP/limit',
    body: { monthly_limit: 1 },
  },
  'DELETE /v1/manage/group/:id': {
    need: 'manage: write',
    path: '/v1/manage/group/GROUP',
    allowed: { path: '/v1/manage/group/none' },
    status: 404,
  },

  'GET /v1/manage/alias': read,
  'GET /v1/manage/alias/*name': { need: 'manage: read', path: '/v1/manage/alias/chatty' },
  'POST /v1/manage/alias': { need: 'manage: write', body: { name: 'chatty', target: 'demo/echo' } },
  'DELETE /v1/manage/alias/*name': {
    need: 'manage: write',
    path: '/v1/manage/alias/chatty',
    allowed: { path: '/v1/manage/alias/none' },
    status: 404,
  },

  'GET /v1/manage/policy': read,
  'GET /v1/manage/managed-policy': read,
  'GET /v1/manage/policy/:id': { need: 'manage: read', path: '/v1/manage/policy/quick' },
  'POST /v1/manage/policy/:id/explain': {
    need: 'manage: read',
    path: '/v1/manage/policy/quick/explain',
    body: { messages, max_tokens: 9 },
  },
  'POST /v1/manage/policy': {
    need: 'manage: write',
    body: { id: 'made', targets: ['demo/echo'] },
    allowed: { body: {} },
    status: 400,
  },
  'PUT /v1/manage/policy/:id': {
    need: 'manage: write',
    path: '/v1/manage/policy/quick',
    body: { targets: ['demo/echo'] },
  },
  'DELETE /v1/manage/policy/:id': {
    need: 'manage: write',
    path: '/v1/manage/policy/quick',
    allowed: { path: '/v1/manage/policy/none' },
    status: 404,
  },
}

function keyChange(what: string, body?: object): Row {
  return { need: 'manage: write', path: `/v1/manage/apikey/KEY/${what}`, ...(body && { body }) }
}

/** All permissions that a key can have within its organization. */
const everyPermissions: readonly Permissions[] = levels.flatMap((manage) =>
  levels.flatMap((completions) => levels.map((operate) => ({ manage, completions, operate }))),
)

/** The caller: without a key, with an invalid key, or with a key in a state and with permissions. */
type Asker = {
  name: string
  headers: Record<string, string>
  /** Which of the two headers its key is in, where it is a key at all. */
  header?: number
  state: 'missing' | 'bad' | 'active'
  permissions?: Permissions
}

let router: TestRouter
/** Thousands of requests: they cost much less than by `fetch`. */
let client: Pool
let manage: ReturnType<typeof administration>
let askers: Asker[]
const made: { [word: string]: string } = {}

beforeAll(async () => {
  router = await testRouter()
  client = new Pool(router.url)
  manage = administration(router)
  askers = await makeAskers(`sqlite:${router.folder}/data/router.sqlite`)
  const storedResponse = await router.call('/v1/responses', { model: 'demo/echo', input: 'Hello' })
  made.RESPONSE = ((await storedResponse.json()) as { id: string }).id
  const answered = await router.call('/v1/chat/completions', call)
  made.CALL = answered.headers.get('x-request-id') ?? ''
  await answered.text()
  // One that may nothing, so that every key that may manage may change it.
  made.KEY = (await manage.newKey({ permissions: { completions: 'none' } })).id
  made.GROUP = String((await manage.post('/group', { name: 'a group' })).body.group_id)
  await manage.post('/alias', { name: 'chatty', target: 'demo/echo' })
  await manage.post('/policy', { id: 'quick', targets: ['demo/echo'] })
})
afterAll(async () => {
  await client?.close()
  await router?.end()
})

async function makeAskers(url: string): Promise<Asker[]> {
  const store = await openStore(url)
  const [organization] = await store.organizations.list()
  const key = async (permissions: Permissions, facts: Partial<KeyRecord> = {}) => {
    const secret = newSecret()
    const createdBy = { id: 'test', email: '' }
    const owned = { organization: organization?.id ?? '', name: 'asker', createdBy, permissions }
    return { ...(await store.keys.create({ ...owned, ...storedSecret(secret), ...facts })), secret }
  }
  const all: Permissions = { manage: 'write', completions: 'write', operate: 'write' }
  const revoked = await key(all)
  await store.keys.revoke(revoked.id)
  const deleted = await key(all)
  await store.keys.remove(deleted.id)
  const rotated = await key(all)
  await store.keys.rotate(rotated.id, storedSecret(newSecret()))
  const bad = {
    unknown: newSecret(),
    'cut short': revoked.secret.slice(0, -1),
    expired: (await key(all, { expiresAt: Date.now() - 1 })).secret,
    revoked: revoked.secret,
    deleted: deleted.secret,
    'rotated away': rotated.secret,
  }
  const onlyInstance: Permissions = { manage: 'none', completions: 'none', operate: 'none', instance: 'read' }
  const onlyContent = (['read', 'write'] as const).map(
    (content): Permissions => ({ manage: 'none', completions: 'none', operate: 'none', content }),
  )
  const good = await Promise.all(
    [...everyPermissions, onlyInstance, ...onlyContent].map(async (permissions) => {
      const name = Object.entries(permissions)
        .map(([area, level]) => `${area} ${level}`)
        .join(', ')
      return { name, permissions, secret: (await key(permissions)).secret }
    }),
  )
  await store.close()
  const shown = [
    ...Object.entries(bad).map(([name, secret]) => ({ name, secret, state: 'bad' as const })),
    ...good.map((one) => ({ ...one, state: 'active' as const })),
  ].flatMap(({ name, secret, ...facts }) => [
    { name: `${name} (Authorization)`, headers: { authorization: `Bearer ${secret}` }, header: 0, ...facts },
    { name: `${name} (x-api-key)`, headers: { 'x-api-key': secret }, header: 1, ...facts },
  ])
  return [
    { name: 'missing', headers: {}, state: 'missing' },
    { name: 'an empty Authorization', headers: { authorization: '' }, state: 'missing' },
    { name: 'Bearer and nothing', headers: { authorization: 'Bearer ' }, state: 'missing' },
    { name: 'another scheme', headers: { authorization: 'Basic dXNlcjpwYXNz' }, state: 'bad' },
    { name: 'the id of a key', headers: { authorization: `Bearer ${revoked.id}` }, state: 'bad' },
    ...shown,
  ]
}

/** The expected rejection of a request: its status and a part of the message; undefined when there is none. */
function refusal(need: Need, { state, permissions }: Asker): string | undefined {
  if (need === 'nothing') return undefined
  if (state === 'missing') return need === 'no bad key' ? undefined : '401 no key'
  if (state === 'bad') return '403 bad key'
  const meets = (one: string) => {
    const [area, level] = one.split(': ') as [keyof Permissions, Level | undefined]
    return level === undefined || levels.indexOf(permissions?.[area] ?? 'none') >= levels.indexOf(level)
  }
  return need.split(' or ').some(meets) ? undefined : `403 needs ${need}`
}

async function outcome(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<string> {
  const filled = path.replace(/[A-Z]{3,}/g, (word) => made[word] ?? word)
  const { statusCode, body: answer } = await client.request({
    method: method as Dispatcher.HttpMethod,
    path: filled,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (statusCode !== 401 && statusCode !== 403) return String(statusCode)
  const { error } = JSON.parse(text) as { error: { origin: string; message: string } }
  return error.origin === 'router' ? `${statusCode} ${reasonIn(error.message)}` : text
}

function reasonIn(message: string): string {
  if (message.startsWith('No API key.')) return 'no key'
  if (/^This API key is (?:unknown|expired|revoked)/.test(message)) return 'bad key'
  return /needs \w+: \w+(?: or \w+: \w+)*/.exec(message)?.[0] ?? message
}

const changes = async () => (await manage.get('/audit')).text

test('every endpoint has a row in the table, and every row an endpoint', () => {
  const endpoints = router.endpoints.map(({ method, path }) => `${method} ${path}`)
  expect(Object.keys(table).sort()).toEqual([...new Set(endpoints)].sort())
})

/** Each key at every second endpoint in one header, at the others in the other one: where it stands is read before all else. */
const askersAt = (number: number) =>
  askers.filter(({ header }, index) => header === undefined || (Math.floor(index / 2) + number) % 2 === header)

const rows = Object.entries(table).map(([endpoint, row], number) => [endpoint, row, number] as const)

/** Every so many-th of the keys is enough for the fast suite: at the next endpoint they are others. */
describeEach(
  [3, 1].flatMap((step) => rows.map(([endpoint, row, number]) => [endpoint, step, row, number] as const)),
  { slowIf: ([, step]) => step === 1 },
)('%s (step %d)', (endpoint, step, { need, path, body, allowed, status = 200 }, number) => {
  const some = (list: readonly Asker[]) => list.filter((_, index) => (index + number) % step === 0)
  const [method = '', ownPath = ''] = endpoint.split(' ')

  test(`needs ${need}: keys without it are rejected, and nothing changes`, async () => {
    const before = await changes()
    const refused = some(askersAt(number).filter((asker) => refusal(need, asker)))
    const outcomes: [string, string | undefined][] = []
    for (const { name, headers } of refused)
      outcomes.push([name, await outcome(method, path ?? ownPath, body, headers)])
    expect(outcomes).toEqual(refused.map((asker) => [asker.name, refusal(need, asker)]))
    expect(await changes()).toBe(before)
  })

  test(`needs ${need}: those who have it are not`, async () => {
    const letIn = some(askersAt(number).filter((asker) => !refusal(need, asker)))
    const outcomes: [string, string][] = []
    for (const { name, headers } of letIn) {
      const requested = { path: path ?? ownPath, body, ...allowed }
      outcomes.push([name, await outcome(method, requested.path, requested.body, headers)])
    }
    expect(outcomes).toEqual(letIn.map(({ name }) => [name, String(status)]))
  })
})

test('GET /v1/auth/check returns the permissions of a key', async () => {
  for (const { headers, state, permissions } of askers) {
    const response = await fetch(`${router.url}/v1/auth/check`, { headers })
    if (state !== 'active') continue
    expect(await response.json()).toEqual({ key_id: expect.any(String), permissions })
  }
  const first = await fetch(`${router.url}/v1/auth/check`, { headers: { 'x-api-key': testKey } })
  expect(await first.json()).toMatchObject({ permissions: { manage: 'write', completions: 'write', operate: 'write' } })
})

test.each(['', '/usage'])('every active key may read itself: GET /v1/manage/apikey/self%s', async (what) => {
  for (const { name, headers, state, permissions } of askers) {
    const read = (id: string) => fetch(`${router.url}/v1/manage/apikey/${id}${what}`, { headers })
    const response = await read('self')
    if (state !== 'active') {
      expect([name, response.status]).toEqual([name, state === 'missing' ? 401 : 403])
      continue
    }
    expect([name, response.status]).toEqual([name, 200])
    const check = await fetch(`${router.url}/v1/auth/check`, { headers })
    const { key_id: id } = (await check.json()) as { key_id: string }
    expect([name, (await read(id)).status]).toEqual([name, 200])
    const limitAndSpend = { monthly_limit: 0, monthly_spend: expect.any(Number) }
    if (what === '') expect(await response.json()).toMatchObject({ id, permissions, ...limitAndSpend })
    expect([name, (await read(made.KEY ?? '')).status]).toEqual([name, permissions?.manage === 'none' ? 403 : 200])
  }
})

describe('a key and one that may more than itself', () => {
  const rank = (level: Level) => levels.indexOf(level)
  const mayMore = (one: Permissions, other: Permissions) => areas.some((area) => rank(one[area]) > rank(other[area]))
  const managers = () =>
    askers.filter(({ headers, permissions }) => permissions?.manage === 'write' && 'x-api-key' in headers) as (Asker & {
      permissions: Permissions
    })[]
  const ask = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const response = await fetch(`${router.url}/v1/manage${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, text: await response.text() }
  }

  test('it is not made, whatever the permissions of both', slow, async () => {
    for (const { name, headers, permissions } of managers())
      for (const wanted of everyPermissions) {
        const { status, text } = await ask('POST', '/apikey', headers, { name: 'made', permissions: wanted })
        const label = `${name} makes ${JSON.stringify(wanted)}`
        expect([label, status]).toEqual([label, mayMore(wanted, permissions) ? 403 : 201])
        if (status === 403) expect(text).toMatch(/with more permissions than its own: the new one would have \w+: \w+/)
      }
  })

  test('a key that is made without saying what it may do may call as far as its maker', async () => {
    for (const { headers, permissions } of managers()) {
      const { text } = await ask('POST', '/apikey', headers, { name: 'plain' })
      const { body } = await manage.get(`/apikey/${JSON.parse(text).api_key_id}`)
      expect(body.permissions).toEqual({ manage: 'none', completions: permissions.completions, operate: 'none' })
    }
  })

  const changes: [string, string, object?][] = [
    ['POST', '/limit', { monthly_limit: 1 }],
    ['POST', '/label', { labels: {} }],
    ['POST', '/expiry', { expires_at: null }],
    ['POST', '/limits', { concurrent_calls: 1 }],
    ['POST', '/access', { models: [] }],
    ['POST', '/group', { group_id: null }],
    ['POST', '/rotate'],
    ['DELETE', ''],
  ]

  testEach(changes, { slowIf: ([, what]) => what !== '/rotate' && what !== '' })(
    '%s /apikey/{id}%s: only of one that may no more',
    async (method, what, body) => {
      for (const { name, headers, permissions } of managers())
        for (const target of everyPermissions) {
          if (!mayMore(target, permissions) && method === 'DELETE') continue
          // The whole table for one change; for the others what is one level above in one area.
          const distance = areas.reduce(
            (sum, area) => sum + Math.max(0, rank(target[area]) - rank(permissions[area])),
            0,
          )
          if (what !== '/limits' && distance !== 1) continue
          const id = targets.get(JSON.stringify(target)) as string
          const { body: before } = await manage.get(`/apikey/${id}`)
          const { status, text } = await ask(method, `/apikey/${id}${what}`, headers, body)
          const label = `${name} changes ${JSON.stringify(target)}`
          expect([label, status]).toEqual([label, mayMore(target, permissions) ? 403 : 200])
          if (status !== 403) continue
          expect(text).toMatch(/with more permissions than its own: that one has \w+: \w+/)
          expect((await manage.get(`/apikey/${id}`)).body).toEqual(before)
        }
    },
  )

  test('a group that it is in is not limited or deleted, and it is not revoked with it', async () => {
    const { body } = await manage.post('/group', { name: 'of one that may more', monthly_limit: 5 })
    const path = `/group/${body.group_id}`
    await manage.newKey({ group_id: body.group_id, permissions: { operate: 'read' } })
    const [weak] = managers().filter(({ permissions }) => permissions.operate === 'none')
    const before = (await manage.get('/audit?limit=1')).text
    for (const [method, at, sent] of [
      ['POST', `${path}/limit`, { monthly_limit: 0 }],
      ['DELETE', `${path}?keys=keep`, undefined],
      ['DELETE', `${path}?keys=revoke`, undefined],
    ] as const) {
      const { status, text } = await ask(method, at, weak?.headers ?? {}, sent)
      expect([at, status, text]).toEqual([at, 403, expect.stringContaining('a key of this group has')])
    }
    expect((await manage.get('/audit?limit=1')).text).toBe(before)
    expect((await manage.delete(`${path}?keys=revoke`)).status).toBe(204)
  })

  /** Ids of keys by their permissions. */
  const targets = new Map<string, string>()
  beforeAll(async () => {
    for (const permissions of everyPermissions)
      targets.set(JSON.stringify(permissions), (await manage.newKey({ permissions })).id)
  })
})
