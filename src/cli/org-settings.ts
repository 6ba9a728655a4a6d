import type { JsonObject } from '../core/json.ts'
import type { DataRules } from '../core/names.ts'
import { limitsEntry } from '../management/key-entry.ts'
import { patternCheck, placeCheck } from '../management/names.ts'
import { usdOf, usdText } from '../money/usd.ts'
import { audited } from '../store/audit.ts'
import type { OrganizationRules } from '../store/rules.ts'
import type { Tables } from '../store/tables.ts'
import { actor, checked, modelsFrom, organizationOf, pluginChange, rateLimitOptions, rateLimitsFrom } from './admin.ts'
import { type Args, UsageError } from './command.ts'
import type { StoreAction, StoreOperation } from './store-command.ts'

const text = { type: 'string' } as const

/** The actions of `org` that show and change the settings of an organization; without options they only show them. */
export const settingActions: { readonly [name: string]: StoreAction } = {
  show: {
    options: {},
    positionals: 1,
    prepare: (args) => setting('show', args, {}),
  },
  limits: {
    options: rateLimitOptions,
    positionals: 1,
    prepare: (args) => {
      const given = rateLimitsFrom(args)
      const change: Setting['change'] = (store, { id, limits }) =>
        store.organizations.setLimits(id, { ...limits, ...given })
      return setting('limits', args, Object.keys(given).length === 0 ? {} : { change })
    },
  },
  models: {
    options: {},
    positionals: Number.POSITIVE_INFINITY,
    prepare: async (args, loadDirectory) => {
      const [, ...models] = args.positionals
      const approved = modelsFrom(models, 'org models')
      if (approved?.length) {
        const check = patternCheck(await loadDirectory())
        for (const model of approved) checked(check, model, 'org models')
      }
      const change: Setting['change'] = (store, { id }) => store.organizations.approveModels(id, approved)
      return setting('models', args, models.length === 0 ? {} : { change })
    },
  },
  rules: {
    options: { geolocation: { type: 'string', multiple: true }, retention: text, training: text },
    positionals: 1,
    prepare: async (args, loadDirectory) => {
      const places = placesFrom(args)
      if (places.length > 0 && places[0] !== 'any') {
        const check = placeCheck(await loadDirectory())
        for (const place of places) checked(check, place, '--geolocation')
      }
      const ruleEdits = ruleChanges(args, places)
      const change: Setting['change'] = (store, { id, dataRules }) =>
        store.organizations.setDataRules(
          id,
          ruleEdits.reduce((rules, edit) => edit(rules), dataRules),
        )
      return setting('rules', args, ruleEdits.length === 0 ? {} : { change })
    },
  },
  plugins: {
    options: {},
    positionals: Number.POSITIVE_INFINITY,
    prepare: async (args, loadDirectory) => {
      const [, ...given] = args.positionals
      const changed = await pluginChange(given, loadDirectory)
      const change: Setting['change'] = (store, { id, plugins }) => store.organizations.setPlugins(id, changed(plugins))
      return setting('plugins', args, given.length === 0 ? {} : { change })
    },
  },
  balance: {
    options: {},
    positionals: 2,
    prepare: (args) => {
      const [, state] = args.positionals
      if (state !== undefined && state !== 'on' && state !== 'off') {
        throw new UsageError(`write on or off for the balance, not '${state}'`)
      }
      const change: Setting['change'] = (store, { id }) => store.organizations.enforceBalance(id, state === 'on')
      return setting('balance', args, state === undefined ? {} : { change })
    },
  },
}

type Setting = { change?(tx: Tables, rules: OrganizationRules): Promise<void> }

/** Changes one setting, where a change is given, with its audit entry; returns all settings as they are then. */
function setting(action: string, { positionals: [name] }: Args, { change }: Setting): StoreOperation {
  if (!name) throw new UsageError(`name the organization: org ${action} <name or id>; org --help shows the rest`)
  return async (store) => {
    const { id } = await organizationOf(store, name)
    if (change) {
      await audited(store, actor, async (tx) => {
        const found = await rulesOf(tx, id)
        await change(tx, found)
        const [before, after] = [entry(found), entry(await rulesOf(tx, id))]
        return { result: undefined, organization: id, action: `organization.${action}`, subject: id, before, after }
      })
    }
    const rules = await rulesOf(store, id)
    const spendNano = await store.spend.totalOfOrganization(id)
    const names = { aliases: Object.fromEntries(rules.aliases), policies: policiesOf(rules) }
    const balance = { balance: usdOf(rules.creditNano - spendNano) }
    return {
      json: { id, name: rules.name, ...balance, ...entry(rules), ...names },
      text: settingsText(rules, spendNano),
    }
  }
}

async function rulesOf({ organizations }: Pick<Tables, 'organizations'>, id: string): Promise<OrganizationRules> {
  return (await organizations.rules(id)) as OrganizationRules
}

/** Returns the settings in the form of the management API. */
function entry({ limits, approvedModels, dataRules, enforcesBalance, plugins }: OrganizationRules): JsonObject {
  const { geolocation, data_retention = null, data_used_for_training = null } = dataRules
  return {
    enforces_balance: enforcesBalance,
    limits: limitsEntry(limits),
    approved_models: approvedModels === null ? null : [...approvedModels],
    rules: { geolocation: geolocation ? [...geolocation] : null, data_retention, data_used_for_training },
    plugins: { ...plugins },
  }
}

function policiesOf({ policies }: OrganizationRules): JsonObject {
  return Object.fromEntries([...policies.values()].map(({ id, targets }) => [id, [...targets]]))
}

function settingsText(rules: OrganizationRules, spendNano: bigint): string {
  const { id, name, limits, approvedModels, dataRules, enforcesBalance, aliases, policies, plugins } = rules
  const states = Object.entries(plugins).map(([plugin, isOn]) => `${plugin} ${isOn ? 'on' : 'off'}`)
  const limit = (count: number | null) => (count === null ? 'unlimited' : String(count))
  const allowed = (rule: false | undefined) => (rule === false ? 'forbidden' : 'allowed')
  const balance = usdText(rules.creditNano - spendNano)
  const lines = [
    ['organization', `${name} (${id})`],
    ['balance', `${balance} USD, ${enforcesBalance ? 'calls are rejected when it is used up' : 'no limit'}`],
    ['requests per minute', limit(limits.requestsPerMinute)],
    ['tokens per minute', limit(limits.tokensPerMinute)],
    ['concurrent calls', limit(limits.concurrentCalls)],
    ['models', approvedModels === null ? 'all' : approvedModels.join(', ') || 'none'],
    ['geolocation', dataRules.geolocation?.join(', ') ?? 'any'],
    ['retention', allowed(dataRules.data_retention)],
    ['training', allowed(dataRules.data_used_for_training)],
    ['plugins', states.join(', ') || 'as configured'],
    ['aliases', [...aliases].map(([alias, target]) => `${alias} = ${target}`).join(', ') || 'none'],
    ['policies', [...policies.keys()].join(', ') || 'none'],
  ]
  return lines.map(([name = '', value = '']) => `${name.padEnd(21)}${value}`).join('\n')
}

/** Returns the places of a rule, each once; `any` cannot be combined with others. */
function placesFrom(args: Args): string[] {
  const places = args.texts('geolocation').flatMap((text) => text.split(',').map((place) => place.trim()))
  if (places.some((place) => place === '' || (place === 'any' && places.length > 1))) {
    throw new UsageError(`--geolocation is '${places.join(',')}'; write places as eu or eu,us, or any`)
  }
  return [...new Set(places)]
}

/** Returns the changes of rules that options ask for. */
function ruleChanges(args: Args, places: string[]): ((rules: DataRules) => DataRules)[] {
  const retention = isForbidden(args, 'retention')
  const training = isForbidden(args, 'training')
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

function isForbidden(args: Args, option: string): boolean | undefined {
  const value = args.text(option)
  if (value === undefined) return undefined
  if (value === 'forbidden' || value === 'allowed') return value === 'forbidden'
  throw new UsageError(`--${option} is '${value}'; write forbidden or allowed`)
}
