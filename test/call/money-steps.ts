import { expect } from 'vitest'
import { within } from '../helpers/provider.ts'
import type { Route } from './examples.ts'
import { asked, refusalsOf } from './routing-steps.ts'
import { counting, type Scenario, type Step } from './table.ts'
import {
  type Act,
  type Asking,
  answering,
  failing,
  idOf,
  type Keyed,
  plainWorld,
  policyOf,
  type World,
} from './world.ts'

// Rate limits, concurrency, tokens and money.

const none = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: null }
const free = counting('it costs nothing, so that no limit in money concerns it', async (route, world) => {
  const { secret } = await world.key({ monthlyLimitNano: 1n })
  expect((await world.ask(route, { secret })).status).toBe(200)
})
/** More than any example can cost, and less than two of them. */
const amount = 10n ** 12n

/** Expects that a call is refused before a provider is asked, and is among the refusals. */
async function expectListed(
  route: Route,
  world: World,
  key: Keyed,
  { expected, ...asking }: Asking & { expected: [number, string] },
): Promise<void> {
  const before = world.received.length
  const { status, json } = await world.ask(route, { secret: key.secret, ...asking })
  expect([status, json?.error?.code, world.received.length - before]).toEqual([...expected, 0])
  expect(await refusalsOf(world, key)).toMatchObject([{ status: expected[0], code: expected[1] }])
}

/** A provider that answers after `go`; `begun` resolves when a request has arrived. */
export function held(): { act: Act; begun: Promise<void>; go(): void } {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const act: Act = async (response, request) => {
    begun.resolve()
    await end.promise
    await answering()(response, request)
  }
  return { act, begun: begun.promise, go: () => end.resolve() }
}

const limits: readonly Step[] = [
  ...(['key', 'organization'] as const).map(
    (whose): Step => ({
      fact: `a call beyond the requests per minute of its ${whose} is a 429 with the time to wait`,
      async check(route, world) {
        const rates = { ...none, requestsPerMinute: 1 }
        const key = await world.keyOfOwn(whose === 'key' ? { limits: rates } : {})
        if (whose === 'organization') await world.store.organizations.setLimits(key.organization, rates)
        const first = await world.ask(route, { secret: key.secret })
        expect([first.status, first.headers.get('x-ratelimit-remaining-requests')]).toEqual([200, '0'])
        const { headers, status } = await world.ask(route, { secret: key.secret })
        expect([status, Number(headers.get('retry-after')) > 0]).toEqual([429, true])
        expect(headers.get('x-ratelimit-limit-requests')).toBe('1')
        expect(await refusalsOf(world, key)).toMatchObject([{ status: 429, code: 'rate_limited' }])
      },
    }),
  ),
  {
    fact: 'a call beyond the calls at once of its key is a 429, and the place is free when the first has ended',
    async check(route, world) {
      const key = await world.key({ limits: { ...none, concurrentCalls: 1 } })
      const { act, begun, go } = held()
      world.acts.one.push(act)
      const first = world.ask(route, { secret: key.secret })
      await within(10_000, 'the first call', begun)
      await expectListed(route, world, key, { expected: [429, 'rate_limited'] })
      go()
      expect((await first).status).toBe(200)
      expect((await world.ask(route, { secret: key.secret })).status).toBe(200)
    },
  },
  {
    fact: 'a prompt beyond the tokens per minute of its key is a 429',
    async check(route, world) {
      const key = await world.keyOfOwn({ limits: { ...none, tokensPerMinute: 10 } })
      // A call that is larger than the limit is admitted when nothing else is in the window.
      expect((await world.ask(route, { secret: key.secret })).status).toBe(200)
      await expectListed(route, world, key, { expected: [429, 'rate_limited'] })
    },
    except: [counting('it generates nothing, so that it uses no tokens')],
  },
  {
    fact: 'a call that has failed gives back its place and its money',
    async check(route, world) {
      const key = await world.key({ limits: { ...none, concurrentCalls: 1 }, monthlyLimitNano: amount })
      world.acts.one.push(failing(500))
      expect((await world.ask(route, { secret: key.secret })).status).toBe(502)
      const { status, text } = await world.ask(route, { secret: key.secret })
      expect([status, status === 200 ? '' : text]).toEqual([200, ''])
    },
  },
]

/** Keys that cannot pay, by the limit that stops them. */
const poor: { readonly [whose: string]: (world: World) => Promise<Keyed> } = {
  'the monthly limit of its key': (world) => world.keyOfOwn({ monthlyLimitNano: 1n }),
  'the monthly limit of its group': async (world) => {
    const { organization } = await world.keyOfOwn()
    const { id } = await world.store.groups.create({ organization, name: 'poor', monthlyLimitNano: 1n })
    return await world.key({ organization, groupId: id })
  },
  'the balance of its organization': async (world) => {
    const key = await world.keyOfOwn()
    await world.store.organizations.credit(key.organization, 1n)
    return key
  },
}

const money: readonly Step[] = [
  ...Object.entries(poor).map(
    ([whose, keyIn]): Step => ({
      fact: `a call that can cost more than ${whose} is a 402 and among the refusals`,
      async check(route, world) {
        const key = await keyIn(world)
        await expectListed(route, world, key, { expected: [402, 'budget_exhausted'] })
        expect(await world.rows(key)).toEqual([])
      },
      except: [free],
    }),
  ),
  {
    fact: 'a model without a price is a 402 for a key with a limit in money',
    async check(route, world) {
      const key = await world.keyOfOwn({ monthlyLimitNano: amount })
      await expectListed(route, world, key, {
        model: idOf(route, 'one', '-unpriced'),
        expected: [402, 'unpriced_model'],
      })
    },
    except: [
      counting('it costs nothing, whatever the model', async (route, world) => {
        const { secret } = await world.key({ monthlyLimitNano: 1n })
        expect((await world.ask(route, { secret, model: idOf(route, 'one', '-unpriced') })).status).toBe(200)
      }),
    ],
  },
  {
    fact: 'a model without a price is left out of a policy for a key with a limit in money',
    async check(route, world) {
      const { secret } = await world.key({ monthlyLimitNano: amount })
      const { status } = await world.ask(route, { secret, model: policyOf(route, 'priced') })
      expect([status, asked(world)]).toEqual([200, ['two']])
    },
    except: [counting('it costs nothing, whatever the model')],
  },
  {
    fact: 'a model without a price is served to a key without a limit, and its row is marked as unpriced',
    async check(route, world) {
      const key = await world.key()
      expect((await world.ask(route, { secret: key.secret, model: idOf(route, 'one', '-unpriced') })).status).toBe(200)
      expect(await world.rows(key)).toMatchObject([{ outcome: 'complete', cost: { nanoUsd: 0, unpriced: true } }])
    },
    except: [counting('it has no row')],
  },
  {
    fact: 'what a failed attempt was billed is charged in a row of its own',
    async check(route, world) {
      const key = await world.key()
      world.acts.one.push(billed(route))
      expect((await world.ask(route, { secret: key.secret, model: policyOf(route, 'both') })).status).toBe(200)
      const [failed, served] = (await world.rows(key)).toSorted((one, other) => Number(other.outcome < one.outcome) - 1)
      const attempts = [failed, served].map((row) => [row?.outcome, row?.attemptOf === undefined, row?.provider])
      expect(attempts.toSorted()).toEqual([
        ['complete', true, `two-${route.format}`],
        ['failed', false, `one-${route.format}`],
      ])
      const [paid] = (await world.rows(key)).filter(({ outcome }) => outcome === 'failed')
      expect(paid?.cost.nanoUsd).toBeGreaterThan(0)
    },
    except: [counting('what a provider counts is free')],
  },
  {
    fact: 'no second target is asked when what is left is not enough for it after a failed attempt was billed',
    async check(route, world) {
      // The second target costs more, so that what it can cost is what is reserved: the row of a call has that.
      const asking = { model: idOf(route, 'two'), body: { models: [idOf(route, 'one')] } }
      const measuring = await world.key()
      await world.ask(route, { ...asking, secret: measuring.secret })
      const [{ reservedNano = 0 } = {}] = await world.rows(measuring)
      expect(reservedNano).toBeGreaterThan(0)
      world.clear()
      const key = await world.key({ monthlyLimitNano: BigInt(reservedNano) })
      world.acts.two.push(billed(route))
      const { status } = await world.ask(route, { ...asking, secret: key.secret })
      expect([status, asked(world)]).toEqual([502, ['two']])
    },
    except: [counting('it reserves nothing')],
  },
  {
    fact: 'a prompt whose bytes do not fit is admitted when its tokens do',
    async check(route, world) {
      const text = 'internationalization '.repeat(400)
      const asking = { body: withText(route, text), model: idOf(route, 'one') }
      // A call is reserved at its bytes: with half of that its tokens are counted, which are far fewer.
      const measuring = await world.key()
      await world.ask(route, { ...asking, secret: measuring.secret })
      const [{ reservedNano = 0 } = {}] = await world.rows(measuring)
      const key = await world.key({ monthlyLimitNano: BigInt(reservedNano) - 8_000_000n })
      const { status, json } = await world.ask(route, { ...asking, secret: key.secret })
      expect([status, json?.error?.message]).toEqual([200, undefined])
    },
    except: [
      counting('it costs nothing, however long it is'),
      {
        at: ({ file, models }) => file !== undefined || models === 'image' || models === 'speech',
        because: 'it is not the length of a prompt by which most of its cost is bounded',
      },
    ],
  },
  {
    fact: 'the reply has the cost of the call',
    async check(route, world) {
      const key = await world.key()
      const { headers, json } = await world.ask(route, { secret: key.secret })
      const [row] = await world.rows(key)
      const cost = json?.usage?.cost ?? Number(headers.get('x-router-cost') ?? Number.NaN)
      expect(cost * 1e9).toBeCloseTo(row?.cost.nanoUsd ?? -1)
    },
    except: [
      counting('it costs nothing'),
      {
        at: ({ isBytes }) => isBytes === true,
        because: 'what it costs is known when the bytes have been sent, unless it is paid by characters',
      },
    ],
  },
]

/** A failure whose answer counts tokens of the prompt. */
function billed({ format }: Route): Act {
  const count = 10
  const usage =
    format === 'chat'
      ? { prompt_tokens: count, completion_tokens: 0, total_tokens: count }
      : { input_tokens: count, output_tokens: 0, total_tokens: count }
  return (response) => {
    response.writeHead(500, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'The kitchen is on fire.' }, usage }))
  }
}

/** The body with another text. */
function withText({ body }: Route, text: string): NonNullable<Asking['body']> {
  const field = ['messages', 'input', 'prompt', 'query'].find((name) => body[name] !== undefined) ?? ''
  const value = Array.isArray(body[field]) ? [{ role: 'user', content: text }] : text
  return { [field]: value }
}

export const limitsAndMoney: Scenario = {
  name: 'limits and money',
  start: plainWorld,
  steps: [...limits, ...money],
}
