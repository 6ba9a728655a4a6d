import type { JsonObject } from '../core/json.ts'
import type { DataRules } from '../core/names.ts'
import { limitsEntry } from '../management/key-entry.ts'
import { patternCheck, placeCheck } from '../management/names.ts'
import { usdOf, usdText } from '../money/usd.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { checked, limitsSaid, modelsFrom, noted, organizationOf } from './admin.ts'
import { type Act, type Action, type Words, WrongUsage } from './store-command.ts'

const text = { type: 'string' } as const

/** The actions of `org` that show and change what holds for the calls of an organization; without options they only show. */
export const settingActions: { readonly [name: string]: Action } = {
  show: {
    options: {},
    positionals: 1,
    read: (words) => setting('show', words, {}),
  },
  limits: {
    options: { 'requests-per-minute': text, 'tokens-per-minute': text, concurrent: text },
    positionals: 1,
    read: (words) => {
      const said = limitsSaid(words)
      const change: Setting['change'] = (store, { id, limits }) =>
        store.organizations.setLimits(id, { ...limits, ...said })
      return setting('limits', words, Object.keys(said).length === 0 ? {} : { change })
    },
  },
  models: {
    options: {},
    positionals: Number.POSITIVE_INFINITY,
    read: async (words, known) => {
      const [, ...models] = words.positionals
      const approved = modelsFrom(models, 'org models')
      if (approved?.length) {
        const check = patternCheck(await known())
        for (const model of approved) checked(check, model, 'org models')
      }
      const change: Setting['change'] = (store, { id }) => store.organizations.approveModels(id, approved)
      return setting('models', words, models.length === 0 ? {} : { change })
    },
  },
  rules: {
    options: { geolocation: { type: 'string', multiple: true }, retention: text, training: text },
    positionals: 1,
    read: async (words, known) => {
      const places = placesSaid(words)
      if (places.length > 0 && places[0] !== 'any') {
        const check = placeCheck(await known())
        for (const place of places) checked(check, place, '--geolocation')
      }
      const said = dataRulesSaid(words, places)
      const change: Setting['change'] = (store, { id, dataRules }) =>
        store.organizations.setDataRules(
          id,
          said.reduce((rules, one) => one(rules), dataRules),
        )
      return setting('rules', words, said.length === 0 ? {} : { change })
    },
  },
  balance: {
    options: {},
    positionals: 2,
    read: (words) => {
      const [, state] = words.positionals
      if (state !== undefined && state !== 'on' && state !== 'off') {
        throw new WrongUsage(`the balance is a limit ('on') or not ('off'), not '${state}'`)
      }
      const change: Setting['change'] = (store, { id }) => store.organizations.enforceBalance(id, state === 'on')
      return setting('balance', words, state === undefined ? {} : { change })
    },
  },
}

type Setting = { change?(store: Store, rules: OrganizationRules): void }

/** Changes one setting, if it is to be changed, notes it, and shows all settings as they are then. */
function setting(what: string, { positionals: [name] }: Words, { change }: Setting): Act {
  if (!name) throw new WrongUsage(`say whose: org ${what} <name or id>; org --help shows the rest`)
  return (store) => {
    const { id } = organizationOf(store, name)
    const rules = () => store.organizations.rules(id) as OrganizationRules
    if (change) {
      noted(store, () => {
        const before = entry(rules())
        change(store, rules())
        const after = entry(rules())
        return { result: undefined, organization: id, action: `organization.${what}`, subject: id, before, after }
      })
    }
    const spendNano = store.spend.totalOfOrganization(id)
    const names = { aliases: Object.fromEntries(rules().aliases), policies: policiesOf(rules()) }
    const balance = { balance: usdOf(rules().creditNano - spendNano) }
    return { json: { id, name: rules().name, ...balance, ...entry(rules()), ...names }, text: told(rules(), spendNano) }
  }
}

/** What may be set, in the words of the management API. */
function entry({ limits, approvedModels, dataRules, enforcesBalance }: OrganizationRules): JsonObject {
  const { geolocation, data_retention = null, data_used_for_training = null } = dataRules
  return {
    enforces_balance: enforcesBalance,
    limits: limitsEntry(limits),
    approved_models: approvedModels === null ? null : [...approvedModels],
    rules: { geolocation: geolocation ? [...geolocation] : null, data_retention, data_used_for_training },
  }
}

function policiesOf({ policies }: OrganizationRules): JsonObject {
  return Object.fromEntries([...policies.values()].map(({ id, targets }) => [id, [...targets]]))
}

function told(rules: OrganizationRules, spendNano: bigint): string {
  const { id, name, limits, approvedModels, dataRules, enforcesBalance, aliases, policies } = rules
  const limit = (count: number | null) => (count === null ? 'unlimited' : String(count))
  const allowed = (rule: false | undefined) => (rule === false ? 'forbidden' : 'allowed')
  const balance = usdText(rules.creditNano - spendNano)
  const lines = [
    ['organization', `${name} (${id})`],
    ['balance', `${balance} USD, ${enforcesBalance ? 'calls are refused when it is used up' : 'no limit'}`],
    ['requests per minute', limit(limits.requestsPerMinute)],
    ['tokens per minute', limit(limits.tokensPerMinute)],
    ['concurrent calls', limit(limits.concurrentCalls)],
    ['models', approvedModels === null ? 'all' : approvedModels.join(', ') || 'none'],
    ['geolocation', dataRules.geolocation?.join(', ') ?? 'any'],
    ['retention', allowed(dataRules.data_retention)],
    ['training', allowed(dataRules.data_used_for_training)],
    ['aliases', [...aliases].map(([alias, target]) => `${alias} = ${target}`).join(', ') || 'none'],
    ['policies', [...policies.keys()].join(', ') || 'none'],
  ]
  return lines.map(([what = '', is = '']) => `${what.padEnd(21)}${is}`).join('\n')
}

/** The places of a rule, each once; `any` stands alone. */
function placesSaid(words: Words): string[] {
  const places = words.texts('geolocation').flatMap((said) => said.split(',').map((place) => place.trim()))
  if (places.some((place) => place === '' || (place === 'any' && places.length > 1))) {
    throw new WrongUsage(`--geolocation is '${places.join(',')}'; write places as eu or eu,us, or any`)
  }
  return [...new Set(places)]
}

/** The changes of rules that options ask for. */
function dataRulesSaid(words: Words, places: string[]): ((rules: DataRules) => DataRules)[] {
  const retention = isForbidden(words, 'retention')
  const training = isForbidden(words, 'training')
  return [
    ...(places.length === 0
      ? []
      : [({ geolocation: _, ...rest }: DataRules) => (places[0] === 'any' ? rest : { ...rest, geolocation: places })]),
    ...(retention === undefined
      ? []
      : [
          ({ data_retention: _, ...rest }: DataRules) =>
            retention ? { ...rest, data_retention: false as const } : rest,
        ]),
    ...(training === undefined
      ? []
      : [
          ({ data_used_for_training: _, ...rest }: DataRules) =>
            training ? { ...rest, data_used_for_training: false as const } : rest,
        ]),
  ]
}

function isForbidden(words: Words, option: string): boolean | undefined {
  const said = words.text(option)
  if (said === undefined) return undefined
  if (said === 'forbidden' || said === 'allowed') return said === 'forbidden'
  throw new WrongUsage(`--${option} is '${said}'; write forbidden or allowed`)
}
