import { newSecret, storedSecret } from '../access/secret.ts'
import type { Json, JsonObject } from '../core/json.ts'
import { usdOf, usdText } from '../money/usd.ts'
import { type KeyRecord, keyState, type Level, levels } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { organizationOf, usdFrom } from './org.ts'
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
  inference-router key list [--org NAME]
  inference-router key revoke <id>

  --org NAME            the organization, by name or id; may be left out when there is only one
  --completions LEVEL   none, read or write (the default): calling models needs write
  --manage LEVEL        none (the default), read or write
  --monthly-limit USD   what the key may spend in a calendar month (UTC); 0 is unlimited, the default
  --expires TIME        RFC 3339, as 2027-01-31T00:00:00Z
  --label NAME=VALUE    repeatable
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
    },
    positionals: 1,
    read(words) {
      const facts = newKeyFacts(words)
      return (store) => {
        const { id: organization } = organizationOf(store, words.text('org') ?? onlyOrganization(store))
        const secret = newSecret()
        const record = store.keys.create({ ...facts, ...storedSecret(secret), organization, createdBy })
        const shownOnce = `Key ${record.name} (${record.id}). Its secret, shown only now:\n\n  ${secret}\n`
        return { json: { api_key_id: record.id, api_key: secret, ...shown(store, record) }, text: shownOnce }
      }
    },
  },
  list: {
    options: { org: text },
    positionals: 0,
    read: (words) => (store) => {
      const org = words.text('org')
      const records = store.keys.page({
        ...(org !== undefined && { organization: organizationOf(store, org).id }),
        limit: 1_000,
      })
      const head = ['ID', 'PREFIX', 'NAME', 'STATE', 'MANAGE', 'COMPLETIONS', 'LIMIT USD', 'SPEND USD']
      return {
        json: { keys: records.map((record) => shown(store, record)) },
        text: table([head, ...records.map((record) => line(store, record))]),
      }
    },
  },
  revoke: {
    options: {},
    positionals: 1,
    read({ positionals: [id] }) {
      if (!id) throw new WrongUsage('say which key: key revoke <id>; key list shows the ids')
      return (store) => {
        const record = store.keys.revoke(id)
        if (!record) throw new CannotDo(`There is no key with the id '${id}'. key list shows the ids.`)
        return { json: shown(store, record), text: `Key ${record.name} (${record.id}) is revoked.` }
      }
    },
  },
}

const createdBy = { id: 'cli', email: '' }

function newKeyFacts({ positionals, text, texts }: Words) {
  const name = (positionals[0] ?? text('name'))?.trim()
  if (!name) throw new WrongUsage('say how the key is called: key create <name>')
  const limit = usdFrom(text('monthly-limit') ?? '0', '--monthly-limit')
  if (limit < 0n) throw new WrongUsage('--monthly-limit is negative; 0 is unlimited')
  const manage = levelFrom(text('manage') ?? 'none', '--manage')
  const completions = levelFrom(text('completions') ?? 'write', '--completions')
  const expires = text('expires')
  return {
    name,
    permissions: { manage, completions },
    labels: Object.fromEntries(texts('label').map(labelFrom)),
    monthlyLimitNano: limit === 0n ? null : limit,
    expiresAt: expires === undefined ? null : momentFrom(expires),
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

function momentFrom(text: string): number {
  const moment = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  if (Number.isNaN(moment)) throw new WrongUsage(`--expires is '${text}'; write a time as 2027-01-31T00:00:00Z`)
  if (moment <= Date.now()) throw new WrongUsage(`--expires is '${text}', which has passed; write a time to come`)
  return moment
}

function onlyOrganization(store: Store): string {
  const [first, ...others] = store.organizations.list()
  if (!first) throw new CannotDo('There is no organization yet. Make one: org create <name>')
  if (others.length > 0) throw new WrongUsage('there are several organizations; say which with --org NAME')
  return first.id
}

/** A key as the management API shows it, and what else an operator wants to know. */
function shown(store: Store, record: KeyRecord): JsonObject {
  const now = Date.now()
  const time = (at: number | null): Json => (at === null ? null : new Date(at).toISOString())
  return {
    id: record.id,
    name: record.name,
    monthly_limit: usdOf(record.monthlyLimitNano ?? 0n),
    monthly_spend: usdOf(store.spend.ofKey(record.id, now)),
    permissions: { ...record.permissions },
    labels: { ...record.labels },
    created_by: { ...record.createdBy },
    organization: record.organization,
    prefix: record.prefix,
    state: keyState(record, now),
    created_at: time(record.createdAt),
    expires_at: time(record.expiresAt),
    revoked_at: time(record.revokedAt),
  }
}

function line(store: Store, record: KeyRecord): string[] {
  const { id, prefix, name, permissions, monthlyLimitNano } = record
  const now = Date.now()
  const limit = monthlyLimitNano === null ? 'unlimited' : usdText(monthlyLimitNano)
  const spend = usdText(store.spend.ofKey(id, now))
  return [id, prefix, name, keyState(record, now), permissions.manage, permissions.completions, limit, spend]
}
