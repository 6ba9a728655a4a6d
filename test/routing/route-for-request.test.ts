import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { RoutingRequest } from '../../src/core/routing/request.ts'
import { type Target, targetId } from '../../src/manifest/target.ts'
import { forChat, type Route, resolve } from '../../src/routing/names/resolve.ts'
import { routeForRequest } from '../../src/routing/names/route-for-request.ts'
import type { Scope } from '../../src/routing/names/scope.ts'
import { testInRuns } from '../helpers/slow.ts'
import { directory, scope } from './names.ts'

type Rules = Parameters<typeof scope>[0]
type Managed = Parameters<typeof directory>[0]

const greeting: NeutralRequest = { model: 'm', messages: [], origin: { api: 'chat', body: {} } }

function routeOf(
  model: string,
  asked: RoutingRequest,
  rules: Rules = {},
  managed: Managed = {},
  promptTokens = 1,
): Route {
  const context = { directory: directory(managed), scope: scope(rules), at: 0, promptTokens: () => promptTokens }
  return routeForRequest(model, asked, { ...context, purpose: forChat(greeting) })
}

/** The ids of the targets, or the refusal. */
function targets(...args: Parameters<typeof routeOf>): unknown {
  try {
    return routeOf(...args).targets.map(targetId)
  } catch (thrown) {
    if (!(thrown instanceof RouterError)) throw thrown
    return [thrown.status, thrown.param, thrown.message]
  }
}

const refused = (status: number, param: string, says: string) => [status, param, expect.stringContaining(says)]

describe('further models', () => {
  const rules = { aliases: { quick: 'two/keeps' }, policies: { best: ['one/eu', 'one/us'] } }

  test('follow the first one in their order, each target once, by all their names', () => {
    expect(targets('one/us', { models: ['best', 'policy/best', 'quick', 'two/keeps'] }, rules)).toEqual([
      'one/us',
      'one/eu',
      'two/keeps',
    ])
    expect(targets('one/us', { models: ['one/us-latest', 'two/silent'] })).toEqual(['one/us', 'two/silent'])
    const { rank = new Map() } = routeOf('best', { models: ['quick'] }, rules)
    expect([...rank].map(([target, place]) => [targetId(target), place])).toEqual([
      ['one/eu', 0],
      ['one/us', 0],
      ['two/keeps', 1],
    ])
  })

  test('that are unknown, not approved or not in the access list are passed over', () => {
    const some = { approved: ['one/eu', 'two/*'], access: ['two/silent', 'one/eu'] }
    const models = ['none/m', 'gpt', 'one/us', 'two/keeps', 'two/silent', 'x'.repeat(300), 'mute/m']
    expect(targets('one/eu', { models }, some)).toEqual(['one/eu', 'two/silent'])
    expect(targets('one/us', { models }, some)).toEqual(['two/silent'])
  })

  test('that leave nothing end as the first name alone would', () => {
    const some = { approved: ['one/eu'], access: ['two/silent'] }
    expect(targets('one/us', { models: ['one/eu'] }, some)).toEqual(refused(404, 'model', "'one/us' is not approved"))
    expect(targets('one/eu', { models: ['one/us'] }, some)).toEqual(refused(403, 'model', 'access list'))
  })

  test('have the rules of the first name', () => {
    const { rules: own } = routeOf('best', { models: ['one/us'] }, rules)
    expect(own).toEqual({ ...directory().routing, totalMs: 300_000 })
  })

  test('are in the EU where the first name promises it', () => {
    const managed = { 'near@eu': ['one/eu'] }
    const others = { models: ['one/us', 'two/keeps', 'two/silent'] }
    expect(targets('near@eu', others, {}, managed)).toEqual(['one/eu', 'two/keeps'])
    expect(targets('near', others, { aliases: { near: 'near@eu' } }, managed)).toEqual(['one/eu', 'two/keeps'])
    // Nothing of the first name is left: its promise is.
    const approved = ['one/us', 'two/*']
    expect(targets('near@eu', others, { approved }, managed)).toEqual(['two/keeps'])
    expect(targets('near@eu', { models: ['one/us'] }, { approved }, managed)).toEqual(
      refused(404, 'model', 'not approved'),
    )
    expect(targets('one/us', { models: ['near@eu'] }, {}, managed)).toEqual(['one/us', 'one/eu'])
  })
})

describe('wishes about providers', () => {
  const all = { policies: { all: ['one/us', 'two/keeps', 'one/eu', 'two/silent', 'any/m'] } }

  test('only and ignore leave out the others', () => {
    expect(targets('all', { only: ['two'] }, all)).toEqual(['two/keeps', 'two/silent'])
    expect(targets('all', { ignore: ['two'] }, all)).toEqual(['one/us', 'one/eu', 'any/m'])
    expect(targets('one/us', { only: ['two'] })).toEqual(
      refused(404, 'provider.only', "'one/us' has a provider that is not in"),
    )
    expect(targets('one/us', { ignore: ['one'] })).toEqual(refused(404, 'provider.ignore', 'has a provider that is in'))
  })

  test('order puts providers first, whichever name led to them; what is sorted or kept otherwise is not', () => {
    expect(targets('all', { order: ['two', 'any'] }, all)).toEqual([
      ...['two/keeps', 'two/silent', 'any/m', 'one/us', 'one/eu'],
    ])
    expect(targets('one/us', { order: ['two'], models: ['any/m', 'two/keeps'] })).toEqual([
      ...['two/keeps', 'one/us', 'any/m'],
    ])
    const { rules } = routeOf('all', { order: ['two'], sort: 'price', sessionId: 's' }, all)
    expect(rules).toMatchObject({ sort: 'order', sticky: 'none' })
  })

  test('allow_fallbacks: false asks the first one alone; with an order, one of it', () => {
    expect(routeOf('all', { allowFallbacks: false }, all).onlyFirst).toBe(true)
    expect(routeOf('all', { allowFallbacks: true }, all)).not.toHaveProperty('onlyFirst')
    expect(targets('all', { allowFallbacks: false, order: ['any'] }, all)).toEqual(['any/m'])
    expect(targets('one/us', { allowFallbacks: false, order: ['any'] })).toEqual(
      refused(404, 'provider.order', '`allow_fallbacks` is false'),
    )
  })

  test('data_collection: deny leaves those that neither keep data nor train on it', () => {
    expect(targets('all', { dataCollection: 'deny' }, all)).toEqual(['one/eu'])
    expect(targets('all', { dataCollection: 'allow', only: ['one'] }, all)).toEqual(['one/us', 'one/eu'])
    expect(targets('any/m', { dataCollection: 'deny' })).toEqual(
      refused(404, 'provider.data_collection', "'any/m' may"),
    )
  })

  test('max_price leaves those that are known to cost no more', () => {
    const pricing = [
      { prompt_tokens_threshold: 0, input_price: 0.15e-6, output_price: 0.6e-6 },
      { prompt_tokens_threshold: 1_000, input_price: 0.3e-6, output_price: 1.2e-6 },
    ]
    const entry: ModelEntry = { api: 'chat', pricing, other_prices: { per_request_high: 0.01, per_input_image: 0.002 } }
    const left = (maxPrice: RoutingRequest['maxPrice'], tokens = 1) => {
      const priced = { ...directory(), identify: () => ({ model: 'm', name: 'm', is: 'm', entry }) }
      const context = {
        directory: priced,
        scope: scope({}),
        purpose: forChat(greeting),
        at: 0,
        promptTokens: () => tokens,
      }
      try {
        return routeForRequest('any/m', { maxPrice: maxPrice ?? {} }, context).targets.length
      } catch (thrown) {
        return (thrown as RouterError).param
      }
    }
    expect(left({ prompt: 0.15, completion: 0.6, request: 0.01, image: 0.002 })).toBe(1)
    for (const [name, price] of Object.entries({ prompt: 0.149, completion: 0.59, request: 0.009, image: 0.0019 }))
      expect(left({ [name]: price }), name).toBe('provider.max_price')
    expect(left({ prompt: 0.15 }, 999)).toBe(1)
    expect(left({ prompt: 0.15 }, 1_001)).toBe('provider.max_price')
    expect(left({ completion: 1.2 }, 1_001)).toBe(1)
    expect(targets('any/m', { maxPrice: { prompt: 100 } })).toEqual(
      refused(404, 'provider.max_price', '`max_price.prompt`'),
    )
  })

  test('sort, the session and the time of the call are among its rules', () => {
    const sorted = routeOf('all', { sort: 'latency', models: ['any/n'] }, all)
    expect(sorted.rules.sort).toBe('latency')
    expect(sorted).not.toHaveProperty('rank')
    const kept = routeOf('all', { sessionId: 's' }, all)
    expect([kept.sessionId, kept.rules.sticky]).toEqual(['s', 'session'])
    expect(routeOf('all', { totalMs: 500 }, all).rules.totalMs).toBe(500)
    const rules = scope(all).rules
    const policy = {
      id: 'all',
      description: '',
      targets: ['one/us'],
      routing: { totalMs: 400, sticky: 'cache' as const },
    }
    const ruled: Scope = { rules: { ...rules, policies: new Map([['all', policy]]) }, accessList: null }
    const context = { directory: directory(), scope: ruled, purpose: forChat(greeting), at: 0, promptTokens: () => 1 }
    expect(routeForRequest('all', { totalMs: 500, sessionId: 's' }, context).rules).toMatchObject({
      totalMs: 400,
      sticky: 'cache',
    })
  })

  test('a message names at most five targets', () => {
    const many = Array.from({ length: 8 }, (_, index) => `any/m${index}`)
    expect(targets('p', { only: ['one'] }, { policies: { p: many } })).toEqual(
      refused(404, 'provider.only', '3 more were left out as well.'),
    )
  })
})

describe('whatever a request asks for', () => {
  const ids = ['one/eu', 'one/us', 'one/us-latest', 'two/keeps', 'two/silent', 'any/m', 'away/m', 'mute/m', 'none/m']
  const names = ['quick', 'near@eu', 'best', 'wide@eu', 'm', 'm@eu']
  const subset = (list: readonly string[]) => fc.subarray([...list])
  const slugs = fc.subarray(['one', 'two', 'any'], { minLength: 1 })
  const anyTargets = fc.uniqueArray(fc.constantFrom(...ids), { minLength: 1, maxLength: 5 })
  const policies = (of: readonly string[]) =>
    fc.dictionary(fc.constantFrom(...of), anyTargets, { maxKeys: of.length, noNullPrototype: true })
  const aliasTargets = fc.constantFrom(...ids, 'best', 'm', 'wide@eu')

  /** An object that has each of these members in one of three cases. */
  function some<T extends object>(members: { [name in keyof T]: fc.Arbitrary<T[name]> }): fc.Arbitrary<Partial<T>> {
    const chances = Object.fromEntries(Object.keys(members).map((name) => [name, fc.nat(2)]))
    return fc.tuple(fc.record(members), fc.record(chances)).map(([all, chance]) => {
      const kept = Object.entries(all).filter(([name]) => chance[name] === 0)
      return Object.fromEntries(kept) as Partial<T>
    })
  }

  const rules: fc.Arbitrary<Rules> = some({
    aliases: fc.dictionary(fc.constantFrom('quick', 'near@eu', 'one/us'), aliasTargets, { noNullPrototype: true }),
    policies: policies(['best', 'wide@eu']),
    approved: subset([...ids, 'one/*', 'two/*']),
    access: subset([...ids, ...names, 'policy/best', 'two/*']),
    rules: some({
      geolocation: subset(['eu', 'us', 'jp']),
      data_retention: fc.constant(false as const),
      data_used_for_training: fc.constant(false as const),
    }),
  })
  const asked: fc.Arbitrary<RoutingRequest> = some({
    models: fc.array(fc.constantFrom(...ids, ...names, 'policy/best'), { minLength: 1, maxLength: 6 }),
    order: slugs,
    only: slugs,
    ignore: slugs,
    sort: fc.constantFrom('price' as const, 'latency' as const, 'throughput' as const),
    maxPrice: fc.constant({ prompt: 1 }),
    allowFallbacks: fc.boolean(),
    requireParameters: fc.boolean(),
    dataCollection: fc.constantFrom('allow' as const, 'deny' as const),
    sessionId: fc.constantFrom('s', 't'),
    totalMs: fc.constantFrom(1, 1_000),
  })
  const call = fc.record({ model: fc.constantFrom(...ids, ...names), asked, rules, managed: policies(['m', 'm@eu']) })

  /** What holds for a target by the facts of its model, as the rules of the organization say them. */
  function isAllowed({ entry, provider, model }: Target, { approved, rules: data = {} }: Rules): boolean {
    const all = ['one/us', 'one/us-latest'].includes(`${provider.slug}/${model}`)
      ? ['one/us', 'one/us-latest']
      : [`${provider.slug}/${model}`]
    const isApproved = !approved || [...all, `${provider.slug}/*`].some((id) => approved.includes(id))
    const { geolocation, data_retention, data_used_for_training } = data
    return (
      isApproved &&
      (!geolocation || geolocation.includes(entry?.geolocation ?? '')) &&
      (data_retention === undefined || entry?.data_retention === false) &&
      (data_used_for_training === undefined || entry?.data_used_for_training === false)
    )
  }

  /** The targets of one name, without anything else that the request says; none where it is refused. */
  function alone(name: string, rules: Rules, managed: Managed): string[] {
    try {
      return resolve(name, directory(managed), scope(rules), forChat(greeting)).targets.map(targetId)
    } catch {
      return []
    }
  }

  function routeOrRefusal(...args: Parameters<typeof routeOf>): Route | RouterError {
    try {
      return routeOf(...args)
    } catch (thrown) {
      if (thrown instanceof RouterError) return thrown
      throw thrown
    }
  }

  testInRuns(
    'every target is approved, in the access list, within the rules on data and in the EU where it is promised',
    { fast: 400, slow: 2_000 },
    (numRuns) => {
      let routes = 0
      fc.assert(
        fc.property(call, ({ model, asked, rules, managed }) => {
          const route = routeOrRefusal(model, asked, rules, managed)
          if (route instanceof RouterError) return
          routes++
          const reachable = new Set([model, ...(asked.models ?? [])].flatMap((name) => alone(name, rules, managed)))
          const bare = rules.aliases?.[model] ?? model
          const promises = model.endsWith('@eu') || bare.endsWith('@eu')
          for (const target of route.targets) {
            const { slug } = target.provider
            expect(isAllowed(target, rules)).toBe(true)
            expect(reachable).toContain(targetId(target))
            if (promises) expect(target.entry?.geolocation).toBe('eu')
            if (asked.only) expect(asked.only).toContain(slug)
            expect(asked.ignore ?? []).not.toContain(slug)
            expect(asked).not.toHaveProperty('maxPrice')
            if (asked.dataCollection === 'deny') {
              expect(target.entry).toMatchObject({ data_retention: false, data_used_for_training: false })
            }
          }
          expect(new Set(route.targets).size).toBe(route.targets.length)
          expect(Math.min(asked.totalMs ?? Infinity, route.rules.totalMs ?? Infinity)).toBe(
            route.rules.totalMs ?? Infinity,
          )
        }),
        { numRuns },
      )
      expect(routes).toBeGreaterThan(numRuns / 10)
    },
  )

  testInRuns('where no name is left the refusal is that of the first one', { fast: 200, slow: 1_000 }, (numRuns) => {
    let refusals = 0
    fc.assert(
      fc.property(call, ({ model, asked: { models = [] }, rules, managed }) => {
        const route = routeOrRefusal(model, { models }, rules, managed)
        if (!(route instanceof RouterError)) return
        refusals++
        const first = routeOrRefusal(model, {}, rules, managed)
        expect(first).toMatchObject({ code: route.code, status: route.status, message: route.message })
      }),
      { numRuns },
    )
    expect(refusals).toBeGreaterThan(numRuns / 10)
  })
})
