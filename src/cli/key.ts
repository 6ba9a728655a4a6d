import { newSecret, storedSecret } from '../access/secrets.ts'
import { defaultCreationLimits } from '../core/creation-limits.ts'
import type { JsonObject } from '../core/json.ts'
import { parseTime } from '../core/time.ts'
import { stateEntry, timeText, wholeKeyEntry } from '../management/key-entry.ts'
import { grantCheck } from '../management/names.ts'
import { labelsWithin, title } from '../management/read.ts'
import { usdText } from '../money/usd.ts'
import { audited } from '../store/audit.ts'
import { type KeyRecord, keyState, type Level, levels, noLimits } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import {
  actor,
  checked,
  modelsFrom,
  organizationOf,
  pluginChange,
  rateLimitOptions,
  rateLimitsFrom,
  usdFrom,
} from './admin.ts'
import { type Args, CommandError, type Out, table, UsageError } from './command.ts'
import { runStoreAction, type StoreAction, type StoreUrl } from './store-command.ts'

/** The text of `inference-router key --help`. */
export const help = `Manages the keys that clients authenticate with.

  inference-router key create <name> [--org NAME] [options]
  inference-router key list [--org NAME] [--limit N] [--after ID]
  inference-router key revoke <id>

  --org NAME            the organization, by name or id; may be left out when there is only one
  --completions LEVEL   none, read or write (the default): calling models needs write
  --manage LEVEL        none (the default), read or write: keys, groups, names, usage
  --operate LEVEL       none (the default), read or write: credit, and the organization's own limits and rules
  --monthly-limit USD   the most that the key may spend in a calendar month (UTC); 0 is unlimited, the default
  --expires TIME        RFC 3339, as 2027-01-31T00:00:00Z
  --label NAME=VALUE    repeatable
  --requests-per-minute N, --tokens-per-minute N, --concurrent N
                        its rate limits; 0 is unlimited, the default
  --models NAME         the only models it may call: a model, '<provider>/*', an alias or a policy; repeatable
  --plugin NAME=STATE   a plugin that is switched on or off for it; repeatable
  --group NAME          the group whose monthly limit it shares, by name or id
  --limit N             how many keys to list, 1 to 1000 (the default)
  --after ID            list those that come after this one
  --config FILE         the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json                print JSON

A new key's secret is printed once and stored nowhere.
`

/** Runs `inference-router key …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runStoreAction(args, actions, { help, out, storeUrl })
}

const text = { type: 'string' } as const

const actions: { readonly [name: string]: StoreAction } = {
  create: {
    options: {
      name: text,
      org: text,
      completions: text,
      manage: text,
      operate: text,
      'monthly-limit': text,
      expires: text,
      label: { type: 'string', multiple: true },
      ...rateLimitOptions,
      models: { type: 'string', multiple: true },
      plugin: { type: 'string', multiple: true },
      group: text,
    },
    positionals: 1,
    async prepare(args, loadDirectory) {
      const properties = newKeyProperties(args)
      const directory = properties.accessList && (await loadDirectory())
      const plugins = (await pluginChange(args.texts('plugin'), loadDirectory))({})
      return (store) => {
        const { id: organization } = organizationOf(store, args.text('org') ?? onlyOrganization(store))
        if (directory) {
          const check = grantCheck(directory, store.organizations.rules(organization) as OrganizationRules)
          for (const name of properties.accessList ?? []) checked(check, name, '--models')
        }
        const groupId = groupOf(store, organization, args.text('group'))
        const secret = newSecret()
        const record = audited(store, actor, () => {
          const result = store.keys.create({
            ...properties,
            ...storedSecret(secret),
            plugins,
            groupId,
            organization,
            createdBy,
          })
          const after = wholeKeyEntry(result, store)
          return { result, organization, action: 'apikey.create', subject: result.id, after }
        })
        const secretText = `Key ${record.name} (${record.id}). Its secret, displayed only once:\n\n  ${secret}\n`
        return { json: { api_key_id: record.id, api_key: secret, ...entry(store, record) }, text: secretText }
      }
    },
  },
  list: {
    options: { org: text, limit: text, after: text },
    prepare: (args) => {
      const [org, after] = [args.text('org'), args.text('after')]
      const limit = pageLimit(args.text('limit'))
      return (store) => {
        if (after !== undefined && store.keys.ownerOf(after) === undefined) {
          throw new UsageError(`--after is '${after}', which is not the id of a key; key list shows the ids`)
        }
        const organization = org === undefined ? undefined : organizationOf(store, org).id
        const which = { ...(organization !== undefined && { organization }), ...(after !== undefined && { after }) }
        const found = store.keys.page({ ...which, limit: limit + 1 })
        const records = found.slice(0, limit)
        const next = found.length > limit ? records.at(-1)?.id : undefined
        const more = next === undefined ? '' : `\n\nThere are more: key list --after ${next}`
        return {
          json: {
            keys: records.map((record) => entry(store, record)),
            ...(next !== undefined && { next_cursor: next }),
          },
          text: `${table([header, ...records.map((record) => row(store, record))])}${more}`,
        }
      }
    },
  },
  revoke: {
    options: {},
    positionals: 1,
    prepare({ positionals: [id] }) {
      if (!id) throw new UsageError('name the key: key revoke <id>; key list shows the ids')
      return (store) => {
        const record = audited(store, actor, () => {
          const before = store.keys.find(id)
          const result = store.keys.revoke(id)
          if (!before || !result) throw new CommandError(`There is no key with the id '${id}'. key list shows the ids.`)
          const states = { before: stateEntry(before), after: stateEntry(result) }
          return { result, organization: result.organization, action: 'apikey.revoke', subject: id, ...states }
        })
        return { json: entry(store, record), text: `Key ${record.name} (${record.id}) is revoked.` }
      }
    },
  },
}

const createdBy = { id: actor, email: '' }

function newKeyProperties(args: Args) {
  const { positionals, text } = args
  const models = args.texts('models')
  const name = (positionals[0] ?? text('name'))?.trim()
  if (!name) throw new UsageError('name the key: key create <name>')
  const limit = usdFrom(text('monthly-limit') ?? '0', '--monthly-limit')
  if (limit < 0n) throw new UsageError('--monthly-limit is negative; 0 is unlimited')
  const manage = levelFrom(text('manage') ?? 'none', '--manage')
  const completions = levelFrom(text('completions') ?? 'write', '--completions')
  const operate = levelFrom(text('operate') ?? 'none', '--operate')
  const expires = text('expires')
  return {
    name: checked(title, name, 'name'),
    permissions: { manage, completions, operate },
    labels: checked(
      labelsWithin(defaultCreationLimits),
      Object.fromEntries(args.texts('label').map(labelFrom)),
      '--label',
    ),
    accessList: models.length === 0 ? null : modelsFrom(models, '--models'),
    limits: { ...noLimits, ...rateLimitsFrom(args) },
    monthlyLimitNano: limit === 0n ? null : limit,
    expiresAt: expires === undefined ? null : timeFrom(expires),
  }
}

function levelFrom(text: string, option: string): Level {
  const level = levels.find((one) => one === text)
  if (level) return level
  throw new UsageError(`${option} is '${text}'; write ${levels.join(', ')}`)
}

function labelFrom(text: string): [name: string, value: string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError(`--label is '${text}'; write NAME=VALUE`)
  return [name, value]
}

function timeFrom(text: string): number {
  const time = parseTime(text)
  if (time === undefined) throw new UsageError(`--expires is '${text}'; write a time as 2027-01-31T00:00:00Z`)
  if (time <= Date.now()) throw new UsageError(`--expires is '${text}', which has passed; write a time in the future`)
  return time
}

function onlyOrganization(store: Store): string {
  const [first, ...others] = store.organizations.list()
  if (!first) throw new CommandError('There is no organization yet. Create one: org create <name>')
  if (others.length > 0) throw new UsageError('there are several organizations; name one with --org NAME')
  return first.id
}

function groupOf(store: Store, organization: string, nameOrId: string | undefined): string | null {
  if (nameOrId === undefined) return null
  const found = store.groups.findByName(organization, nameOrId) ?? store.groups.find(nameOrId)
  if (found?.organization === organization) return found.id
  throw new CommandError(
    `There is no group '${nameOrId}' in this organization; create groups through the management API.`,
  )
}

function pageLimit(text = String(maxListed)): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxListed) return limit
  throw new UsageError(`--limit is '${text}'; write a whole number from 1 to ${maxListed}`)
}

/** The most keys that one page lists: a database may have a million. */
const maxListed = 1_000

/** Returns a key as the management API returns it, with fields that only operators need. */
function entry(store: Store, record: KeyRecord): JsonObject {
  const { organization, prefix, revokedAt } = record
  return { ...wholeKeyEntry(record, store), organization, prefix, revoked_at: timeText(revokedAt) }
}

const header = [
  'ID',
  'PREFIX',
  'NAME',
  'STATE',
  'MANAGE',
  'COMPLETIONS',
  'OPERATE',
  'LIMIT USD',
  'SPEND USD',
  'PER MINUTE',
  'MODELS',
]

function row(store: Store, record: KeyRecord): string[] {
  const { id, prefix, name, permissions, monthlyLimitNano, accessList } = record
  const now = Date.now()
  const limit = monthlyLimitNano === null ? 'unlimited' : usdText(monthlyLimitNano)
  const spend = usdText(store.spend.ofKey(id, now))
  const { manage, completions, operate } = permissions
  const models = accessList === null ? 'all' : accessList.join(' ') || 'none'
  return [
    id,
    prefix,
    name,
    keyState(record, now),
    manage,
    completions,
    operate,
    limit,
    spend,
    ratesText(record),
    models,
  ]
}

/** Writes rate limits as a cell of the table: `60 requests, 5 at once`. */
function ratesText({ limits }: KeyRecord): string {
  const { requestsPerMinute, tokensPerMinute, concurrentCalls } = limits
  const limited = [
    ...(requestsPerMinute === null ? [] : [`${requestsPerMinute} requests`]),
    ...(tokensPerMinute === null ? [] : [`${tokensPerMinute} tokens`]),
    ...(concurrentCalls === null ? [] : [`${concurrentCalls} concurrent`]),
  ]
  return limited.join(', ') || 'unlimited'
}
