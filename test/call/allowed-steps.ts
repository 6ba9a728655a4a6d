import { expect } from 'vitest'
import type { DataRules } from '../../src/core/names.ts'
import { asked, both, expectListedRefusal, expectServedBy, refusalsOf } from './routing-steps.ts'
import { forms, type Scenario, type Step } from './table.ts'
import { callWorld, idOf, type Keyed, plainWorld, policyOf, type World } from './world.ts'

// Targets that a key and its organization may use, and fields that a request may not have.

const usOnly: DataRules = { geolocation: ['us'] }
const euOnly: DataRules = { geolocation: ['eu'] }

/** A key of an organization of its own with rules for data. */
async function keyWithRules(world: World, rules: DataRules): Promise<Keyed> {
  const key = await world.keyOfOwn()
  await world.store.organizations.setDataRules(key.organization, rules)
  return key
}

const allowed: readonly Step[] = [
  {
    fact: 'an unknown model is a 404 and among the refusals',
    check: (route, world) =>
      expectListedRefusal(route, world, { model: `one-${route.format}/nobody` }, [404, 'model_not_found']),
  },
  {
    fact: 'a model without its provider is a 404 that proposes what the key may call, and names nothing else',
    async check(route, world) {
      const { secret } = await world.keyOfOwn({ accessList: [idOf(route, 'two')] })
      const { status, json } = await world.ask(route, { secret, model: route.models })
      expect([status, json?.error?.code, asked(world)]).toEqual([404, 'model_not_found', []])
      expect(json?.error?.message).toContain(` Did you mean '${idOf(route, 'two')}'?`)
      expect(json?.error?.message).not.toContain('one-')
    },
  },
  {
    fact: 'a model that is not in the access list of the key is a 403 and among the refusals',
    check: async (route, world) => {
      const key = await world.keyOfOwn({ accessList: [idOf(route, 'two')] })
      return expectListedRefusal(route, world, { key }, [403, 'forbidden'])
    },
  },
  {
    fact: 'a target that is not in the access list of the key is left out of a policy',
    check: async (route, world) => {
      const { secret } = await world.key({ accessList: [idOf(route, 'two')] })
      return expectServedBy('two', route, world, { secret, body: { models: [idOf(route, 'two')] } })
    },
  },
  {
    fact: 'a model that the organization has not approved is a 404 and among the refusals',
    check: async (route, world) => {
      const key = await world.keyOfOwn()
      await world.store.organizations.approveModels(key.organization, [idOf(route, 'two')])
      return expectListedRefusal(route, world, { key }, [404, 'model_not_found'])
    },
  },
  {
    fact: 'a policy leads to the target that the organization has approved',
    check: async (route, world) => {
      const { organization, secret } = await world.keyOfOwn()
      await world.store.organizations.approveModels(organization, [idOf(route, 'two')])
      return expectServedBy('two', route, world, { secret, model: both(route) })
    },
  },
  {
    fact: 'a model outside of the regions of the organization is a 404 and among the refusals',
    check: async (route, world) =>
      expectListedRefusal(route, world, { key: await keyWithRules(world, euOnly) }, [404, 'model_not_found']),
  },
  {
    fact: 'a model in the region of the organization is served',
    check: async (route, world) =>
      expectServedBy('one', route, world, { secret: (await keyWithRules(world, usOnly)).secret }),
  },
  ...(['data_retention', 'data_used_for_training'] as const).map(
    (rule): Step => ({
      fact: `a model whose provider does not promise what the organization demands (${rule}) is a 404`,
      check: async (route, world) =>
        expectListedRefusal(route, world, { key: await keyWithRules(world, { [rule]: false }) }, [
          404,
          'model_not_found',
        ]),
    }),
  ),
  {
    fact: 'a name that promises the EU leads to the target that is there',
    check: (route, world) => expectServedBy('two', route, world, { model: `${policyOf(route, 'region')}@eu` }),
  },
  {
    fact: 'a name that promises the EU leads to no other target by further names',
    check: (route, world) => {
      const body = { models: [idOf(route, 'one')] }
      return expectServedBy('two', route, world, { model: `${policyOf(route, 'region')}@eu`, body })
    },
  },
]

const governed: readonly Step[] = [
  ...['fallbacks', 'preset', 'workspace_id'].map(
    (field): Step => ({
      fact: `the restricted field \`${field}\` is refused with 400 that names it`,
      async check(route, world) {
        const key = await world.key()
        const { status, json } = await world.ask(route, { secret: key.secret, body: { [field]: 'other' } })
        expect([status, json?.error?.param, asked(world)]).toEqual([400, field, []])
        expect(await refusalsOf(world, key)).toMatchObject([{ code: 'invalid_request' }])
      },
    }),
  ),
  {
    fact: 'a restricted field inside of `extra_body` is refused with 400',
    async check(route, world) {
      const { secret } = await world.key()
      const { status } = await world.ask(route, { secret, body: { extra_body: { fallbacks: ['other'] } } })
      expect([status, asked(world)]).toEqual([400, []])
    },
    except: [forms('its fields are texts, which are not searched for further fields')],
  },
  {
    fact: 'a tier whose price is not known is refused with 400',
    async check(route, world) {
      const { secret } = await world.key()
      const { status, json } = await world.ask(route, { secret, body: { service_tier: 'priority' } })
      expect([status, json?.error?.param, asked(world)]).toEqual([400, 'service_tier', []])
    },
    except: [
      {
        at: ({ path }) => path === '/v1/rerank',
        because: 'its providers get a body of their own, which has no tier',
        async instead(route, world) {
          const { secret } = await world.key()
          const { status, headers } = await world.ask(route, { secret, body: { service_tier: 'priority' } })
          expect([status, headers.get('x-router-dropped')]).toEqual([200, 'service_tier'])
        },
      },
    ],
  },
]

const unprefixed: readonly Step[] = [
  {
    fact: 'a model without its provider is that of the first provider that the key may use',
    check: async (route, world) => {
      const { secret } = await world.key({ accessList: [idOf(route, 'two'), idOf(route, 'one')] })
      return expectServedBy('one', route, world, { secret, model: route.models })
    },
  },
  {
    fact: 'a model without its provider is not that of a provider that the key may not use',
    check: async (route, world) => {
      const { secret } = await world.key({ accessList: [idOf(route, 'two')] })
      return expectServedBy('two', route, world, { secret, model: route.models })
    },
  },
  {
    fact: 'a model without its provider that the key may not use anywhere is a 404 that names no provider',
    async check(route, world) {
      const key = await world.keyOfOwn({ accessList: [] })
      const asking = { key, model: route.models }
      await expectListedRefusal(route, world, asking, [404, 'model_not_found'])
      const { json } = await world.ask(route, {
        ...asking,
        secret: key.secret,
        headers: { 'x-router-explain': 'true' },
      })
      expect(JSON.stringify(json)).not.toMatch(/(?:one|two)-/)
    },
  },
]

/** What a model without its provider means, where the configuration lets it mean something. */
export const unprefixedModels: Scenario = {
  name: 'models without a provider',
  start: () => callWorld({ settings: { unprefixed_models: 'first' } }),
  steps: unprefixed,
}

export const allowedTargets: Scenario = {
  name: 'allowed targets and fields',
  start: plainWorld,
  steps: [...allowed, ...governed],
}
