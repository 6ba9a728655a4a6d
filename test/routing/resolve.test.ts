import { describe, expect, test } from 'vitest'
import { listedModels, listedPolicies } from '../../src/routing/names/listed.ts'
import { directory, scope, targets } from './names.ts'

const refused = (status: number, says: string) => [status, expect.stringContaining(says)]

describe('a name', () => {
  const managed = { fast: ['two/keeps'], best: ['two/keeps'] }

  test('is an alias, else a policy of the organization, else a managed policy, else a model', () => {
    const all = scope({ aliases: { fast: 'one/us' }, policies: { fast: ['one/eu'], best: ['one/eu'] } })
    expect(targets('fast', all, managed)).toEqual(['one/us'])
    expect(targets('best', all, managed)).toEqual(['one/eu'])
    expect(targets('best', scope({}), managed)).toEqual(['two/keeps'])
    expect(targets('one/eu', all, managed)).toEqual(['one/eu'])
  })

  test('may replace a model', () => {
    expect(targets('one/eu', scope({ aliases: { 'one/eu': 'two/keeps' } }))).toEqual(['two/keeps'])
  })

  test('is also known as policy/<id>, which is never a model', () => {
    const all = scope({ aliases: { fast: 'one/us' }, policies: { best: ['one/eu'] } })
    expect(targets('policy/fast', all)).toEqual(['one/us'])
    expect(targets('policy/best', all)).toEqual(['one/eu'])
    expect(targets('policy/best', scope({}), managed)).toEqual(['two/keeps'])
    expect(targets('policy/one/eu', all)).toEqual(refused(404, "There is no policy or alias 'one/eu'"))
    expect(targets('policy/other', all)).toEqual(refused(404, "There is no policy or alias 'other'"))
  })

  test('of an alias leads to a model or a policy, written with policy/ or without, and never to another alias', () => {
    const aliases = { a: 'best', b: 'policy/best', c: 'a', best: 'policy/best', d: 'policy/one/eu' }
    const all = scope({ aliases, policies: { best: ['one/eu', 'one/us'] } })
    for (const name of ['a', 'b', 'best']) expect(targets(name, all), name).toEqual(['one/eu', 'one/us'])
    expect(targets('c', all)).toEqual(refused(404, "The alias 'c' stands for 'a', which does not exist"))
    expect(targets('d', all)).toEqual(refused(404, "stands for 'policy/one/eu', which does not exist"))
  })

  test('that is unknown is 404 and explains how models are written', () => {
    expect(targets('gpt', scope({}))).toEqual(refused(404, 'Write a model as <provider>/<model>'))
    expect(targets('none/m', scope({}))).toEqual(refused(404, "The provider 'none'"))
    expect(targets('one/m', scope({}))).toEqual(refused(404, "no model 'm' in the catalog"))
    expect(targets('away/m')).toEqual(refused(404, 'set AWAY_KEY'))
    expect(targets('mute/m')).toEqual(refused(404, 'no endpoints'))
    expect(targets('any/whatever')).toEqual(['any/whatever'])
    expect(targets('x'.repeat(257))).toEqual(refused(404, 'more than 256'))
    for (const name of ['constructor', '__proto__', 'policy/', '/', 'one/', '/m']) {
      expect(targets(name, scope({})), name).toEqual(refused(404, 'GET /v1/models'))
    }
  })
})

describe('a policy', () => {
  test('skips targets that are not configured or not known, and keeps their order', () => {
    const policies = { p: ['away/m', 'two/gone', 'one/us', 'none/m', 'one/eu'] }
    expect(targets('p', scope({ policies }))).toEqual(['one/us', 'one/eu'])
  })

  test('without a remaining target reports the reason of each', () => {
    const rejection = targets('p', scope({ policies: { p: ['away/m', 'two/gone', 'two/keeps'] }, approved: ['one/*'] }))
    expect(rejection).toEqual(refused(404, "'p' has no target that can be used."))
    for (const reason of ['set AWAY_KEY', "no model 'gone'", "'two/keeps' is not approved"]) {
      expect(rejection).toEqual(refused(404, reason))
    }
  })

  test('limits the number of reasons', () => {
    const many = Array.from({ length: 30 }, (_, index) => `one/gone-${index}`)
    expect(targets('p', scope({ policies: { p: many } }))).toEqual(refused(404, '25 more cannot be used either.'))
  })
})

describe('approved models', () => {
  test('are exact ids or whole providers; the others are 404 with the reason', () => {
    const some = scope({ approved: ['one/us', 'two/*'] })
    expect(targets('one/us', some)).toEqual(['one/us'])
    expect(targets('two/silent', some)).toEqual(['two/silent'])
    expect(targets('one/eu', some)).toEqual(refused(404, "'one/eu' is not approved for this organization"))
    expect(targets('one/eu', scope({ approved: [] }))).toEqual(refused(404, 'not approved'))
  })

  test('are approved by each of their names', () => {
    expect(targets('one/us-latest', scope({ approved: ['one/us'] }))).toEqual(['one/us-latest'])
    expect(targets('one/us', scope({ approved: ['one/us-latest'] }))).toEqual(['one/us'])
    expect(targets('one/us-latest', scope({ approved: ['one/eu'] }))).toEqual(refused(404, 'not approved'))
  })

  test('apply to the targets of aliases and policies, managed ones as well', () => {
    const all = { aliases: { a: 'one/us' }, policies: { p: ['one/us', 'one/eu'] }, approved: ['one/eu'] }
    expect(targets('a', scope(all))).toEqual(refused(404, 'not approved'))
    expect(targets('p', scope(all))).toEqual(['one/eu'])
    expect(targets('m', scope(all), { m: ['one/us', 'one/eu'] })).toEqual(['one/eu'])
  })
})

describe('data rules', () => {
  test('exclude models that violate them or are unknown, and report the rule', () => {
    const eu = scope({ rules: { geolocation: ['eu'] } })
    expect(targets('one/eu', eu)).toEqual(['one/eu'])
    expect(targets('one/us', eu)).toEqual(
      refused(404, "is hosted in 'us', and this organization's rule geolocation allows eu"),
    )
    expect(targets('two/silent', eu)).toEqual(refused(404, 'is unknown, and this organization'))
    expect(targets('any/m', eu)).toEqual(refused(404, 'geolocation'))
    const forgets = scope({ rules: { data_retention: false } })
    expect(targets('one/eu', forgets)).toEqual(['one/eu'])
    expect(targets('one/us', forgets)).toEqual(refused(404, 'rule data_retention: false'))
    expect(targets('two/silent', forgets)).toEqual(refused(404, 'rule data_retention: false'))
    const untrained = scope({ rules: { data_used_for_training: false } })
    expect(targets('one/us', untrained)).toEqual(['one/us'])
    expect(targets('two/keeps', untrained)).toEqual(refused(404, 'rule data_used_for_training: false'))
    expect(targets('two/silent', untrained)).toEqual(refused(404, 'rule data_used_for_training: false'))
  })

  test('filter the targets of a policy', () => {
    const policies = { p: ['one/us', 'two/silent', 'one/eu'] }
    expect(targets('p', scope({ policies, rules: { geolocation: ['eu', 'jp'] } }))).toEqual(['one/eu'])
  })
})

describe('an id that ends in @eu', () => {
  const policies = { 'p@eu': ['one/us', 'one/eu', 'two/silent'], p: ['one/us', 'one/eu'], 'q@eu': ['one/us'] }

  test('is served by models in the EU only, whether policy, alias or target of an alias', () => {
    const all = scope({ policies, aliases: { 'a@eu': 'p', b: 'p@eu', 'c@eu': 'one/us' } })
    for (const name of ['p@eu', 'policy/p@eu', 'a@eu', 'b']) expect(targets(name, all), name).toEqual(['one/eu'])
    for (const name of ['q@eu', 'c@eu']) expect(targets(name, all), name).toEqual(refused(404, "'@eu'"))
    expect(targets('p', all)).toEqual(['one/us', 'one/eu'])
    expect(targets('p@eu', undefined, policies)).toEqual(['one/eu'])
  })
})

describe('an access list', () => {
  const names = { aliases: { a: 'one/us', b: 'p' }, policies: { p: ['one/us', 'one/eu'] } }

  test('has ids of models and whole providers; the others are 403', () => {
    const some = scope({ access: ['one/us', 'two/*'] })
    expect(targets('one/us', some)).toEqual(['one/us'])
    expect(targets('two/keeps', some)).toEqual(['two/keeps'])
    expect(targets('one/eu', some)).toEqual(refused(403, "'one/eu' is not in the access list of this API key"))
    expect(targets('one/eu', scope({ access: [] }))).toEqual(refused(403, 'access list'))
  })

  test('that names an alias or a policy reaches their models through it, and only so', () => {
    expect(targets('a', scope({ ...names, access: ['a'] }))).toEqual(['one/us'])
    expect(targets('one/us', scope({ ...names, access: ['a'] }))).toEqual(refused(403, 'access list'))
    for (const access of [['p'], ['policy/p']]) {
      expect(targets('p', scope({ ...names, access }))).toEqual(['one/us', 'one/eu'])
      expect(targets('policy/p', scope({ ...names, access }))).toEqual(['one/us', 'one/eu'])
      expect(targets('b', scope({ ...names, access }))).toEqual(['one/us', 'one/eu'])
    }
    expect(targets('b', scope({ ...names, access: ['b'] }))).toEqual(['one/us', 'one/eu'])
    expect(targets('p', scope({ ...names, access: ['b'] }))).toEqual(refused(403, 'access list'))
    expect(targets('m', scope({ access: ['m'] }), { m: ['one/us'] })).toEqual(['one/us'])
  })

  test('that names models allows names that lead to them', () => {
    expect(targets('a', scope({ ...names, access: ['one/us'] }))).toEqual(['one/us'])
    expect(targets('p', scope({ ...names, access: ['one/eu'] }))).toEqual(['one/eu'])
    expect(targets('p', scope({ ...names, access: ['two/*'] }))).toEqual(refused(403, "'p' has no target"))
  })

  test('of a provider does not open an alias that looks like one of its models', () => {
    const all = { aliases: { 'one/mine': 'two/keeps' }, access: ['one/*'] }
    expect(targets('one/mine', scope(all))).toEqual(refused(403, 'access list'))
    expect(targets('one/mine', scope({ ...all, access: ['one/mine'] }))).toEqual(['two/keeps'])
  })

  test('and other rules: the status is that of the first target that is not allowed', () => {
    const rules = { policies: { p: ['away/m', 'one/eu', 'one/us'], q: ['one/us', 'one/eu'] } }
    const both = scope({ ...rules, approved: ['one/us'], access: ['one/eu'] })
    expect(targets('p', both)).toEqual(refused(404, "'one/eu' is not approved"))
    expect(targets('q', both)).toEqual(refused(403, "'one/us' is not in the access list"))
  })

  test('does not allow models that are not approved: those are 404', () => {
    expect(targets('one/us', scope({ access: ['one/us'], approved: ['one/eu'] }))).toEqual(refused(404, 'not approved'))
    expect(targets('one/us', scope({ access: ['two/*'], approved: ['one/eu'] }))).toEqual(refused(404, 'not approved'))
  })
})

describe('the listed models', () => {
  const managed = { m: ['away/m', 'one/eu'], none: ['away/m'] }
  const ids = (listed: { id: string }[]) => listed.map(({ id }) => id).toSorted()

  test('are for all callers the configured models, without names', async () => {
    expect(ids(await listedModels(directory(managed)))).toEqual(['one/eu', 'one/us', 'two/keeps', 'two/silent'])
  })

  test('are in a scope the models it leaves and the names that lead to one, with its facts', async () => {
    const within = scope({
      aliases: { a: 'm', bad: 'one/us' },
      policies: { p: ['one/us', 'one/eu'] },
      approved: ['one/eu'],
    })
    const listed = await listedModels(directory(managed), within)
    expect(ids(listed)).toEqual(['a', 'm', 'one/eu', 'p'])
    expect(listed.find(({ id }) => id === 'p')).toEqual({
      id: 'p',
      entry: expect.objectContaining({ geolocation: 'eu', description: 'about p' }),
      isName: true,
    })
    expect(listed.find(({ id }) => id === 'a')?.entry.description).toBeUndefined()
  })

  test('has each id once: a name replaces the model that it hides', async () => {
    const listed = await listedModels(directory(managed), scope({ aliases: { 'one/us': 'one/eu' } }))
    expect(listed.filter(({ id }) => id === 'one/us')).toMatchObject([{ isName: true, entry: { geolocation: 'eu' } }])
  })

  test('of managed policies are those that have a target, for all callers', () => {
    expect(ids(listedPolicies(directory(managed)))).toEqual(['m'])
  })

  test('can be called, and others cannot', async () => {
    const within = scope({
      aliases: { a: 'one/us' },
      approved: ['one/*'],
      access: ['a', 'one/eu'],
      rules: { data_used_for_training: false },
    })
    const listed = ids(await listedModels(directory(managed), within))
    expect(listed).toEqual(['a', 'm', 'one/eu'])
    for (const id of listed) expect(targets(id, within, managed), id).toEqual([expect.stringContaining('one/')])
    for (const id of ['two/keeps', 'two/silent', 'none'])
      expect(targets(id, within, managed), id).toEqual(refused(404, ''))
  })

  test('look the targets of a policy up once, however many aliases it has', async () => {
    const policies = { p: ['one/eu', 'one/us', 'two/keeps'] }
    const known = directory()
    let lookedUp = 0
    const counting = {
      ...known,
      identify(provider: string, model: string) {
        lookedUp++
        return known.identify(provider, model)
      },
    }
    const aliases = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`a${index}`, 'p']))
    const listed = await listedModels(counting, scope({ aliases, policies }))
    expect(ids(listed)).toHaveLength(505)
    expect(lookedUp).toBeLessThan(20)
  })

  test('give an alias what it promises or allows by itself, beside others of the same policy', async () => {
    const policies = { p: ['one/eu', 'one/us'] }
    const aliases = { plain: 'p', 'near@eu': 'p', granted: 'p' }
    const listed = await listedModels(directory(), scope({ aliases, policies, access: ['granted', 'near@eu'] }))
    expect(ids(listed)).toEqual(['granted', 'near@eu'])
    const facts = (id: string) => listed.find((one) => one.id === id)?.entry.geolocation
    expect([facts('near@eu'), facts('granted')]).toEqual(['eu', 'global'])
  })
})
