import { describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import { defaultRouting } from '../../src/core/routing/rules.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { targetId } from '../../src/manifest/target.ts'
import { ModelNames } from '../../src/routing/names/model-names.ts'
import { type Directory, type Purpose, resolve, type UnprefixedModels } from '../../src/routing/names/resolve.ts'
import type { Scope } from '../../src/routing/names/scope.ts'
import { scope } from './names.ts'

const models: { [id: string]: Partial<ModelEntry> } = {
  'acme/gpt-5': { model_lab: 'openai', geolocation: 'us' },
  'openai/gpt-5': { model_lab: 'openai', geolocation: 'us' },
  'openai/gpt-5-mini': { model_lab: 'openai' },
  'openai/embedder': { api: 'embedding' },
  'openai/gone-model': { shutdown: '2020-01-01' },
  'openrouter/openai/gpt-5-nano': { model_lab: 'openai' },
  'anthropic/claude-sonnet-5': { model_lab: 'anthropic', geolocation: 'eu', aliases: ['claude-sonnet-latest'] },
  'unset/gpt-5': {},
  'unset/only-here': {},
}

/** Returns a directory of these models; `unset` is not configured. */
function directory(
  facts: { unprefixed?: UnprefixedModels; preferred?: string[]; list?: typeof models } = {},
): Directory {
  const { unprefixed = 'refuse', preferred, list: known = models } = facts
  const list = Object.entries(known).map(([id, entry]) => {
    const slash = id.indexOf('/')
    return { provider: id.slice(0, slash), model: id.slice(slash + 1), entry: { api: 'chat', ...entry } as ModelEntry }
  })
  const provider = (slug: string) =>
    ({
      slug,
      missing: slug === 'unset' ? ['UNSET_KEY'] : [],
      chat: {},
      operations: {},
      unknownModels: 'refuse',
    }) as unknown as Provider
  const byId = new Map(
    list.flatMap((one) =>
      [one.model, ...(one.entry.aliases ?? [])].map((name) => [`${one.provider}/${name}`, one] as const),
    ),
  )
  return {
    providers: new Map(list.map((one) => [one.provider, provider(one.provider)])),
    identify(slug, model) {
      const found = byId.get(`${slug}/${model}`)
      return found && { model, name: found.model, is: found.model, entry: found.entry }
    },
    managed: new Map([['managed-best', { id: 'managed-best', description: '', targets: ['openai/gpt-5'] }]]),
    routing: defaultRouting,
    names: new ModelNames(() => list, preferred),
    unprefixed,
  }
}

function resolved(name: string, within?: Scope, facts?: Parameters<typeof directory>[0], purpose?: Purpose): unknown {
  try {
    return resolve(name, directory(facts), within, purpose).targets.map(targetId)
  } catch (thrown) {
    if (!(thrown instanceof RouterError)) throw thrown
    return `${thrown.code}: ${thrown.message}`
  }
}

const first = { unprefixed: 'first' } as const
const ofChat: Purpose = { apis: ['chat'], serves: () => true, name: 'chat models' }

describe('an unknown name', () => {
  test.each([
    ['gpt-5', "Did you mean 'openai/gpt-5' or 'acme/gpt-5'?"],
    ['GPT-5', "Did you mean 'openai/gpt-5' or 'acme/gpt-5'?"],
    ['gpt5-mini', "Did you mean 'openai/gpt-5-mini'?"],
    ['openai/gpt5-mini', "Did you mean 'openai/gpt-5-mini'?"],
    ['opnai/gpt-5', "Did you mean 'openai/gpt-5' or 'acme/gpt-5'?"],
    ['acne/gpt-5', "Did you mean 'acme/gpt-5' or 'openai/gpt-5'?"],
    ['anthropic/gpt-5', "Did you mean 'openai/gpt-5' or 'acme/gpt-5'?"],
    ['gpt-5-nano', "Did you mean 'openrouter/openai/gpt-5-nano'?"],
    ['claude-sonnet', "Did you mean 'anthropic/claude-sonnet-5'?"],
    ['managed-bets', "Did you mean 'managed-best'?"],
    ['policy/managed-bset', "Did you mean 'managed-best'?"],
    ['team/faast', "Did you mean 'team/fast'?"],
  ])('%s is a 404 model_not_found that proposes what may be meant', (name, proposal) => {
    const refusal = resolved(name, scope({ aliases: { 'team/fast': 'openai/gpt-5' } }))
    expect(refusal).toMatch(/^model_not_found: /)
    expect(refusal).toContain(` ${proposal}`)
  })

  test('is refused without a proposal where nothing is near', () => {
    for (const name of ['quite-another-thing', 'x', 'x'.repeat(200), '\u{1F600}'.repeat(50), '/', 'a/'])
      expect(resolved(name, scope({})), name).not.toContain('Did you mean')
  })

  test('is not explained by a model that is retired, not configured, or of another kind', () => {
    expect(resolved('gone-modle', scope({}))).not.toContain('Did you mean')
    expect(resolved('only-here', scope({}))).not.toContain('unset')
    expect(resolved('embeder', scope({}), {}, ofChat)).not.toContain('Did you mean')
    expect(resolved('embeder', scope({}))).toContain("Did you mean 'openai/embedder'?")
  })
})

describe('a proposal never names what the caller may not use', () => {
  test.each<[string, Scope]>([
    ['the access list', scope({ access: ['acme/*'] })],
    ['approved models', scope({ approved: ['acme/gpt-5'] })],
  ])('by %s', (_what, within) => {
    expect(resolved('gpt-5', within)).toContain("Did you mean 'acme/gpt-5'?")
    expect(resolved('gpt-5-mni', within)).not.toContain('openai')
    expect(resolved('managed-bset', within)).not.toContain('managed-best')
  })

  test('by data rules', () => {
    const within = scope({ rules: { geolocation: ['eu'] } })
    expect(resolved('gpt-5', within)).not.toContain('Did you mean')
    expect(resolved('claude-sonet-5', within)).toContain("'anthropic/claude-sonnet-5'")
  })

  test('also not where it is allowed to use an alias of the same targets', () => {
    const within = scope({ aliases: { fast: 'openai/gpt-5', quick: 'openai/gpt-5-mini' }, access: ['fast'] })
    expect(resolved('fasst', within)).toContain("Did you mean 'fast'?")
    expect(resolved('qick', within)).not.toContain('quick')
    expect(resolved('gpt-5', within)).not.toContain('Did you mean')
  })

  test('of another organization', () => {
    const known = directory()
    const message = (name: string, within: Scope) => {
      try {
        return resolve(name, known, within)
      } catch (thrown) {
        return String(thrown)
      }
    }
    expect(message('secret-projct', scope({ aliases: { 'secret-project': 'openai/gpt-5' } }))).toContain(
      'secret-project',
    )
    expect(message('secret-projct', scope({}))).not.toContain('secret-project')
  })
})

describe('unprefixed_models: first', () => {
  test('lets a bare name be an alias, else a policy of the organization, else a managed one, else a model', () => {
    const name = 'managed-best'
    const policies = { [name]: ['openai/gpt-5-mini'] }
    expect(resolved(name, scope({ aliases: { [name]: 'acme/gpt-5' }, policies }), first)).toEqual(['acme/gpt-5'])
    expect(resolved(name, scope({ policies }), first)).toEqual(['openai/gpt-5-mini'])
    expect(resolved(name, scope({}), first)).toEqual(['openai/gpt-5'])
    expect(resolved('gpt-5-mini', scope({}), first)).toEqual(['openai/gpt-5-mini'])
    expect(resolved('claude-sonnet-latest', scope({}), first)).toEqual(['anthropic/claude-sonnet-latest'])
  })

  test('takes the providers of the configuration in their order, then that of the lab, then the others by slug', () => {
    const preferring = (...preferred: string[]) => resolved('gpt-5', scope({}), { ...first, preferred })
    expect(preferring()).toEqual(['openai/gpt-5'])
    expect(preferring('anthropic', 'acme', 'openai')).toEqual(['acme/gpt-5'])
    expect(preferring('unset')).toEqual(['openai/gpt-5'])
    const list = { 'b/m': {}, 'c/m': {}, 'a/m': {} }
    expect(resolved('m', scope({}), { ...first, list })).toEqual(['a/m'])
  })

  test('takes the first one that the caller may use, for this purpose', () => {
    expect(resolved('gpt-5', scope({ access: ['acme/*'] }), first)).toEqual(['acme/gpt-5'])
    expect(resolved('gpt-5', scope({ approved: ['acme/gpt-5'] }), first)).toEqual(['acme/gpt-5'])
    const list = { 'a/m': { api: 'embedding' }, 'b/m': {} }
    expect(resolved('m', scope({}), { ...first, list }, ofChat)).toEqual(['b/m'])
  })

  test('names no model that the caller may not use', () => {
    const hidden = resolved('gpt-5', scope({ access: ['anthropic/*'] }), first)
    expect(hidden).toMatch(/^model_not_found: The model 'gpt-5' does not exist\. Write/)
    expect(hidden).not.toMatch(/openai|acme|unset|access list/)
  })

  test('says why a model that the caller may use cannot be called', () => {
    expect(resolved('only-here', scope({}), first)).toContain('set UNSET_KEY')
    expect(resolved('embedder', scope({}), first, ofChat)).toMatch(/^invalid_request: The model 'openai\/embedder' has/)
  })

  test('does not reach a policy by its prefix, nor a name with another prefix', () => {
    expect(resolved('policy/gpt-5', scope({}), first)).toMatch(/^model_not_found/)
    expect(resolved('openai/gpt-5-nano', scope({}), first)).toMatch(/^model_not_found/)
  })
})

test('an unknown name costs little, whatever it is and however many models there are', () => {
  const ids = Array.from({ length: 6_000 }, (_, index) => `p${index % 60}/instruct-model-turbo-${index}-instruct`)
  const known = directory({ list: Object.fromEntries(ids.map((id) => [id, {}])) })
  const aliases = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, index) => [`instruct-alias-${index}`, 'p1/none']),
  )
  const within = scope({ aliases, access: [] })
  const refuse = (name: string) => {
    try {
      resolve(name, known, within)
    } catch {}
  }
  refuse('warm')
  const worst = [
    'instruct-model-turbo-instruct-model-turbo-instruct-turbo-model',
    'p1/instruct-model-turbo-x-instruct',
    'z'.repeat(1_000_000),
    'instruct-alias',
  ]
  const begun = process.cpuUsage()
  for (let round = 0; round < 50; round++) for (const name of worst) refuse(name)
  const { user, system } = process.cpuUsage(begun)
  expect((user + system) / 1_000 / (50 * worst.length)).toBeLessThan(5 * Number(process.env.TEST_TIME_FACTOR ?? 1))
})
