import { type Check, defined, filledText, flag, listOf, optional, refuse, required } from '../api/check.ts'
import type { CreationLimits } from '../core/creation-limits.ts'
import type { JsonObject } from '../core/json.ts'
import type { DataRules } from '../core/names.ts'
import type { PluginRules } from '../plugin/loaded.ts'
import type { RateLimits } from '../store/keys.ts'
import type { Organizations } from '../store/organizations.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { limitsOf } from './creation-limits.ts'
import { limitsEntry } from './key-entry.ts'
import { limitFields, limitsFrom } from './key-properties.ts'
import { changedBy, json, type ManagementContext, type ManageRoute, rulesOf } from './manage.ts'
import { type ModelDirectory, type NameCheck, patternCheck, placeCheck } from './names.ts'
import { pluginFields, pluginsEntry, pluginsFrom } from './plugin-rules.ts'
import { invalid, membersOf, namesOfModels, orNull, requireAny } from './read.ts'

/** Serves `/v1/manage/org/<setting>`: the settings of the organization, read with GET; PUT changes what its body names. */
export function settingRoutes(context: ManagementContext): ManageRoute[] {
  return [
    ...routesOf('balance', balance, context),
    ...routesOf('limits', limits, context),
    ...routesOf('models', approvedModels, context),
    ...routesOf('rules', dataRules, context),
    ...routesOf('plugins', plugins, context),
  ]
}

/** One setting: the fields of its body, the change that they ask for, how it is stored, and its representation. */
type Setting<Value> = {
  fields: readonly string[]
  /** True where a change needs the permission to operate, not only to manage. */
  operates: boolean
  /** Returns the new value from the rules as they are when the change is made. */
  parse(body: JsonObject, directory: ModelDirectory, limits: CreationLimits): (before: OrganizationRules) => Value
  write(organizations: Organizations, id: string, value: Value): Promise<void>
  entry(rules: OrganizationRules): JsonObject
}

function routesOf<Value>(
  name: string,
  { fields, operates, parse, write, entry }: Setting<Value>,
  context: ManagementContext,
): ManageRoute[] {
  const { store, directory } = context
  const path = `/v1/manage/org/${name}`
  return [
    { path, operates, handle: async ({ organization }) => json(entry(await rulesOf(store, organization))) },
    {
      path,
      method: 'put',
      operates,
      handle: async (request) => {
        const { body, organization } = request
        const changedFrom = parse(membersOf(body, fields), directory(), limitsOf(context))
        const changed = await changedBy(request, store, async (tx) => {
          const rules = await rulesOf(tx, organization)
          await write(tx.organizations, organization, changedFrom(rules))
          const [before, after] = [entry(rules), entry(await rulesOf(tx, organization))]
          const action = `organization.${name}`
          return { result: after, organization, action, subject: organization, before, after }
        })
        return json(changed)
      },
    },
  ]
}

/** Setting by which calls are refused when the balance is used up. */
const balance: Setting<boolean> = {
  fields: ['enforces_balance'],
  operates: true,
  parse: ({ enforces_balance }) => {
    const enforces = required(enforces_balance, 'enforces_balance', 'true or false', flag)
    return () => enforces
  },
  write: (organizations, id, enforces) => organizations.enforceBalance(id, enforces),
  entry: ({ enforcesBalance }) => ({ enforces_balance: enforcesBalance }),
}

/** The rate limits of all keys of the organization together. */
const limits: Setting<RateLimits> = {
  fields: limitFields,
  operates: true,
  parse: (body) => {
    const named = limitsFrom(body)
    return ({ limits }) => ({ ...limits, ...named })
  },
  write: (organizations, id, value) => organizations.setLimits(id, value),
  entry: (rules) => limitsEntry(rules.limits),
}

/** The models that the organization may call, by id or as `<provider>/*`; null means all. */
const approvedModels: Setting<string[] | null> = {
  fields: ['approved_models'],
  operates: false,
  parse({ approved_models }, directory, limits) {
    if (approved_models === undefined) {
      const message = "'approved_models' is missing: it must be an array of models, or null for all."
      throw invalid(message, 'approved_models')
    }
    const models = orNull(namesOfModels(limits))(approved_models, 'approved_models')
    const checkName = patternCheck(directory)
    models?.forEach((name, index) => {
      checkName(name, `approved_models[${index}]`)
    })
    return () => models
  },
  write: (organizations, id, models) => organizations.approveModels(id, models),
  entry: ({ approvedModels: models }) => ({ approved_models: models === null ? null : [...models] }),
}

/** The plugins that are switched on or off for the organization's calls. */
const plugins: Setting<PluginRules> = {
  fields: pluginFields,
  operates: true,
  parse: (body, directory) => {
    const changed = pluginsFrom(body, directory)
    return (before) => changed(before.plugins)
  },
  write: (organizations, id, rules) => organizations.setPlugins(id, rules),
  entry: pluginsEntry,
}

const ruleFields = ['geolocation', 'data_retention', 'data_used_for_training']

/** The guarantees that providers must give for the organization's data; null is no requirement. */
const dataRules: Setting<DataRules> = {
  fields: ruleFields,
  operates: true,
  parse: (body, directory) => dataRulesFrom(body, placeCheck(directory)),
  write: (organizations, id, rules) => organizations.setDataRules(id, rules),
  entry({ dataRules: { geolocation, data_retention, data_used_for_training } }) {
    return {
      geolocation: geolocation ? [...geolocation] : null,
      data_retention: data_retention ?? null,
      data_used_for_training: data_used_for_training ?? null,
    }
  },
}

function dataRulesFrom(body: JsonObject, checkPlace: NameCheck): (before: OrganizationRules) => DataRules {
  requireAny(body, ruleFields)
  const geolocation = optional(body.geolocation, 'geolocation', listOf(filledText))
  if (geolocation?.length === 0) throw invalid("'geolocation' is empty: name a region, or write null.", 'geolocation')
  geolocation?.forEach((place, index) => {
    checkPlace(place, `geolocation[${index}]`)
  })
  const named: DataRules = defined({
    geolocation: geolocation && [...new Set(geolocation)],
    data_retention: optional(body.data_retention, 'data_retention', onlyFalse),
    data_used_for_training: optional(body.data_used_for_training, 'data_used_for_training', onlyFalse),
  })
  return ({ dataRules }) => {
    const kept = Object.entries(dataRules).filter(([name]) => body[name] === undefined)
    return { ...Object.fromEntries(kept), ...named }
  }
}

const onlyFalse: Check<false> = (value, path) => {
  return value === false ? false : refuse(path, 'false, or null when it does not matter', value)
}
