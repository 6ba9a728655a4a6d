import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { limit } from '../helpers/time.ts'
import { administration, type ManageReply } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>
/** A key that may do all in another organization. */
let stranger: string

beforeAll(async () => {
  router = await testRouter()
  manage = administration(router)
  stranger = await strangerIn(router)
})
afterAll(() => router.end())

async function strangerIn({ folder }: TestRouter, name = 'elsewhere'): Promise<string> {
  const store = await openStore(`sqlite:${folder}/data/router.sqlite`)
  const secret = newSecret()
  const { id } = await store.organizations.create(name)
  await store.keys.create({
    ...storedSecret(secret),
    organization: id,
    name: 'stranger',
    permissions: { manage: 'write', completions: 'write', operate: 'write' },
    createdBy: { id: 'test', email: '' },
  })
  await store.close()
  return secret
}

const messageOf = ({ body }: ManageReply) => (body.error as { message: string }).message
const ask = { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] }

describe('the organization', () => {
  test('is its name and its balance', async () => {
    const { status, body } = await manage.get('/org', stranger)
    expect({ status, body }).toEqual({ status: 200, body: { name: 'elsewhere', balance: 0 } })
  })

  test('credit is added and taken back, exact to the nano-dollar', async () => {
    const credited = await manage.post('/org/credit', { amount: 10.000000001, note: 'invoice 7' }, stranger)
    expect({ status: credited.status, body: credited.body }).toEqual({
      status: 200,
      body: { name: 'elsewhere', balance: 10.000000001 },
    })
    expect((await manage.post('/org/credit', { amount: -0.000000001 }, stranger)).body.balance).toBe(10)
    expect((await manage.get('/org')).body.balance).toBe(0)
  })

  describe('credit with an idempotency key', () => {
    let secret: string
    beforeAll(async () => {
      secret = await strangerIn(router, 'credited')
    })
    const balance = async () => (await manage.get('/org', secret)).body.balance
    const credit = (body: object, key?: string, by = secret) =>
      manage.post('/org/credit', body, by, key === undefined ? {} : { 'idempotency-key': key })

    test('is given once: the same request gets the same answer, also when both come at once', async () => {
      const before = Number(await balance())
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => credit({ amount: 2, note: 'invoice 8' }, 'order-8')),
      )
      await credit({ amount: 1 })
      answers.push(await credit({ note: 'invoice 8', amount: 2.0 }, 'order-8'))
      const first = { name: 'credited', balance: before + 2 }
      expect(answers.map(({ status, body }) => ({ status, body }))).toEqual(
        answers.map(() => ({ status: 200, body: first })),
      )
      expect(await balance()).toBe(before + 3)
      const { body } = await manage.get('/audit?limit=2', secret)
      expect(body.entries).toMatchObject([{ after: { amount: 1 } }, { after: { amount: 2, note: 'invoice 8' } }])
    })

    test.each([{ amount: 5, note: 'again' }, { amount: 4 }, { amount: 4, note: 'a note' }])(
      'and another body, %j → 409, and nothing is given',
      async (body) => {
        expect((await credit({ amount: 4, note: 'again' }, 'order-9')).status).toBe(200)
        const before = await balance()
        const refused = await credit(body, 'order-9')
        expect(refused).toMatchObject({
          status: 409,
          body: { error: { code: 'idempotency_conflict', param: 'Idempotency-Key', origin: 'router' } },
        })
        expect(await balance()).toBe(before)
      },
    )

    test('that failed is not remembered: the right request may follow', async () => {
      expect((await credit({ amount: 0 }, 'order-10')).status).toBe(400)
      expect((await credit({ amount: -4 }, 'order-10')).status).toBe(200)
    })

    test('is another one in another organization', async () => {
      expect((await credit({ amount: 1 }, 'shared')).body.name).toBe('credited')
      const other = await strangerIn(router, 'also credited')
      expect((await credit({ amount: 2 }, 'shared', other)).body).toEqual({ name: 'also credited', balance: 2 })
    })

    test.each(['', ' ', 'two words', 'x'.repeat(256), 'ü'])('%j is no key → 400', async (key) => {
      expect(await credit({ amount: 1 }, key)).toMatchObject({
        status: 400,
        body: { error: { param: 'Idempotency-Key' } },
      })
    })

    test('is remembered by the next process', async () => {
      const files = { ...simulatorOnly }
      const first = await testRouter({ files })
      const { folder } = first
      const url = `sqlite:${folder}/data/router.sqlite`
      const once = await administration(first).post('/org/credit', { amount: 7 }, testKey, { 'idempotency-key': 'k' })
      await first.stop(1_000)
      const second = await testRouter({ files, settings: { store: { url } } })
      const again = await administration(second).post('/org/credit', { amount: 7 }, testKey, { 'idempotency-key': 'k' })
      expect([again.status, again.text]).toEqual([200, once.text])
      expect((await administration(second).get('/org')).body.balance).toBe(7)
      await second.end()
      await first.end()
    })
  })

  test.each<[unknown, RegExp]>([
    [{}, /'amount' is missing/],
    [{ amount: 0 }, /'amount' must not be 0/],
    [{ amount: '5' }, /'amount' must be a number of USD/],
    [{ amount: 1e300 }, /at most 9000000/],
    [{ amount: 1, memo: 'x' }, /no field 'memo'/],
    [{ amount: 1, note: 7 }, /'note' must be a string/],
  ])('credit %j → 400', async (body, message) => {
    const answer = await manage.post('/org/credit', body)
    expect(messageOf(answer)).toMatch(message)
    expect(answer.status).toBe(400)
  })

  test('its balance is a limit or not, as is said', async () => {
    expect((await manage.get('/org/balance')).body).toEqual({ enforces_balance: false })
    const on = await manage.put('/org/balance', { enforces_balance: true })
    expect({ status: on.status, body: on.body }).toEqual({ status: 200, body: { enforces_balance: true } })
    expect((await router.call('/v1/chat/completions', ask)).status).toBe(402)
    expect((await manage.get('/audit?limit=1')).body.entries).toMatchObject([
      { action: 'organization.balance', before: { enforces_balance: false }, after: { enforces_balance: true } },
    ])
    expect((await manage.put('/org/balance', { enforces_balance: false })).body).toEqual({ enforces_balance: false })
    expect((await router.call('/v1/chat/completions', ask)).status).toBe(200)
  })

  test('approves models; null are all', async () => {
    expect((await manage.get('/org/models', stranger)).body).toEqual({ approved_models: null })
    const approved = { approved_models: ['demo/echo', 'demo/*'] }
    expect((await manage.put('/org/models', approved, stranger)).body).toEqual(approved)
    expect((await manage.get('/org/models', stranger)).body).toEqual(approved)
    expect((await manage.get('/org/models')).body).toEqual({ approved_models: null })
    await manage.put('/org/models', { approved_models: null }, stranger)
    expect((await manage.get('/org/models', stranger)).body).toEqual({ approved_models: null })
  })

  test('sets rules for its data: those that are named, null removes one', async () => {
    const none = { geolocation: null, data_retention: null, data_used_for_training: null }
    expect((await manage.get('/org/rules', stranger)).body).toEqual(none)
    const rules = { geolocation: ['eu', 'us'], data_retention: false }
    const { status, body } = await manage.put('/org/rules', rules, stranger)
    expect({ status, body }).toEqual({ status: 200, body: { ...none, ...rules } })
    expect((await manage.put('/org/rules', { data_used_for_training: false }, stranger)).body).toEqual({
      ...rules,
      data_used_for_training: false,
    })
    const without = { geolocation: null, data_retention: null }
    expect((await manage.put('/org/rules', without, stranger)).body).toEqual({ ...none, data_used_for_training: false })
    expect((await manage.put('/org/rules', { data_used_for_training: null }, stranger)).body).toEqual(none)
  })

  test('sets limits: those that are named, null and 0 remove one', async () => {
    const limits = { requests_per_minute: 100, tokens_per_minute: null, concurrent_calls: null }
    expect((await manage.put('/org/limits', { requests_per_minute: 100, concurrent_calls: 0 }, stranger)).body).toEqual(
      limits,
    )
    expect((await manage.get('/org/limits', stranger)).body).toEqual(limits)
    const both = { ...limits, tokens_per_minute: 7 }
    expect((await manage.put('/org/limits', { tokens_per_minute: 7 }, stranger)).body).toEqual(both)
    expect((await manage.put('/org/limits', { requests_per_minute: null }, stranger)).body).toEqual({
      ...both,
      requests_per_minute: null,
    })
    await manage.put('/org/limits', { tokens_per_minute: 0 }, stranger)
  })

  test('of two changes at once, of different limits and rules, both are made', async () => {
    const limits = { requests_per_minute: 3, tokens_per_minute: 4, concurrent_calls: 5 }
    const rules = { geolocation: ['eu'], data_retention: false, data_used_for_training: false }
    const each = (values: object) => Object.entries(values).map(([name, value]) => ({ [name]: value }))
    await Promise.all([
      ...each(limits).map((body) => manage.put('/org/limits', body, stranger)),
      ...each(rules).map((body) => manage.put('/org/rules', body, stranger)),
    ])
    expect((await manage.get('/org/limits', stranger)).body).toEqual(limits)
    expect((await manage.get('/org/rules', stranger)).body).toEqual(rules)
    const without = (values: object) => Object.fromEntries(Object.keys(values).map((name) => [name, null]))
    await manage.put('/org/limits', without(limits), stranger)
    await manage.put('/org/rules', without(rules), stranger)
  })

  test.each(['limits', 'rules'])('an empty body of %s changes nothing: 400 with the fields', async (what) => {
    const set = what === 'limits' ? { concurrent_calls: 9 } : { data_retention: false }
    await manage.put(`/org/${what}`, set, stranger)
    const answer = await manage.put(`/org/${what}`, {}, stranger)
    expect(messageOf(answer)).toMatch(/^The body is empty\. .*(?:concurrent_calls|data_retention)/)
    expect(answer.status).toBe(400)
    expect((await manage.get(`/org/${what}`, stranger)).body).toMatchObject(set)
    const [name = ''] = Object.keys(set)
    await manage.put(`/org/${what}`, { [name]: null }, stranger)
  })

  test.each<[string, unknown, RegExp]>([
    ['models', {}, /'approved_models' is missing/],
    ['models', { approved_models: 'demo/echo' }, /'approved_models' must be an array/],
    ['models', { approved_models: ['demo/*', 'demo/ehco'] }, /'approved_models\[1\]'.*`demo\/echo`/],
    ['models', { approved_models: ['openay/*'] }, /`openai\/\*`/],
    ['models', { approved: null }, /no field 'approved'/],
    ['balance', {}, /'enforces_balance' is missing/],
    ['balance', { enforces_balance: 'on' }, /'enforces_balance' must be true or false/],
    ['rules', { geolocation: 'eu' }, /'geolocation' must be an array/],
    ['rules', { geolocation: [] }, /'geolocation' is empty/],
    [
      'rules',
      { geolocation: ['us', 'EU'] },
      /'geolocation\[1\]' names a region where no models are hosted: 'EU'; known regions: .*\beu, global,.* us/,
    ],
    ['rules', { data_retention: true }, /'data_retention' must be false, or null/],
    ['rules', { data_retentoin: false }, /`data_retention`/],
    ['limits', { requests_per_minute: -1 }, /'requests_per_minute' must be a whole number/],
    ['limits', { requests: 1 }, /no field 'requests'/],
  ])('PUT %s %j → 400', async (what, body, message) => {
    const answer = await manage.put(`/org/${what}`, body)
    expect(messageOf(answer)).toMatch(message)
    expect(answer.status).toBe(400)
  })
})

describe('groups', () => {
  test('are made, read, listed, limited and deleted; their keys stay', async () => {
    const { status, body } = await manage.post('/group', { name: 'search', monthly_limit: 50 })
    expect({ status, body }).toEqual({ status: 201, body: { group_id: expect.any(String) } })
    const id = String(body.group_id)
    const record = { id, name: 'search', monthly_limit: 50, monthly_spend: 0, created_at: expect.any(String) }
    expect((await manage.get(`/group/${id}`)).body).toEqual(record)
    expect((await manage.get('/group')).body).toEqual({ groups: [record] })
    expect((await manage.post(`/group/${id}/limit`, { monthly_limit: 0 })).body).toEqual({
      ...record,
      monthly_limit: 0,
    })
    const key = await manage.newKey({ group_id: id })
    expect((await manage.delete(`/group/${id}`)).status).toBe(204)
    expect((await manage.get(`/group/${id}`)).status).toBe(404)
    expect((await manage.get(`/apikey/${key.id}`)).body.group).toBeNull()
  })

  test('with a limit are deleted only when it is said what becomes of their keys', async () => {
    const limited = async (name: string) => {
      const { body } = await manage.post('/group', { name, monthly_limit: 5 })
      const key = await manage.newKey({ group_id: body.group_id })
      return { path: `/group/${body.group_id}`, key }
    }
    const { path, key } = await limited('limited')
    const refused = await manage.delete(path)
    expect(messageOf(refused)).toMatch(/has a limit.*'keys' to keep .*to revoke/)
    expect(refused).toMatchObject({ status: 400, body: { error: { param: 'keys' } } })
    for (const query of ['keys=drop', 'keys=', 'keys=keep&keys=revoke', 'key=keep'])
      expect((await manage.delete(`${path}?${query}`)).status, query).toBe(400)
    expect((await manage.get(path)).status).toBe(200)
    expect((await manage.delete(`${path}?keys=keep`)).status).toBe(204)
    expect((await manage.get(`/apikey/${key.id}`)).body).toMatchObject({ state: 'active', group: null })

    const other = await limited('revoked')
    expect((await manage.delete(`${other.path}?keys=revoke`)).status).toBe(204)
    expect((await manage.get(`/apikey/${other.key.id}`)).body).toMatchObject({ state: 'revoked', group: null })
    expect((await manage.get('/apikey/self', other.key.secret)).status).toBe(403)
    const { body } = await manage.get('/audit?limit=2')
    expect(body.entries).toMatchObject([
      { action: 'group.delete', subject: other.path.slice('/group/'.length) },
      { action: 'apikey.revoke', subject: other.key.id, before: { state: 'active' }, after: { state: 'revoked' } },
    ])
  })

  test('of two deletions at once, one that keeps the keys and one that revokes them, one is made', async () => {
    for (let round = 0; round < 3; round++) {
      const { body } = await manage.post('/group', { name: `at once ${round}`, monthly_limit: 5 })
      const path = `/group/${body.group_id}`
      const key = await manage.newKey({ group_id: body.group_id })
      const [keep, revoke] = await Promise.all([
        manage.delete(`${path}?keys=keep`),
        manage.delete(`${path}?keys=revoke`),
      ])
      expect([keep.status, revoke.status].sort()).toEqual([204, 404])
      const state = keep.status === 204 ? 'active' : 'revoked'
      expect((await manage.get(`/apikey/${key.id}`)).body).toMatchObject({ state, group: null })
    }
  })

  test('do not take the last key that may manage with them', async () => {
    const { body } = await manage.post('/group', { name: 'of all' })
    const self = (await manage.get('/apikey/self', stranger)).body.id
    const { body: group } = await manage.post('/group', { name: 'of the last key' }, stranger)
    await manage.post(`/apikey/${self}/group`, { group_id: group.group_id }, stranger)
    expect(messageOf(await manage.delete(`/group/${group.group_id}?keys=revoke`, stranger))).toMatch(/last active key/)
    expect((await manage.get(`/group/${group.group_id}`, stranger)).status).toBe(200)
    expect((await manage.delete(`/group/${group.group_id}?keys=keep`, stranger)).status).toBe(204)
    expect((await manage.delete(`/group/${body.group_id}?keys=revoke`)).status).toBe(204)
  })

  test('a name is taken once, in one organization', async () => {
    await manage.post('/group', { name: 'twice' })
    const second = await manage.post('/group', { name: 'twice' })
    expect(messageOf(second)).toMatch(/already a group named 'twice'/)
    expect(second).toMatchObject({ status: 400, body: { error: { param: 'name' } } })
    expect((await manage.post('/group', { name: 'twice' }, stranger)).status).toBe(201)
  })
})

describe('aliases and policies', () => {
  test('a policy is made, changed, listed and deleted', async () => {
    const made = { id: 'fast', description: 'what is quick', targets: ['demo/echo'] }
    const { status, body } = await manage.post('/policy', made)
    expect({ status, body }).toEqual({ status: 201, body: made })
    expect((await manage.get('/policy/fast')).body).toEqual(made)
    const changed = { id: 'fast', description: '', targets: ['demo/echo', 'demo/thinker'] }
    const put = await manage.put('/policy/fast', { targets: changed.targets })
    expect({ status: put.status, body: put.body }).toEqual({
      status: 200,
      body: { ...changed, description: 'what is quick' },
    })
    expect((await manage.get('/policy/fast')).body).toEqual(put.body)
    expect((await manage.put('/policy/fast', { targets: changed.targets, description: null })).body).toEqual(changed)
    expect((await manage.put('/policy/new', { targets: ['demo/echo'] })).status).toBe(201)
    expect((await manage.get('/policy')).body).toEqual({
      policies: [changed, { ...changed, id: 'new', targets: ['demo/echo'] }],
    })
    expect((await manage.delete('/policy/new')).status).toBe(204)
    expect((await manage.get('/policy/new')).status).toBe(404)
    expect(messageOf(await manage.post('/policy', made))).toMatch(/already a policy 'fast'; PUT/)
  })

  test('a policy says how its targets are asked; it is shown as it was written, and a PUT replaces it', async () => {
    const made = {
      id: 'ruled',
      description: '',
      targets: ['demo/echo', { target: 'demo/thinker', weight: 2.5 }],
      sort: 'weighted',
      sticky: 'session',
      retries: 0,
      first_event: '1.5s',
      total: '60s',
      retry_after: '0s',
      on_cut: 'hold',
      on_blocked: 'next',
    }
    expect(await manage.post('/policy', made)).toMatchObject({ status: 201, body: made })
    expect((await manage.get('/policy/ruled')).body).toEqual(made)
    expect((await manage.get('/policy')).body.policies).toContainEqual(made)
    const served = await router.call('/v1/chat/completions', { ...ask, model: 'policy/ruled' })
    expect(['demo/echo', 'demo/thinker']).toContain(served.headers.get('x-router-model'))
    const changed = { targets: [{ target: 'demo/thinker' }], total: '1m', sort: null }
    const put = await manage.put('/policy/ruled', changed)
    expect(put.body).toEqual({ id: 'ruled', description: '', targets: changed.targets, total: '1m' })
    expect((await manage.get('/policy/ruled')).body).toEqual(put.body)
    const { entries } = (await manage.get('/audit')).body as { entries: object[] }
    expect(entries[0]).toMatchObject({ action: 'policy.change', subject: 'ruled', before: made, after: put.body })
    expect((await manage.delete('/policy/ruled')).status).toBe(204)
  })

  test.each<[object, string, string]>([
    [
      { sort: 'fastest' },
      'sort',
      "'sort' must be one of 'order', 'weighted', 'price', 'latency', 'throughput', not 'fastest'.",
    ],
    [{ sticky: true }, 'sticky', "'sticky' must be one of 'none', 'session', 'user', 'hash', 'cache', not true."],
    [{ retries: 6 }, 'retries', "'retries' must be a whole number from 0 to 5, not 6."],
    [
      { first_event: 10 },
      'first_event',
      "'first_event' must be a time such as 500ms, 10s or 5m, more than 0 and at most 24h, not 10.",
    ],
    [
      { total: '0s' },
      'total',
      "'total' must be a time such as 500ms, 10s or 5m, more than 0 and at most 24h, not '0s'.",
    ],
    [
      { total: '1d' },
      'total',
      "'total' must be a time such as 500ms, 10s or 5m, more than 0 and at most 24h, not '1d'.",
    ],
    [
      { retry_after: '25h' },
      'retry_after',
      "'retry_after' must be a time such as 500ms, 10s or 5m, at most 24h, not '25h'.",
    ],
    [{ on_cut: 'resume' }, 'on_cut', "'on_cut' must be one of 'error', 'hold', 'continue', 'restart', not 'resume'."],
    [{ on_blocked: 'skip' }, 'on_blocked', "'on_blocked' must be one of 'error', 'next', not 'skip'."],
    [{ on_block: 'next' }, 'on_block', "There is no field 'on_block' here; did you mean `on_blocked`?"],
    [
      { targets: [{ target: 'demo/echo', weight: -1 }] },
      'targets[0].weight',
      "'targets[0].weight' must be a number from 0 to 1000000, not -1.",
    ],
    [
      { targets: [{ target: 'demo/echo', share: 1 }] },
      'targets[0].share',
      "There is no field 'targets[0].share' here; known: target, weight.",
    ],
    [
      { targets: [{ weight: 1 }] },
      'targets[0].target',
      "'targets[0].target' is missing: it must be the id of a model.",
    ],
    [
      { targets: [7] },
      'targets[0]',
      "'targets[0]' must be the id of a model, or an object of a `target` and its `weight`, not 7.",
    ],
    [{ targets: ['demo/echo', { target: 'demo/echo' }] }, 'targets', "'targets[1]' is a duplicate: 'demo/echo'."],
    [
      { targets: [{ target: 'demo/echo', weight: 0 }] },
      'targets',
      "All weights in 'targets' are 0; one must be above 0.",
    ],
  ])('a policy with %j → 400 that names the field', async (wrong, param, message) => {
    const answer = await manage.put('/policy/wrong', { targets: ['demo/echo'], ...wrong })
    expect(answer).toMatchObject({ status: 400, body: { error: { param, message } } })
    expect((await manage.get('/policy/wrong')).status).toBe(404)
  })

  test('an alias is made, changed, called, listed and deleted', async () => {
    await manage.put('/policy/led-to', { targets: ['demo/echo'] })
    expect((await manage.post('/alias', { name: 'chatty', target: 'demo/echo' })).status).toBe(201)
    const { status, body } = await manage.post('/alias', { name: 'chatty', target: 'led-to' })
    expect({ status, body }).toEqual({ status: 200, body: { name: 'chatty', target: 'led-to' } })
    expect((await manage.get('/alias/chatty')).body).toEqual({ name: 'chatty', target: 'led-to' })
    expect((await manage.get('/alias')).body).toEqual({ aliases: [{ name: 'chatty', target: 'led-to' }] })
    expect(messageOf(await manage.delete('/policy/led-to'))).toMatch(/alias 'chatty' points to this policy/)
    expect((await manage.delete('/alias/chatty')).status).toBe(204)
    expect((await manage.delete('/alias/chatty')).status).toBe(404)
    expect((await manage.delete('/policy/led-to')).status).toBe(204)
  })

  test('an alias may replace a model: the slash of its name may be plain or encoded', async () => {
    const alias = { name: 'demo/thinker', target: 'demo/echo' }
    expect((await manage.post('/alias', alias)).body).toEqual(alias)
    const served = await router.call('/v1/chat/completions', { ...ask, model: 'demo/thinker' })
    expect(served.headers.get('x-router-model')).toBe('demo/echo')
    expect((await manage.get('/alias/demo/thinker')).body).toEqual(alias)
    expect((await manage.get('/alias/demo%2Fthinker')).body).toEqual(alias)
    expect((await manage.delete('/alias/demo%2Fthinker')).status).toBe(204)
    expect(messageOf(await manage.get('/alias/demo/thinker'))).toMatch(/no alias 'demo\/thinker'/)
    const after = await router.call('/v1/chat/completions', { ...ask, model: 'demo/thinker' })
    expect(after.headers.get('x-router-model')).toBe('demo/thinker')
  })

  test.each<[string, unknown, RegExp]>([
    ['alias', { name: 'x' }, /'target' is missing/],
    ['alias', { name: 'a b', target: 'demo/echo' }, /'name' must have/],
    ['alias', { name: 'policy/b', target: 'demo/echo' }, /'name' must not begin with `policy\/`/],
    ['alias', { name: 'demo/*', target: 'demo/echo' }, /'name' must have/],
    ['alias', { name: 7, target: 'demo/echo' }, /'name' must be a string/],
    ['alias', { name: 'x', target: 'demo/ecko' }, /'target' names an unknown model.*`demo\/echo`/],
    ['alias', { name: 'x', target: 'nowhere' }, /'target' names an unknown model or policy/],
    ['alias', { name: 'x', target: 'x' }, /alias itself/],
    ['alias', { name: 'x', targett: 'demo/echo' }, /`target`/],
    ['policy', { id: 'x', targets: [] }, /'targets' has 0 models/],
    ['policy', { id: 'x', targets: ['demo/echo', 'demo/echo'] }, /duplicate/],
    ['policy', { id: 'x', targets: ['demo/none'] }, /'targets\[0\]' names an unknown model/],
    ['policy', { id: 'x/y', targets: ['demo/echo'] }, /'id' must have.*'x\/y'/],
    ['policy', { targets: ['demo/echo'] }, /'id' is missing/],
  ])('POST %s %j → 400', async (what, body, message) => {
    const answer = await manage.post(`/${what}`, body)
    expect(messageOf(answer)).toMatch(message)
    expect(answer.status).toBe(400)
  })

  test('a name that promises the EU by its suffix must have a target there, as in the configuration', async () => {
    const [here, elsewhere] = ['mistral/mistral-large-2512', 'demo/echo']
    const promise = { code: 'invalid_request', param: 'targets', message: expect.stringContaining("'@eu'") }
    const made = await manage.post('/policy', { id: 'p@eu', targets: [elsewhere] })
    expect(made).toMatchObject({ status: 400, body: { error: promise } })
    expect((await manage.put('/policy/p@eu', { targets: [elsewhere] })).status).toBe(400)
    expect((await manage.put('/policy/p@eu', { targets: [elsewhere, here] })).status).toBe(201)
    expect((await manage.put('/policy/p@eu', { targets: [elsewhere] })).status).toBe(400)
    expect((await manage.put('/policy/world', { targets: [elsewhere] })).status).toBe(201)
    for (const target of [elsewhere, 'world', 'policy/world']) {
      const refused = await manage.post('/alias', { name: 'a@eu', target })
      expect(refused).toMatchObject({ status: 400, body: { error: { ...promise, param: 'target' } } })
    }
    for (const target of [here, 'p@eu'])
      expect((await manage.post('/alias', { name: 'a@eu', target })).status).toBeLessThan(202)
    for (const path of ['/alias/a@eu', '/policy/p@eu', '/policy/world'])
      expect((await manage.delete(path)).status).toBe(204)
  })

  test('a policy leads to models of one API', async () => {
    const [talks, embeds] = ['mistral/mistral-large-2512', 'mistral/mistral-embed']
    const refused = await manage.post('/policy', { id: 'mixed', targets: [talks, embeds] })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_request', param: 'targets' } } })
    expect(messageOf(refused)).toBe(
      `'targets' must be models of one API: '${talks}' has the API \`chat\`, and '${embeds}' has \`embedding\`.`,
    )
    expect((await manage.put('/policy/mixed', { targets: [talks, embeds] })).status).toBe(400)
    expect((await manage.put('/policy/vectors', { targets: [embeds, 'mistral/codestral-embed'] })).status).toBe(201)
    expect((await manage.delete('/policy/vectors')).status).toBe(204)
  })

  test('a name that is far too long is refused at once', async () => {
    const begun = performance.now()
    const answer = await manage.post('/alias', { name: 'x', target: `demo/${'a'.repeat(1_000_000)}` })
    expect(messageOf(answer).length).toBeLessThan(300)
    expect(answer.status).toBe(400)
    expect(performance.now() - begun).toBeLessThan(limit(2_000))
  })

  test('the id of a policy cannot be changed', async () => {
    expect(messageOf(await manage.put('/policy/one', { id: 'two', targets: ['demo/echo'] }))).toMatch(/keeps its id/)
  })
})

describe('resources of another organization', () => {
  test('is not there: 404', async () => {
    const { id } = await manage.newKey()
    const { body: group } = await manage.post('/group', { name: 'ours' })
    await manage.put('/policy/ours', { targets: ['demo/echo'] })
    await manage.post('/alias', { name: 'ours', target: 'demo/echo' })
    const paths = [`/apikey/${id}`, `/group/${group.group_id}`, '/policy/ours', '/alias/ours']
    for (const path of paths) {
      expect((await manage.get(path, stranger)).status, path).toBe(404)
      expect((await manage.delete(path, stranger)).status, path).toBe(404)
      expect((await manage.get(path)).status, path).toBe(200)
    }
    for (const what of ['limit', 'label', 'expiry', 'rotate', 'limits', 'access', 'group']) {
      expect((await manage.post(`/apikey/${id}/${what}`, {}, stranger)).status, what).toBe(404)
    }
    const foreign = await manage.post('/apikey', { name: 'x', group_id: group.group_id }, stranger)
    expect(messageOf(foreign)).toMatch(/no group/)
    expect((await manage.get('/apikey', stranger)).text).not.toContain(id)
    expect((await manage.get('/audit', stranger)).text).not.toContain(id)
  })
})

describe('the log of changes', () => {
  test('has actor, action, before and after of every change, the newest first, and no secret', async () => {
    const self = (await manage.get('/apikey/self')).body.id
    const { id, secret } = await manage.newKey({ name: 'logged', monthly_limit: 1 })
    await manage.post(`/apikey/${id}/limit`, { monthly_limit: 2 })
    const rotated = String((await manage.post(`/apikey/${id}/rotate`)).body.api_key)
    await manage.post(`/apikey/${id}/limit`, { monthly_limit: -2 })
    await manage.delete(`/apikey/${id}`)
    const { status, text, body } = await manage.get('/audit?limit=4')
    const entry = { id: expect.any(String), at: expect.stringMatching(/Z$/), actor: self, subject: id }
    expect(status).toBe(200)
    expect(body.entries).toEqual([
      { ...entry, action: 'apikey.delete', before: expect.objectContaining({ monthly_limit: 2 }), after: null },
      { ...entry, action: 'apikey.rotate', before: null, after: null },
      { ...entry, action: 'apikey.limit', before: { monthly_limit: 1 }, after: { monthly_limit: 2 } },
      { ...entry, action: 'apikey.create', before: null, after: expect.objectContaining({ name: 'logged' }) },
    ])
    for (const hidden of [secret, rotated, secret.slice(0, 8), testKey]) expect(text).not.toContain(hidden)
    const next = await manage.get(`/audit?limit=1&cursor=${body.next_cursor}`)
    expect(next.status).toBe(200)
    expect(text).not.toContain((next.body.entries as { id: string }[])[0]?.id)
  })

  test('every kind of change is in it', async () => {
    const actions = new Set(
      ((await manage.get('/audit')).body.entries as { action: string }[]).map((one) => one.action),
    )
    const theirs = (await manage.get('/audit', stranger)).body.entries as { action: string }[]
    expect([...new Set(theirs.map(({ action }) => action).reverse())].slice(0, 5)).toEqual([
      'organization.credit',
      'organization.models',
      'organization.rules',
      'organization.limits',
      'group.create',
    ])
    expect([...actions].sort()).toEqual([
      'alias.change',
      'alias.create',
      'alias.delete',
      'apikey.create',
      'apikey.delete',
      'apikey.limit',
      'apikey.revoke',
      'apikey.rotate',
      'group.create',
      'group.delete',
      'group.limit',
      'organization.balance',
      'policy.change',
      'policy.create',
      'policy.delete',
    ])
  })
})

test('a method that a path does not support → 405 with those that it does; HEAD too', async () => {
  for (const [method, path, allowed] of [
    ['PUT', '/apikey', 'GET, HEAD, POST'],
    ['HEAD', '/apikey/self/rotate', 'POST'],
    ['PATCH', '/apikey/self', 'GET, HEAD, DELETE'],
    ['GET', '/apikey/self/rotate', 'POST'],
    ['POST', '/org', 'GET, HEAD'],
  ] as const) {
    const response = await fetch(`${router.url}/v1/manage${path}`, { method, headers: { 'x-api-key': testKey } })
    expect({ status: response.status, allow: response.headers.get('allow') }).toEqual({ status: 405, allow: allowed })
  }
})

test('a body that is too large → 413; without a key the body is not read', async () => {
  const small = await testRouter({ settings: { server: { host: '127.0.0.1', port: 0, body_limit: '1kb' } } })
  const at = administration(small)
  const large = { name: 'x'.repeat(2_000) }
  expect((await at.post('/group', large)).status).toBe(413)
  expect((await at.post('/group', large, '')).status).toBe(401)
  await small.end()
})

test('a path that there is not → 404', async () => {
  expect((await manage.get('/nothing')).body).toMatchObject({ error: { code: 'not_found', origin: 'router' } })
})

test('paths are case-sensitive: a path that a proxy blocks stays blocked', async () => {
  for (const path of ['/v1/Manage/org', '/V1/manage/org', '/v1/manage/ORG', '/v1/Models']) {
    expect((await fetch(`${router.url}${path}`, { headers: { 'x-api-key': testKey } })).status, path).toBe(404)
  }
})

test('a database that another process locks → 503, nothing is changed, and it ends by itself', async () => {
  const { default: Database } = await import('better-sqlite3')
  const other = new Database(`${router.folder}/data/router.sqlite`)
  other.exec('BEGIN IMMEDIATE')
  const locked = await manage.post('/group', { name: 'while locked' })
  other.exec('ROLLBACK')
  other.close()
  expect(locked).toMatchObject({ status: 503, body: { error: { code: 'unavailable', origin: 'router' } } })
  expect((await manage.get('/group')).text).not.toContain('while locked')
  expect((await manage.post('/group', { name: 'while locked' })).status).toBe(201)
})

describe('a management API with a port of its own', () => {
  test('is not started at the port of the server: the message has the remedy', async () => {
    const settings = { server: { port: 8_765 }, manage: { port: 8_765 } }
    await expect(testRouter({ settings })).rejects.toThrow(/manage\.port is 8765, .*write null/)
  })

  test('is there and not at the other port; calls are not there; both are closed', async () => {
    const own = await testRouter({ settings: { manage: { port: 0 } } })
    const at = administration(own)
    const headers = { 'x-api-key': testKey }
    expect(own.manageUrl).not.toBe(own.url)
    expect((await at.get('/org')).body).toEqual({ name: 'default', balance: 0 })
    expect((await fetch(`${own.manageUrl}/health`)).status).toBe(200)
    expect((await fetch(`${own.manageUrl}/ready`)).status).toBe(200)
    expect((await fetch(`${own.url}/v1/manage/org`, { headers })).status).toBe(404)
    for (const url of [own.url, own.manageUrl]) {
      expect((await fetch(`${url}/v1/auth/check`, { headers })).status).toBe(200)
      expect((await fetch(`${url}/v1/models`, { headers })).status).toBe(200)
    }
    const elsewhere = {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(ask),
    }
    expect((await fetch(`${own.manageUrl}/v1/chat/completions`, elsewhere)).status).toBe(404)
    expect((await own.call('/v1/chat/completions', ask)).status).toBe(200)
    await own.end()
    await expect(fetch(`${own.url}/health`)).rejects.toThrow()
    await expect(fetch(`${own.manageUrl}/health`)).rejects.toThrow()
  })
})
