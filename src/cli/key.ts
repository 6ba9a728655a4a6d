import type { JsonObject } from '../core/json.ts'
import { stateEntry, timeText, wholeKeyEntry } from '../management/key-entry.ts'
import { title } from '../management/read.ts'
import { usdText } from '../money/usd.ts'
import { audited } from '../store/audit.ts'
import { type KeyRecord, keyState } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { actor, checked, organizationFor, organizationOf } from './admin.ts'
import { type Args, CommandError, type Out, table, UsageError } from './command.ts'
import {
  editedPermissions,
  editPermissions,
  groupField,
  keyChanges,
  optionNames,
  permissionsFrom,
  propertiesFrom,
  propertyOptions,
} from './key-options.ts'
import { linesOf, managed, managedTogether } from './managed.ts'
import { type ActionResult, runStoreAction, type StoreAction, type StoreUrl } from './store-command.ts'

/** The text of `inference-router key --help`. */
export const help = `Manages the keys that clients authenticate with.

  inference-router key create <name> [--org NAME] [options]
  inference-router key list [--org NAME] [--limit N] [--after ID]
  inference-router key show <id>
  inference-router key edit <id> [options]
  inference-router key rotate <id>
  inference-router key revoke <id>
  inference-router key delete <id>

  --org NAME            the organization, by name or id; may be left out when there is only one
  --completions LEVEL   none, read or write (the default): calling models needs write
  --manage LEVEL        none (the default), read or write: keys, groups, names, usage
  --operate LEVEL       none (the default), read or write: credit, and the organization's own limits and rules
  --instance LEVEL      none (the default) or read: all organizations, their keys, calls and sums; only this command grants it
  --content LEVEL       none (the default), read or write: what plugins store of calls, and deleting it
  --monthly-limit USD   the most that the key may spend in a calendar month (UTC); 0 is unlimited, the default
  --expires TIME        RFC 3339, as 2027-01-31T00:00:00Z; never for no end
  --label NAME=VALUE    repeatable
  --requests-per-minute N, --tokens-per-minute N, --concurrent N
                        its rate limits; 0 is unlimited, the default
  --models NAME         the only models it may call: a model, '<provider>/*', an alias or a policy; repeatable; all for any
  --plugin NAME=STATE   a plugin that is switched on or off for it, or default; repeatable
  --group NAME          the group whose monthly limit it shares, by name or id; none for no group
  --limit N             how many keys to list, 1 to 1000 (the default)
  --after ID            list those that come after this one
  --config FILE         the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json                print JSON

edit changes what its options name, all of that or nothing: --instance, --content and the options below them. --label replaces all labels.
The secret of a new key, and that of rotate, is printed once and stored nowhere. A revoked key stays on the list, a deleted one does not.
`

/** Runs `inference-router key …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runStoreAction(args, actions, { help, out, storeUrl })
}

const text = { type: 'string' } as const

const actions: { readonly [name: string]: StoreAction } = {
  create: {
    options: { name: text, org: text, completions: text, manage: text, operate: text, ...propertyOptions },
    positionals: 1,
    async prepare(args, loadDirectory) {
      const name = (args.positionals[0] ?? args.text('name'))?.trim()
      if (!name) throw new UsageError('name the key: key create <name>')
      const body = { name: checked(title, name, 'name'), permissions: permissionsFrom(args), ...propertiesFrom(args) }
      const directory = 'models' in body || 'plugins' in body ? await loadDirectory() : undefined
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        const sent = { ...body, ...(await groupField(args, store, organization)) }
        const request = { method: 'post', path: '/apikey', body: sent } as const
        const { api_key_id, api_key } = await managed(request, { store, organization, directory }, optionNames)
        return await madeKey(store, String(api_key_id), String(api_key))
      }
    },
  },
  list: {
    options: { org: text, limit: text, after: text },
    prepare: (args) => {
      const [org, after] = [args.text('org'), args.text('after')]
      const limit = pageLimit(args.text('limit'))
      return async (store) => {
        if (after !== undefined && (await store.keys.ownerOf(after)) === undefined) {
          throw new UsageError(`--after is '${after}', which is not the id of a key; key list shows the ids`)
        }
        const organization = org === undefined ? undefined : (await organizationOf(store, org)).id
        const which = { ...(organization !== undefined && { organization }), ...(after !== undefined && { after }) }
        const found = await store.keys.page({ ...which, limit: limit + 1 })
        const records = found.slice(0, limit)
        const next = found.length > limit ? records.at(-1)?.id : undefined
        const more = next === undefined ? '' : `\n\nThere are more: key list --after ${next}`
        const entries = await Promise.all(records.map((record) => entry(store, record)))
        const rows = await Promise.all(records.map((record) => row(store, record)))
        return {
          json: {
            keys: entries,
            ...(next !== undefined && { next_cursor: next }),
          },
          text: `${table([header, ...rows])}${more}`,
        }
      }
    },
  },
  revoke: {
    options: {},
    positionals: 1,
    prepare(args) {
      const id = idIn(args, 'revoke')
      return async (store) => {
        const record = await audited(store, actor, async (tx) => {
          const before = await tx.keys.find(id)
          const result = await tx.keys.revoke(id)
          if (!before || !result) throw new CommandError(`There is no key with the id '${id}'. key list shows the ids.`)
          const states = { before: stateEntry(before), after: stateEntry(result) }
          return { result, organization: result.organization, action: 'apikey.revoke', subject: id, ...states }
        })
        return { json: await entry(store, record), text: `Key ${record.name} (${record.id}) is revoked.` }
      }
    },
  },
  show: {
    options: {},
    positionals: 1,
    prepare(args) {
      const id = idIn(args, 'show')
      return (store) => shownKey(store, id)
    },
  },
  edit: {
    options: propertyOptions,
    positionals: 1,
    async prepare(args, loadDirectory) {
      const id = idIn(args, 'edit')
      const body = propertiesFrom(args)
      const permissions = editedPermissions(args)
      const directory = 'models' in body || 'plugins' in body ? await loadDirectory() : undefined
      return async (store) => {
        const { organization } = await foundKey(store, id)
        const changes = keyChanges(id, { ...body, ...(await groupField(args, store, organization)) })
        if (changes.length === 0 && Object.keys(permissions).length === 0)
          throw new UsageError('name what to change, as in key edit <id> --monthly-limit 20')
        await store.atomically(async (tx) => {
          await editPermissions(tx, id, permissions)
          await managedTogether(changes, { store: tx, organization, directory }, optionNames)
        })
        return await shownKey(store, id)
      }
    },
  },
  rotate: {
    options: {},
    positionals: 1,
    prepare(args) {
      const id = idIn(args, 'rotate')
      return async (store) => {
        const { organization } = await foundKey(store, id)
        const request = { method: 'post', path: '/apikey/:id/rotate', params: { id } } as const
        const { api_key } = await managed(request, { store, organization })
        return await madeKey(store, id, String(api_key))
      }
    },
  },
  delete: {
    options: {},
    positionals: 1,
    prepare(args) {
      const id = idIn(args, 'delete')
      return async (store) => {
        const { name, organization } = await foundKey(store, id)
        await managed({ method: 'delete', path: '/apikey/:id', params: { id } }, { store, organization })
        return { json: { id, deleted: true }, text: `Key ${name} (${id}) is deleted.` }
      }
    },
  },
}

/** Returns the id that the first argument is. Throws UsageError. */
function idIn({ positionals: [id] }: Args, action: string): string {
  if (id) return id
  throw new UsageError(`name the key: key ${action} <id>; key list shows the ids`)
}

async function foundKey(store: Store, id: string): Promise<KeyRecord> {
  const found = await store.keys.find(id)
  if (found) return found
  throw new CommandError(`There is no key with the id '${id}'. key list shows the ids.`)
}

async function shownKey(store: Store, id: string): Promise<ActionResult> {
  const json = await entry(store, await foundKey(store, id))
  return { json, text: linesOf(json) }
}

/** Returns a key together with its new secret. */
async function madeKey(store: Store, id: string, secret: string): Promise<ActionResult> {
  const record = await foundKey(store, id)
  return {
    json: { api_key_id: id, api_key: secret, ...(await entry(store, record)) },
    text: `Key ${record.name} (${id}). Its secret, displayed only once:\n\n  ${secret}\n`,
  }
}

function pageLimit(text = String(maxListed)): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxListed) return limit
  throw new UsageError(`--limit is '${text}'; write a whole number from 1 to ${maxListed}`)
}

/** The most keys that one page lists: a database may have a million. */
const maxListed = 1_000

/** Returns a key as the management API returns it, with fields that only operators need. */
async function entry(store: Store, record: KeyRecord): Promise<JsonObject> {
  const { organization, prefix, revokedAt } = record
  return { ...(await wholeKeyEntry(record, store)), organization, prefix, revoked_at: timeText(revokedAt) }
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

async function row(store: Store, record: KeyRecord): Promise<string[]> {
  const { id, prefix, name, permissions, monthlyLimitNano, accessList } = record
  const now = Date.now()
  const limit = monthlyLimitNano === null ? 'unlimited' : usdText(monthlyLimitNano)
  const spend = usdText(await store.spend.ofKey(id, now))
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
