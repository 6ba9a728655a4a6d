import { RouterError } from '../../src/core/errors.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Policy } from '../../src/core/names.ts'
import { defaultRouting } from '../../src/core/routing/rules.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { targetId } from '../../src/manifest/target.ts'
import { ModelNames } from '../../src/routing/names/model-names.ts'
import { resolve, type UnprefixedModels } from '../../src/routing/names/resolve.ts'
import type { Scope } from '../../src/routing/names/scope.ts'

/** Providers and models as rules see them; `away` is not configured, `any` passes on unknown models. */
const models: { [id: string]: Partial<ModelEntry> } = {
  'one/eu': { geolocation: 'eu', data_retention: false, data_used_for_training: false },
  'one/us': { geolocation: 'us', data_retention: true, data_used_for_training: false, aliases: ['us-latest'] },
  'two/keeps': { geolocation: 'eu', data_retention: true, data_used_for_training: true },
  'two/silent': {},
  'away/m': { geolocation: 'eu' },
}

const entries = new Map(Object.entries(models).map(([id, facts]) => [id, { api: 'chat', ...facts } as ModelEntry]))

function provider(slug: string, facts: Partial<Provider> = {}): [string, Provider] {
  return [slug, { slug, missing: [], chat: {}, unknownModels: 'refuse', ...facts } as unknown as Provider]
}

/** A directory of those, with managed policies by id. */
export function directory(
  managed: { [id: string]: readonly string[] } = {},
  { unprefixed = 'refuse', preferred = [] }: { unprefixed?: UnprefixedModels; preferred?: readonly string[] } = {},
) {
  const list = () =>
    [...entries].map(([id, entry]) => ({ provider: id.split('/')[0] ?? '', model: id.split('/')[1] ?? '', entry }))
  const find = (slug: string, model: string) => {
    const named = [...entries].find(([id, { aliases }]) => {
      const [whose, name] = id.split('/')
      return whose === slug && (name === model || aliases?.includes(model))
    })
    return named?.[1]
  }
  return {
    providers: new Map([
      provider('one'),
      provider('two'),
      provider('away', { missing: ['AWAY_KEY'] }),
      provider('any', { unknownModels: 'pass' }),
      provider('mute', { chat: undefined } as unknown as Partial<Provider>),
    ]),
    findModel: find,
    identify: (slug: string, model: string) => {
      const entry = find(slug, model)
      const name = [...entries].find(([, known]) => known === entry)?.[0].split('/')[1]
      return entry && name !== undefined ? { model, name, is: model, entry } : undefined
    },
    managed: policies(managed),
    routing: defaultRouting,
    models: list,
    names: new ModelNames(list, preferred),
    unprefixed,
  }
}

/** The rules of a scope; absent ones do not limit. */
export function scope(facts: {
  aliases?: { [name: string]: string }
  policies?: { [id: string]: readonly string[] }
  approved?: readonly string[]
  rules?: Scope['rules']['dataRules']
  access?: readonly string[]
}): Scope {
  return {
    rules: {
      aliases: new Map(Object.entries(facts.aliases ?? {})),
      policies: policies(facts.policies ?? {}),
      approvedModels: facts.approved ?? null,
      dataRules: facts.rules ?? {},
    },
    accessList: facts.access ?? null,
  }
}

function policies(targets: { [id: string]: readonly string[] }): Map<string, Policy> {
  return new Map(Object.entries(targets).map(([id, list]) => [id, { id, description: `about ${id}`, targets: list }]))
}

/** The ids of the targets of a name, or the status and the message of the refusal. */
export function targets(name: string, within?: Scope, managed?: { [id: string]: readonly string[] }): unknown {
  try {
    return resolve(name, directory(managed), within).targets.map(targetId)
  } catch (thrown) {
    if (!(thrown instanceof RouterError)) throw thrown
    return [thrown.status, thrown.message]
  }
}
