import type { JsonObject } from '../core/json.ts'
import type { Store } from '../store/open.ts'
import { groupOf, monthlyLimitFrom, organizationFor } from './admin.ts'
import { type Args, type Out, table, UsageError } from './command.ts'
import { linesOf, type ManagedRequest, managed } from './managed.ts'
import { type ActionResult, runStoreAction, type StoreAction, type StoreUrl } from './store-command.ts'

/** The text of `inference-router group --help`. */
export const help = `Manages groups: keys that share a monthly limit. key create --group and key edit --group put keys into them.

  inference-router group create <name> [--monthly-limit USD]
  inference-router group list [--after ID]
  inference-router group show <name or id>
  inference-router group limit <name or id> <USD>
  inference-router group delete <name or id> [--keys keep|revoke]

  --org NAME            the organization, by name or id; may be left out when there is only one
  --monthly-limit USD   the most that its keys may spend together in a calendar month (UTC); 0 is unlimited, the default
  --keys WORD           what becomes of the keys of a group that has a limit: keep them without it, or revoke them
  --after ID            list those that come after this one
  --config FILE         the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json                print JSON
`

/** Runs `inference-router group …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runStoreAction(args, actions, { help, out, storeUrl })
}

const text = { type: 'string' } as const

const actions: { readonly [name: string]: StoreAction } = {
  create: {
    options: { org: text, 'monthly-limit': text },
    positionals: 1,
    prepare(args) {
      const name = nameIn(args, 'create <name>')
      const limit = args.text('monthly-limit')
      const body = { name, ...(limit !== undefined && { monthly_limit: monthlyLimitFrom(limit, '--monthly-limit') }) }
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        const request = { method: 'post', path: '/group', body } as const
        const { group_id } = await managed(request, { store, organization }, { monthly_limit: '--monthly-limit' })
        return shown(store, organization, String(group_id))
      }
    },
  },
  list: {
    options: { org: text, after: text },
    prepare: (args) => async (store) => {
      const organization = await organizationFor(store, args.text('org'))
      const after = args.text('after')
      const query = after === undefined ? {} : { cursor: after }
      const json = await managed({ path: '/group', query }, { store, organization }, { cursor: '--after' })
      const rows = (json.groups as JsonObject[]).map(({ id, name, monthly_limit, monthly_spend }) =>
        [id, name, monthly_limit || 'unlimited', monthly_spend].map(String),
      )
      const more = json.next_cursor === undefined ? '' : `\n\nThere are more: group list --after ${json.next_cursor}`
      return { json, text: `${table([['ID', 'NAME', 'LIMIT USD', 'SPEND USD'], ...rows])}${more}` }
    },
  },
  show: {
    options: { org: text },
    positionals: 1,
    prepare(args) {
      const name = nameIn(args, 'show <name or id>')
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        return await shown(store, organization, (await groupOf(store, organization, name)).id)
      }
    },
  },
  limit: {
    options: { org: text },
    positionals: 2,
    prepare(args) {
      const name = nameIn(args, 'limit <name or id> <USD>')
      const [, amount] = args.positionals
      if (amount === undefined)
        throw new UsageError('write the limit in USD, 0 for none: group limit <name or id> <USD>')
      const body = { monthly_limit: monthlyLimitFrom(amount, 'the limit') }
      return change(args, name, (id) => ({ method: 'post', path: '/group/:id/limit', params: { id }, body }))
    },
  },
  delete: {
    options: { org: text, keys: text },
    positionals: 1,
    prepare(args) {
      const name = nameIn(args, 'delete <name or id>')
      const keys = args.text('keys')
      const query = keys === undefined ? {} : { keys }
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        const { id } = await groupOf(store, organization, name)
        const request = { method: 'delete', path: '/group/:id', params: { id }, query } as const
        await managed(request, { store, organization }, { keys: '--keys' })
        return { json: { id, deleted: true }, text: `Group ${name} (${id}) is deleted.` }
      }
    },
  },
}

function nameIn({ positionals: [name] }: Args, use: string): string {
  if (name) return name
  throw new UsageError(`name the group: group ${use}`)
}

function change(args: Args, name: string, requestFor: (id: string) => ManagedRequest) {
  return async (store: Store): Promise<ActionResult> => {
    const organization = await organizationFor(store, args.text('org'))
    const { id } = await groupOf(store, organization, name)
    await managed(requestFor(id), { store, organization })
    return shown(store, organization, id)
  }
}

async function shown(store: Store, organization: string, id: string): Promise<ActionResult> {
  const json = await managed({ path: '/group/:id', params: { id } }, { store, organization })
  return { json, text: linesOf(json) }
}
