import { newSecret, storedSecret } from '../access/secret.ts'
import type { JsonObject } from '../core/json.ts'
import { parseTime } from '../core/time.ts'
import { timeText, wholeKeyEntry } from '../management/key-entry.ts'
import { grantCheck } from '../management/names.ts'
import { labels, title } from '../management/read.ts'
import { usdText } from '../money/usd.ts'
import { type KeyRecord, keyState, type Level, levels, noLimits } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { actor, checked, limitsSaid, modelsFrom, noted, organizationOf, usdFrom } from './admin.ts'
import {
  type Action,
  CannotDo,
  type Out,
  runAction,
  type StoreUrl,
  table,
  type Words,
  WrongUsage,
} from './store-command.ts'

/** What `inference-router key --help` says. */
export const help = `Keys that clients authenticate with.

  inference-router key create <name> [--org NAME] [options]
  inference-router key list [--org NAME] [--limit N] [--after ID]
  inference-router key revoke <id>

  --org NAME            the organization, by name or id; may be left out when there is only one
  --completions LEVEL   none, read or write (the default): calling models needs write
  --manage LEVEL        none (the default), read or write
  --monthly-limit USD   what the key may spend in a calendar month (UTC); 0 is unlimited, the default
  --expires TIME        RFC 3339, as 2027-01-31T00:00:00Z
  --label NAME=VALUE    repeatable
  --requests-per-minute N, --tokens-per-minute N, --concurrent N
                        how much it may ask; 0 is unlimited, the default
  --models NAME         what it may call and nothing else: a model, '<provider>/*', an alias or a policy; repeatable
  --group NAME          the group whose monthly limit it shares, by name or id
  --limit N             how many keys to list, 1 to 1000 (the default)
  --after ID            list those that come after this one
  --config FILE         the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json                print JSON

A new key's secret is printed once and stored nowhere.
`

/** Runs `inference-router key …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runAction(args, actions, help, out, storeUrl)
}

const text = { type: 'string' } as const

const actions: { readonly [name: string]: Action } = {
  create: {
    options: {
      name: text,
      org: text,
      completions: text,
      manage: text,
      'monthly-limit': text,
      expires: text,
      label: { type: 'string', multiple: true },
      'requests-per-minute': text,
      'tokens-per-minute': text,
      concurrent: text,
      models: { type: 'string', multiple: true },
      group: text,
    },
    positionals: 1,
    async read(words, known) {
      const facts = newKeyFacts(words)
      const directory = facts.accessList && (await known())
      return (store) => {
        const { id: organization } = organizationOf(store, words.text('org') ?? onlyOrganization(store))
        if (directory) {
          const check = grantCheck(directory, store.organizations.rules(organization) as OrganizationRules)
          for (const name of facts.accessList ?? []) checked(check, name, '--models')
        }
        const groupId = groupOf(store, organization, words.text('group'))
        const secret = newSecret()
        const record = noted(store, () => {
          const result = store.keys.create({ ...facts, ...storedSecret(secret), groupId, organization, createdBy })
          const after = wholeKeyEntry(result, store)
          return { result, organization, action: 'apikey.create', subject: result.id, after }
        })
        const shownOnce = `Key ${record.name} (${record.id}). Its secret, shown only now:\n\n  ${secret}\n`
        return { json: { api_key_id: record.id, api_key: secret, ...shown(store, record) }, text: shownOnce }
      }
    },
  },
  list: {
    options: { org: text, limit: text, after: text },
    positionals: 0,
    read: (words) => {
      const [org, after] = [words.text('org'), words.text('after')]
      const limit = pageLimit(words.text('limit'))
      return (store) => {
        if (after !== undefined && store.keys.ownerOf(after) === undefined) {
          throw new WrongUsage(`--after is '${after}', which no key has as its id; key list shows the ids`)
        }
        const organization = org === undefined ? undefined : organizationOf(store, org).id
        const which = { ...(organization !== undefined && { organization }), ...(after !== undefined && { after }) }
        const found = store.keys.page({ ...which, limit: limit + 1 })
        const records = found.slice(0, limit)
        const next = found.length > limit ? records.at(-1)?.id : undefined
        const more = next === undefined ? '' : `\n\nThere are more: key list --after ${next}`
        return {
          json: {
            keys: records.map((record) => shown(store, record)),
            ...(next !== undefined && { next_cursor: next }),
          },
          text: `${table([head, ...records.map((record) => line(store, record))])}${more}`,
        }
      }
    },
  },
  revoke: {
    options: {},
    positionals: 1,
    read({ positionals: [id] }) {
      if (!id) throw new WrongUsage('say which key: key revoke <id>; key list shows the ids')
      return (store) => {
        const record = noted(store, () => {
          const before = store.keys.find(id)
          const result = store.keys.revoke(id)
          if (!before || !result) throw new CannotDo(`There is no key with the id '${id}'. key list shows the ids.`)
          const states = { before: stateOf(before), after: stateOf(result) }
          return { result, organization: result.organization, action: 'apikey.revoke', subject: id, ...states }
        })
        return { json: shown(store, record), text: `Key ${record.name} (${record.id}) is revoked.` }
      }
    },
  },
}

const createdBy = { id: actor, email: '' }

function newKeyFacts(words: Words) {
  const { positionals, text } = words
  const models = words.texts('models')
  const name = (positionals[0] ?? text('name'))?.trim()
  if (!name) throw new WrongUsage('say how the key is called: key create <name>')
  const limit = usdFrom(text('monthly-limit') ?? '0', '--monthly-limit')
  if (limit < 0n) throw new WrongUsage('--monthly-limit is negative; 0 is unlimited')
  const manage = levelFrom(text('manage') ?? 'none', '--manage')
  const completions = levelFrom(text('completions') ?? 'write', '--completions')
  const expires = text('expires')
  return {
    name: checked(title, name, 'name'),
    permissions: { manage, completions },
    labels: checked(labels, Object.fromEntries(words.texts('label').map(labelFrom)), '--label'),
    accessList: models.length === 0 ? null : modelsFrom(models, '--models'),
    limits: { ...noLimits, ...limitsSaid(words) },
    monthlyLimitNano: limit === 0n ? null : limit,
    expiresAt: expires === undefined ? null : timeFrom(expires),
  }
}

function levelFrom(text: string, option: string): Level {
  const level = levels.find((one) => one === text)
  if (level) return level
  throw new WrongUsage(`${option} is '${text}'; write ${levels.join(', ')}`)
}

function labelFrom(text: string): [name: string, value: string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new WrongUsage(`--label is '${text}'; write NAME=VALUE`)
  return [name, value]
}

function timeFrom(text: string): number {
  const time = parseTime(text)
  if (time === undefined) throw new WrongUsage(`--expires is '${text}'; write a time as 2027-01-31T00:00:00Z`)
  if (time <= Date.now()) throw new WrongUsage(`--expires is '${text}', which has passed; write a time in the future`)
  return time
}

function onlyOrganization(store: Store): string {
  const [first, ...others] = store.organizations.list()
  if (!first) throw new CannotDo('There is no organization yet. Make one: org create <name>')
  if (others.length > 0) throw new WrongUsage('there are several organizations; say which with --org NAME')
  return first.id
}

function groupOf(store: Store, organization: string, nameOrId: string | undefined): string | null {
  if (nameOrId === undefined) return null
  const found = store.groups.findByName(organization, nameOrId) ?? store.groups.find(nameOrId)
  if (found?.organization === organization) return found.id
  throw new CannotDo(`There is no group '${nameOrId}' in this organization; the management API makes groups.`)
}

function pageLimit(text = String(mostListed)): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= mostListed) return limit
  throw new WrongUsage(`--limit is '${text}'; write a whole number from 1 to ${mostListed}`)
}

/** A database may have a million keys. */
const mostListed = 1_000

function stateOf(record: KeyRecord): JsonObject {
  return { state: keyState(record, Date.now()), revoked_at: timeText(record.revokedAt) }
}

/** A key as the management API shows it, and what else an operator wants to know. */
function shown(store: Store, record: KeyRecord): JsonObject {
  const { organization, prefix, revokedAt } = record
  return { ...wholeKeyEntry(record, store), organization, prefix, revoked_at: timeText(revokedAt) }
}

const head = [
  'ID',
  'PREFIX',
  'NAME',
  'STATE',
  'MANAGE',
  'COMPLETIONS',
  'LIMIT USD',
  'SPEND USD',
  'PER MINUTE',
  'MODELS',
]

function line(store: Store, record: KeyRecord): string[] {
  const { id, prefix, name, permissions, monthlyLimitNano, accessList } = record
  const now = Date.now()
  const limit = monthlyLimitNano === null ? 'unlimited' : usdText(monthlyLimitNano)
  const spend = usdText(store.spend.ofKey(id, now))
  const { manage, completions } = permissions
  const models = accessList === null ? 'all' : accessList.join(' ') || 'none'
  return [id, prefix, name, keyState(record, now), manage, completions, limit, spend, ratesText(record), models]
}

/** Limits in few words: `60 requests, 5 at once`. */
function ratesText({ limits }: KeyRecord): string {
  const { requestsPerMinute, tokensPerMinute, concurrentCalls } = limits
  const said = [
    ...(requestsPerMinute === null ? [] : [`${requestsPerMinute} requests`]),
    ...(tokensPerMinute === null ? [] : [`${tokensPerMinute} tokens`]),
    ...(concurrentCalls === null ? [] : [`${concurrentCalls} at once`]),
  ]
  return said.join(', ') || 'unlimited'
}
