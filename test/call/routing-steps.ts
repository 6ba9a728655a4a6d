import { expect } from 'vitest'
import { fieldOf } from './answers.ts'
import { type Route, routeAt } from './examples.ts'
import { counting, type Scenario, type Step, without } from './table.ts'
import { type Asking, failing, idOf, type Keyed, plainWorld, policyOf, type World } from './world.ts'

// Routing: names, order, preferences, unsupported fields, files and abilities.

/** The slots and models of the providers that were asked, in the order of their slots. */
export function asked(world: World): string[] {
  return (['one', 'two'] as const).flatMap((slot) => world.providers[slot].received.map(() => slot))
}

/** Expects that a call is answered by the provider of this slot, and that no other one was asked. */
export async function expectServedBy(
  slot: 'one' | 'two',
  route: Route,
  world: World,
  asking: Asking = {},
): Promise<void> {
  const { secret = (await world.key()).secret } = asking
  const answer = await world.ask(route, { secret, ...asking })
  expect([answer.status, asked(world), answer.json?.error?.message]).toEqual([200, [slot], undefined])
}

/** Expects that a call is refused before a provider is asked, and that it is among the refusals of its key. */
export async function expectListedRefusal(
  route: Route,
  world: World,
  { key: known, ...asking }: Asking & { key?: Keyed },
  [status, code]: readonly [number, string],
): Promise<void> {
  const key = known ?? (await world.key())
  const { json, ...answer } = await world.ask(route, { secret: key.secret, ...asking })
  expect([answer.status, json?.error?.code, asked(world)]).toEqual([status, code, []])
  const listed = await refusalsOf(world, key)
  expect(listed).toMatchObject([{ code, status, asked: asking.model ?? idOf(route) }])
}

/** Reads `GET /v1/manage/refusals` for a key. */
export async function refusalsOf(world: World, { id, organization }: Keyed): Promise<unknown[]> {
  const { secret } = await world.key({ organization, permissions: { manage: 'read' } })
  const response = await fetch(`${world.router.url}/v1/manage/refusals?key=${id}`, {
    headers: { authorization: `Bearer ${secret}` },
  })
  const { refusals } = (await response.json()) as { refusals: unknown[] }
  return refusals
}

/** A policy over both targets. */
export const both = (route: Route) => policyOf(route, 'both')
const resolved: readonly Step[] = [
  {
    fact: 'an alias leads to its target',
    async check(route, world) {
      const key = await world.keyOfOwn()
      await world.store.names.setAlias(key.organization, { name: 'mine', target: idOf(route, 'two') })
      await expectServedBy('two', route, world, { secret: key.secret, model: 'mine' })
      if (!route.isFree)
        expect(await world.rows(key)).toMatchObject([{ requested: 'mine', provider: `two-${route.format}` }])
    },
  },
  {
    fact: 'a policy of the organization leads to its first target',
    async check(route, world) {
      const { organization, secret } = await world.keyOfOwn()
      const targets = [idOf(route, 'two'), idOf(route, 'one')]
      await world.store.names.setPolicy(organization, { id: 'mine', description: '', targets })
      await expectServedBy('two', route, world, { secret, model: 'policy/mine' })
    },
  },
  {
    fact: 'a policy that is sorted by price is served by the cheapest target',
    check: (route, world) => expectServedBy('two', route, world, { model: policyOf(route, 'price') }),
  },
  {
    fact: 'a target without weight is asked last',
    check: (route, world) => expectServedBy('two', route, world, { model: policyOf(route, 'weighted') }),
  },
  {
    fact: 'calls with one x-session-id stay at the target that has served the first of them',
    async check(route, world) {
      const { secret } = await world.key()
      const asking = { secret, model: policyOf(route, 'session'), headers: { 'x-session-id': 'mine' } }
      world.acts.one.push(failing(500))
      expect((await world.ask(route, asking)).status).toBe(200)
      world.clear()
      await expectServedBy('two', route, world, asking)
      world.clear()
      // Another session begins at the first target.
      await expectServedBy('one', route, world, { ...asking, headers: { 'x-session-id': 'other' } })
    },
    except: [counting('a count is no call of a session: it is where its conversation is, and moves nothing')],
  },
  {
    fact: 'calls with one session_id stay at the target that has served the first of them',
    async check(route, world) {
      const { secret } = await world.key()
      const asking = { secret, model: both(route), body: { session_id: 'mine' } }
      world.acts.one.push(failing(500))
      expect((await world.ask(route, asking)).status).toBe(200)
      world.clear()
      await expectServedBy('two', route, world, asking)
    },
    except: [counting('a count is no call of a session: it is where its conversation is, and moves nothing')],
  },
]

const sticksToUser: Step = {
  fact: 'calls for one user stay at the target that has served the first of them',
  async check(route, world) {
    const { secret } = await world.key()
    const body = route.path.startsWith('/v1/messages') ? { metadata: { user_id: 'ada' } } : { user: 'ada' }
    const asking = { secret, model: policyOf(route, 'user'), body }
    world.acts.one.push(failing(500))
    expect((await world.ask(route, asking)).status).toBe(200)
    world.clear()
    await expectServedBy('two', route, world, asking)
  },
  except: [counting('a count is no call of a user: it is where its conversation is, and moves nothing')],
}

/** The routes that go on with a stored response. */
const byId = ({ path }: Route) => path.startsWith('/v1/responses')

const bound: Step = {
  fact: 'a conversation goes to the target that has answered its last turn',
  async check(route, world) {
    const { secret } = await world.key()
    const first = await world.ask(routeAt('/v1/responses'), { secret, model: idOf(route, 'two') })
    world.clear()
    const body = { previous_response_id: first.json.id }
    await expectServedBy('two', route, world, { secret, model: both(route), body })
  },
  except: [{ at: (route) => !byId(route), because: 'it has no conversations by id' }],
}

const kinds: Step = {
  fact: 'a model of another kind is refused with 400 that names the field, and is among the refusals',
  async check(route, world) {
    const key = await world.key()
    const kind = route.models === 'embedding' ? 'moderation' : 'embedding'
    const { status, json } = await world.ask(route, { secret: key.secret, model: `one-chat/${kind}` })
    expect([status, json?.error?.param, asked(world)]).toEqual([400, 'model', []])
    expect(await refusalsOf(world, key)).toMatchObject([{ status: 400 }])
  },
}

/** A preference of a request that leads a policy to its second target. */
const preferences: readonly [string, (route: Route) => Asking['body']][] = [
  ['provider.order', ({ format }) => ({ provider: { order: [`two-${format}`] } })],
  ['provider.only', ({ format }) => ({ provider: { only: [`two-${format}`] } })],
  ['provider.ignore', ({ format }) => ({ provider: { ignore: [`one-${format}`] } })],
  ['provider.sort', () => ({ provider: { sort: 'price' } })],
  ['provider.max_price', () => ({ provider: { max_price: { prompt: 1.5, completion: 1.5 } } })],
]

const preferred: readonly Step[] = [
  ...preferences.map(
    ([name, bodyFor]): Step => ({
      fact: `\`${name}\` leads to the target that it prefers`,
      check: (route, world) =>
        expectServedBy('two', route, world, { model: both(route), body: bodyFor(route) as never }),
    }),
  ),
  ...['zdr', 'data_collection'].map(
    (name): Step => ({
      fact: `\`provider.${name}\` leads to the target that promises it`,
      check: (route, world) => {
        const provider = name === 'zdr' ? { zdr: true } : { data_collection: 'deny' }
        const asking = { model: idOf(route), body: { models: [idOf(route, 'two', '-european')], provider } }
        return expectServedBy('two', route, world, asking)
      },
    }),
  ),
  {
    fact: 'further names in `models` are asked when the first one fails',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.one.push(failing(500))
      const { status } = await world.ask(route, { secret, body: { models: [idOf(route, 'two')] } })
      expect([status, asked(world)]).toEqual([200, ['one', 'two']])
    },
  },
  {
    fact: '`models` alone names the model',
    check: (route, world) => {
      const body = { model: undefined, models: [idOf(route, 'two')] }
      return expectServedBy('two', route, world, { body } as never)
    },
  },
  {
    fact: '`provider.allow_fallbacks: false` asks the first target alone',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.one.push(failing(500))
      const body = { provider: { allow_fallbacks: false } }
      const { status } = await world.ask(route, { secret, model: both(route), body })
      expect([status, asked(world)]).toEqual([502, ['one']])
    },
  },
  {
    fact: 'preferences that leave no target are a 404 and among the refusals',
    check: (route, world) =>
      expectListedRefusal(route, world, { body: { provider: { only: ['nobody'] } } }, [404, 'model_not_found']),
  },
  {
    fact: 'an unsupported preference is refused with 400',
    async check(route, world) {
      const { secret } = await world.key()
      const body = { provider: { quantizations: ['int4'] } }
      const { status, json } = await world.ask(route, { secret, body })
      expect([status, json?.error?.param, asked(world)]).toEqual([400, 'provider.quantizations', []])
    },
  },
  ...['preferred_min_throughput', 'preferred_max_latency'].map(
    (name): Step => ({
      fact: `the ignored preference \`${name}\` is named in x-router-dropped`,
      async check(route, world) {
        const { secret } = await world.key()
        const { status, headers } = await world.ask(route, { secret, body: { provider: { [name]: 50 } } })
        expect([status, headers.get('x-router-dropped')]).toEqual([200, `provider.${name}`])
      },
    }),
  ),
]

const noneLost = without('lost', 'its API has no field that a provider may lack')
const lostName = ({ lost = {} }: Route) => Object.keys(lost)[0] ?? ''

const unsupported: readonly Step[] = [
  {
    fact: 'a field that the provider does not support is left out and named in x-router-dropped',
    async check(route, world) {
      const key = await world.key()
      const { status, headers } = await world.ask(route, { secret: key.secret, body: route.lost ?? {} })
      expect([status, headers.get('x-router-dropped')?.split('.')[0]]).toEqual([200, lostName(route)])
      expect(world.received.map((request) => fieldOf(request, lostName(route)))).toEqual([undefined])
      if (!route.isFree)
        expect((await world.rows(key))[0]?.dropped).toEqual(headers.get('x-router-dropped')?.split(','))
    },
    except: [noneLost],
  },
  {
    fact: 'a field that the provider does not support is refused with 400 where x-router-strict is true',
    async check(route, world) {
      const { secret } = await world.key()
      const headers = { 'x-router-strict': 'true' }
      const { status, json } = await world.ask(route, { secret, body: route.lost ?? {}, headers })
      expect([status, json?.error?.code, asked(world)]).toEqual([400, 'loss_refused', []])
    },
    except: [noneLost],
  },
  {
    fact: 'a field that the provider does not support is refused with 400 where all parameters are required',
    async check(route, world) {
      const { secret } = await world.key()
      const body = { ...route.lost, provider: { require_parameters: true } }
      const { status, json } = await world.ask(route, { secret, body })
      expect([status, json?.error?.code, asked(world)]).toEqual([400, 'loss_refused', []])
    },
    except: [noneLost],
  },
]

/** A picture of one pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const noFiles = without('linked', 'it takes no files by address')

const files: readonly Step[] = [
  {
    fact: 'a file by address is fetched for a provider that fetches none',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.two.push((response) => {
        response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from(png, 'base64'))
      })
      const { status } = await world.ask(route, {
        secret,
        body: route.linked?.(`${world.providers.two.url}/a.png`) ?? {},
      })
      expect([status, asked(world)]).toEqual([200, ['one', 'two']])
      expect(JSON.stringify(world.providers.one.received[0]?.body)).not.toContain('a.png')
    },
    except: [noFiles],
  },
  {
    fact: 'a file at an address that is not public is refused with 400',
    async check(route, world) {
      const { secret } = await world.key()
      const { status } = await world.ask(route, { secret, body: route.linked?.('http://169.254.169.254/a.png') ?? {} })
      expect([status, asked(world)]).toEqual([400, []])
    },
    except: [noFiles],
  },
]

const noContext = without('isConversation', 'how much its model reads is not what decides whether it can')

const able: readonly Step[] = [
  {
    fact: 'a target whose context window is known to be too small is passed over',
    check: (route, world) => expectServedBy('two', route, world, { model: policyOf(route, 'larger') }),
    except: [noContext],
  },
  {
    fact: 'a request that is too long for one target goes to one with a larger context window',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.one.push(failing(400, {}, { code: 'context_length_exceeded', message: 'prompt is too long' }))
      const body = { models: [idOf(route, 'two', '-larger')] }
      const { status } = await world.ask(route, { secret, body })
      expect([status, asked(world)]).toEqual([200, ['one', 'two']])
    },
  },
  {
    fact: 'a request that is too long for one target goes to no other one with a context window of the same size',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.one.push(failing(400, {}, { code: 'context_length_exceeded', message: 'prompt is too long' }))
      const { status } = await world.ask(route, { secret, model: both(route) })
      expect([status, asked(world)]).toEqual([400, ['one']])
    },
  },
]

export const routing: Scenario = {
  name: 'routing',
  start: plainWorld,
  steps: [...resolved, sticksToUser, bound, kinds, ...preferred, ...unsupported, ...files, ...able],
}
