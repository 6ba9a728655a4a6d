import { afterAll, describe, expect, test } from 'vitest'
import { answerJson } from '../../helpers/provider.ts'
import { testKey } from '../../helpers/router.ts'
import { eventually } from '../../helpers/time.ts'
import { newKey } from '../money/budget-world.ts'
import { type PluginWorld, pluginWorld, says } from './plugin-world.ts'

const open: PluginWorld[] = []
afterAll(async () => {
  for (const world of open) await world.end()
})
async function worldOf(...given: Parameters<typeof pluginWorld>): Promise<PluginWorld> {
  const world = await pluginWorld(...given)
  open.push(world)
  return world
}

const settings = { policies: { both: { targets: ['one/m1', 'two/m1'] } } }

describe('hooks of one operation', () => {
  test('see its requests alone, after `request`, and change, refuse or answer them', async () => {
    const world = await worldOf({
      own: `return {
        request({ operation }) { note(['request', operation]) },
        chat(request) {
          note(['chat', request.chat.messages[0].parts[0].text])
          return { request: { ...request, chat: { ...request.chat, seed: 7 } }, headers: { 'x-own': 'yes' } }
        },
        embed: ({ fields }) => fields.input === 'no' ? new Refusal(403, 'No.') : undefined,
        record() {},
      }`,
    })
    const { headers, status } = await world.ask()
    expect([status, headers.get('x-own')]).toEqual([200, 'yes'])
    expect(world.providers.one.received[0]?.body.seed).toBe(7)
    const embed = async (input: string) =>
      (await world.router.call('/v1/embeddings', { model: 'one/vectors', input })).status
    expect([await embed('yes'), await embed('no')]).toEqual([200, 403])
    expect(world.notes).toEqual([
      ['request', 'chat'],
      ['chat', 'Hello'],
      ['request', 'embed'],
      ['request', 'embed'],
    ])
  })

  test('see conversations whose tokens are counted, and those that are compacted', async () => {
    const world = await worldOf({
      own: 'return { chat(request, { operation }) { note([request.operation, operation]) } }',
    })
    for (const path of ['/v1/responses/input_tokens', '/v1/responses/compact'])
      await world.router.call(path, { model: 'own/m', input: 'Hello' })
    expect(world.notes).toEqual([
      ['chat', 'count'],
      ['chat', 'compact'],
    ])
  })
})

test('a call has the names of its key and organization, and the labels of the key', async () => {
  const world = await worldOf({ own: 'return { request(_, { names, labels }) { note({ names, labels }) } }' })
  await world.ask()
  const [seen] = world.notes as [{ names: object; labels: object }]
  expect(seen).toEqual({
    names: { key: expect.any(String), organization: expect.any(String) },
    labels: expect.any(Object),
  })
})

describe('a send hook', () => {
  test('edits the body that the provider gets, one plugin after the other', async () => {
    const edits = (name: string) => `return { send(target, call, { body }) {
      note(Object.isFrozen(body) && Object.isFrozen(body.messages))
      return { headers: { 'x-${name}': target.id }, body: { ...body, ${name}: Object.keys(body).length } }
    } }`
    const world = await worldOf({ first: edits('first'), second: edits('second') })
    await world.ask({ seed: 7 })
    const { body, headers } = world.providers.one.received[0] ?? {}
    expect(body).toMatchObject({ seed: 7, first: expect.any(Number), second: body.first + 1 })
    expect(headers).toMatchObject({ 'x-first': 'one/m1', 'x-second': 'one/m1' })
    expect(world.notes).toEqual([true, true])
    await world.router.call('/v1/embeddings', { model: 'one/vectors', input: 'Hello' })
    expect(world.providers.one.received[1]?.body).toMatchObject({ input: 'Hello', first: expect.any(Number) })
  })

  test.each([
    ['model', { model: 'm2' }],
    ['length', { max_tokens: 100_000 }],
    ['number of answers', { n: 3 }],
    ['tools', { tools: [{ type: 'web_search' }] }],
    ['tier', { service_tier: 'priority' }],
    ['storage', { store: true }],
  ])('cannot choose another %s than the caller was admitted with', async (_, edit) => {
    const world = await worldOf(
      { own: `return { send: (target, call, { body }) => ({ body: { ...body, ...${JSON.stringify(edit)} } }) }` },
      { said: { own: { on_error: 'closed' } } },
    )
    const { status, text } = await world.ask()
    expect([status, JSON.parse(text).error.code]).toEqual([500, 'plugin_failed'])
    expect(world.providers.one.received).toEqual([])
  })

  test('that makes a prompt longer than the caller can pay for ends the call before it is sent', async () => {
    const world = await worldOf({
      own: `return { send: (target, call, { body }) =>
        ({ body: { ...body, messages: [...body.messages, { role: 'user', content: 'x'.repeat(100_000) }] } }) }`,
    })
    const { secret } = await newKey(world.store, { monthlyLimitNano: 10_000_000n })
    const { status } = await world.ask({ max_tokens: 10 }, { authorization: `Bearer ${secret}` })
    expect([status, world.providers.one.received]).toEqual([402, []])
    expect((await world.ask({ max_tokens: 10 })).status).toBe(200)
  })
})

describe('a targets hook', () => {
  test('adds a target that the caller may use, and its cost is reserved', async () => {
    const world = await worldOf({ own: "return { targets: (targets) => [{ id: 'one/m1' }, ...targets] }" })
    const { headers, status } = await world.ask({ model: 'two/m1', max_tokens: 100 })
    expect([status, headers.get('x-router-model')]).toEqual([200, 'one/m1'])
    expect((await world.rows()).at(-1)).toMatchObject({ provider: 'one', model: 'm1', cost: { nanoUsd: 10_000 } })
    // Enough for the cheaper target alone: 100 tokens cost 0.1 and 0.2 thousandths of a dollar.
    const { secret } = await newKey(world.store, { monthlyLimitNano: 150_000n })
    const { status: refused } = await world.ask(
      { model: 'two/m1', max_tokens: 100 },
      { authorization: `Bearer ${secret}` },
    )
    expect([refused, world.providers.one.received.length]).toEqual([402, 1])
  })

  test.each(['one/none', 'nobody/m1', 'one/vectors', 'policy/both'])('cannot add %s', async (id) => {
    const world = await worldOf({ own: `return { targets: (targets) => [{ id: '${id}' }, ...targets] }` }, { settings })
    const { headers, status } = await world.ask({ model: 'two/m1' })
    expect([status, headers.get('x-router-model')]).toEqual([200, 'two/m1'])
    expect(await world.faults()).toMatchObject([{ hook: 'targets', fault: 'wrong_result' }])
  })

  test('cannot add a target that the access list of the key does not name', async () => {
    const world = await worldOf({ own: "return { targets: (targets) => [{ id: 'one/m1' }, ...targets] }" })
    const { secret } = await newKey(world.store, { accessList: ['two/m1'] })
    const { headers } = await world.ask({ model: 'two/m1' }, { authorization: `Bearer ${secret}` })
    expect(headers.get('x-router-model')).toBe('two/m1')
  })
})

test('a hook that has failed on every call since its load is a problem of /ready, until one passes', async () => {
  const world = await worldOf({
    own: `return { request({ chat }) { if (chat.messages[0].parts[0].text !== 'Good') throw new Error('private words') } }`,
  })
  const problems = async () =>
    ((await (await world.router.call('/ready')).json()) as { problems?: string[] }).problems ?? []
  expect(await problems()).toEqual([])
  await world.ask()
  await world.ask()
  const [problem = '', ...others] = await problems()
  expect([problem, others]).toEqual([expect.stringMatching(/own.*`request` has failed on all of its 2 calls/), []])
  expect(problem).not.toContain('private')
  await world.ask({ messages: [{ role: 'user', content: 'Good' }] })
  await world.ask()
  expect(await problems()).toEqual([])
})

describe('a reply hook that wants another answer', () => {
  const wants = `return { reply: ({ chat }) => chat.parts[0].text === 'Good.' ? undefined : new Retry('not good') }`

  test('gets one of the next target; both are charged, and no target is blamed', async () => {
    const world = await worldOf({ wants }, { settings })
    world.steps.one.push(says('Bad.'))
    world.steps.two.push(says('Good.'))
    const { status, content, headers } = await world.ask({ model: 'policy/both' })
    expect([status, content, headers.get('x-router-model')]).toEqual([200, 'Good.', 'two/m1'])
    const rows = (await world.rows()).map(({ provider, outcome, cost }) => [provider, outcome, cost.nanoUsd])
    expect(rows.toSorted()).toEqual([
      ['one', 'failed', 10_000],
      ['two', 'complete', 5_000],
    ])
    expect(await world.faults()).toEqual([])
  })

  test('gets one of the same target where there is no other, and the third answer whatever it is', async () => {
    const world = await worldOf({ wants })
    world.steps.one.push(says('Bad.'), says('Worse.'), says('Worst.'), says('Good.'))
    const { status, content } = await world.ask()
    expect([status, content]).toEqual([200, 'Worst.'])
    expect(world.providers.one.received).toHaveLength(3)
    expect((await world.rows()).reduce((sum, { cost }) => sum + cost.nanoUsd, 0)).toBe(30_000)
  })

  test('gets none where the provider may have acted for the caller', async () => {
    const world = await worldOf({ wants }, { settings })
    world.steps.one.push((response) =>
      answerJson(response, {
        ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm' },
        output: [
          {
            type: 'message',
            id: 'msg_1',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'Bad.', annotations: [] }],
          },
        ],
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      }),
    )
    const body = {
      model: 'own/m',
      input: 'Hello',
      tools: [{ type: 'mcp', server_label: 'a', server_url: 'https://a.example' }],
    }
    const response = await world.router.call('/v1/responses', body)
    expect(response.status).toBe(200)
    expect(world.providers.one.received).toHaveLength(1)
  })
})

describe('an authenticate hook', () => {
  const accounts = async (store: PluginWorld['store']) => {
    const organization = (await store.organizations.list())[0]?.id ?? ''
    const group = (await store.groups.create({ organization, name: 'lab', monthlyLimitNano: 10n ** 9n })).id
    return { organization, group }
  }
  const tokens = `return { authenticate({ secret }) {
    note(secret)
    if (secret?.startsWith('token ')) return undefined
    if (secret === 'refused') return new Refusal(401, 'Sign in again.', { code: 'token_expired' })
    return secret?.startsWith('{') ? JSON.parse(secret) : undefined
  }, request(_, { key, group, names, labels }) { note({ key, group, names, labels }) } }`
  const as = (caller: object | string) => ({
    authorization: `Bearer ${typeof caller === 'string' ? caller : JSON.stringify(caller)}`,
  })

  test('returns an existing key, whose limits and rights hold', async () => {
    const world = await worldOf({ tokens })
    const { id } = await newKey(world.store, { accessList: ['one/m1'], labels: { team: 'a' } })
    const { status } = await world.ask({}, as({ key: id }))
    expect([status, (await world.ask({ model: 'two/m1' }, as({ key: id }))).status]).toEqual([200, 403])
    expect(world.notes[1]).toMatchObject({ key: id, names: { key: 'spender' }, labels: { team: 'a' } })
    expect((await world.rows()).at(-1)).toMatchObject({ key: id })
    await world.store.keys.revoke(id)
    await eventually(async () => expect((await world.ask({}, as({ key: id }))).status).toBe(403))
  })

  test('returns an organization and a group: their limits hold, and those of the caller', async () => {
    const world = await worldOf({ tokens })
    const { organization, group } = await accounts(world.store)
    const caller = { organization, group, id: 'anna', name: 'Anna', limits: { requests_per_minute: 100 } }
    // Another process has created the group.
    await eventually(async () => expect((await world.ask({ max_tokens: 1 }, as(caller))).status).toBe(200))
    const key = `tokens:${organization}:anna`
    expect((await world.rows()).at(-1)).toMatchObject({ key, group: caller.group, cost: { nanoUsd: 10_000 } })
    expect(world.notes.at(-1)).toMatchObject({
      group: caller.group,
      names: { key: 'Anna', group: 'lab' },
    })
    // All that the group may spend is spent, whoever asks.
    await world.store.groups.setLimit(group, 10_000n)
    await eventually(async () => {
      const refused = await world.ask({ max_tokens: 1 }, as({ organization, group, id: 'bert' }))
      expect([refused.status, JSON.parse(refused.text).error?.code]).toEqual([402, 'budget_exhausted'])
    })
    const own = { organization, id: 'carl', limits: { requests_per_minute: 1 } }
    expect([(await world.ask({}, as(own))).status, (await world.ask({}, as(own))).status]).toEqual([200, 429])
    const poor = { organization, id: 'dora', limits: { monthly_usd: 0.000_001 } }
    expect((await world.ask({}, as(poor))).status).toBe(402)
    const narrow = { organization, id: 'emil', models: ['two/m1'] }
    expect([
      (await world.ask({}, as(narrow))).status,
      (await world.ask({ model: 'two/m1' }, as(narrow))).status,
    ]).toEqual([403, 200])
  })

  test.each([
    ['an unknown key', { key: 'nobody' }],
    ['an unknown organization', { organization: 'nobody', id: 'anna' }],
    ['no account', { id: 'anna' }],
    ['an id that is none', { organization: 'x', id: 'a b' }],
    ['a limit below 0', { organization: 'x', id: 'anna', limits: { monthly_usd: -1 } }],
    ['a limit that is no sum', { organization: 'default', id: 'anna', limits: { monthly_usd: 1e300 } }],
    ['half a request', { organization: 'default', id: 'anna', limits: { requests_per_minute: 0.5 } }],
  ])('that names %s lets nobody in', async (_, caller) => {
    const world = await worldOf({ tokens })
    const named = {
      ...caller,
      ...('organization' in caller && caller.organization === 'default' && (await accounts(world.store))),
    }
    expect((await world.ask({}, as(named))).status).toBe(403)
    expect(world.providers.one.received).toEqual([])
  })

  test('cannot name a group of another organization', async () => {
    const world = await worldOf({ tokens })
    const { group } = await accounts(world.store)
    const other = (await world.store.organizations.create('other')).id
    expect((await world.ask({}, as({ organization: other, group, id: 'anna' }))).status).toBe(403)
  })

  test('of an organization has no effect on the limits of a caller of the same id in another one', async () => {
    const world = await worldOf({ tokens })
    const { organization } = await accounts(world.store)
    const other = (await world.store.organizations.create('other')).id
    const anna = { id: 'anna', limits: { requests_per_minute: 1 } }
    // Another process has created the organization.
    await eventually(async () =>
      expect((await world.ask({}, as({ organization: other, id: 'bert' }))).status).toBe(200),
    )
    const answers = [organization, other, other].map((id) => world.ask({}, as({ ...anna, organization: id })))
    expect((await Promise.all(answers)).map(({ status }) => status).toSorted()).toEqual([200, 200, 429])
  })

  test('authenticates no caller of an organization that has switched its plugin off', async () => {
    const world = await worldOf({ tokens })
    const { organization } = await accounts(world.store)
    const { id } = await newKey(world.store)
    const answers = async () =>
      (await Promise.all([{ organization, id: 'anna' }, { key: id }].map((caller) => world.ask({}, as(caller))))).map(
        ({ status }) => status,
      )
    expect(await answers()).toEqual([200, 200])
    const rules = { method: 'PUT', body: JSON.stringify({ plugins: { tokens: false } }) }
    const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
    expect((await fetch(`${world.router.url}/v1/manage/org/plugins`, { ...rules, headers })).status).toBe(200)
    expect(await answers()).toEqual([403, 403])
  })

  test('of a plugin that is unavailable is no reason to call its callers unknown', async () => {
    const world = await worldOf({ tokens: 'return {{{' })
    const { status, text } = await world.ask({}, as({ ...(await accounts(world.store)), id: 'anna' }))
    expect([status, JSON.parse(text).error.code]).toEqual([503, 'plugin_unavailable'])
  })

  test('of a plugin for one organization authenticates callers of no other', async () => {
    const world = await worldOf({ tokens }, { said: { tokens: { organizations: ['another'] } } })
    expect((await world.ask({}, as({ ...(await accounts(world.store)), id: 'anna' }))).status).toBe(403)
  })

  test('refuses, leaves the rest to the keys, and never gets the secrets of keys', async () => {
    const world = await worldOf({ tokens })
    const refused = await world.ask({}, as('refused'))
    expect([refused.status, JSON.parse(refused.text).error]).toMatchObject([
      401,
      { code: 'token_expired', message: 'Sign in again.' },
    ])
    expect((await world.ask({}, as('unknown'))).status).toBe(403)
    const { secret } = await newKey(world.store)
    world.notes.length = 0
    expect((await world.ask({}, as(secret))).status).toBe(200)
    expect(JSON.stringify(world.notes)).not.toContain(secret)
  })

  test('that fails lets nobody in, whatever `on_error` says', async () => {
    const fails = 'return { authenticate() { throw new Error("broken") } }'
    for (const [on_error, status] of [
      ['open', 403],
      ['closed', 500],
    ] as const) {
      const world = await worldOf({ fails }, { said: { fails: { on_error } } })
      expect((await world.ask({}, as('unknown'))).status).toBe(status)
    }
  })
})
