import type { JsonObject } from '../core/json.ts'
import { title } from '../management/read.ts'
import { usdOf, usdText } from '../money/usd.ts'
import { audited } from '../store/audit.ts'
import { maxRetentionDays, type Organization, type Retention } from '../store/organizations.ts'
import { actor, checked, organizationOf, usdFrom } from './admin.ts'
import { type Out, table, UsageError } from './command.ts'
import { settingActions } from './org-settings.ts'
import { runStoreAction, type StoreAction, type StoreUrl } from './store-command.ts'

/** The text of `inference-router org --help`. */
export const help = `Manages organizations: their credit, the rules for their calls, and the storage of their responses.

  inference-router org create <name> [--credit USD]
  inference-router org list
  inference-router org credit <name or id> <USD> [--note TEXT]
  inference-router org store <name or id> [on|off] [--retention-days N]
  inference-router org show <name or id>
  inference-router org limits <name or id> [--requests-per-minute N] [--tokens-per-minute N] [--concurrent N]
  inference-router org models <name or id> [all | MODEL…]
  inference-router org rules <name or id> [--geolocation PLACE] [--retention WORD] [--training WORD]
  inference-router org plugins <name or id> [PLUGIN=on|off|default …]
  inference-router org balance <name or id> [on|off]

  --credit USD    credit to begin with
  --note TEXT     why the credit was given
  --retention-days N
                  how many days responses are stored, 1 to 3650; applies to those already stored as well
  --requests-per-minute N, --tokens-per-minute N, --concurrent N
                  the limits of all keys together; 0 is unlimited
  MODEL           <provider>/<model> or '<provider>/*': the only models that may be called
  PLUGIN          the name of a plugin, switched on or off for all keys; default is what the configuration says
  --geolocation PLACE
                  only models hosted there: eu, or eu,us; any for no rule
  --retention WORD, --training WORD
                  whether providers may retain requests, and train on them: forbidden or allowed
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON

Credit is added; to take it back write a negative sum after two dashes: org credit acme -- -5
The first credit makes the balance a limit: from then on calls are rejected when it is used up.
With store off no new response is stored; those already stored stay until they expire or are deleted.
`

/** Runs `inference-router org …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runStoreAction(args, { ...actions, ...settingActions }, { help, out, storeUrl })
}

const actions: { readonly [name: string]: StoreAction } = {
  create: {
    options: { name: { type: 'string' }, credit: { type: 'string' } },
    positionals: 1,
    prepare({ positionals, text }) {
      const name = (positionals[0] ?? text('name'))?.trim()
      if (!name) throw new UsageError('name the organization: org create <name>')
      checked(title, name, 'name')
      const credit = usdFrom(text('credit') ?? '0', '--credit')
      return async (store) => {
        const made = await audited(store, actor, async (tx) => {
          const { id } = await tx.organizations.create(name)
          if (credit !== 0n) await tx.organizations.credit(id, credit)
          const result = await organizationOf(tx, id)
          return { result, organization: id, action: 'organization.create', subject: id, after: entry(result) }
        })
        return { json: entry(made), text: `Organization ${made.name} (${made.id}), balance ${balanceText(made)} USD` }
      }
    },
  },
  list: {
    options: {},
    prepare: () => async (store) => {
      const all = await store.organizations.list()
      const rows = all.map((one) => [
        one.id,
        one.name,
        usdText(one.creditNano),
        usdText(one.spendNano),
        balanceText(one),
      ])
      return {
        json: { organizations: all.map(entry) },
        text: table([['ID', 'NAME', 'CREDIT USD', 'SPEND USD', 'BALANCE USD'], ...rows]),
      }
    },
  },
  credit: {
    options: { note: { type: 'string' } },
    positionals: 2,
    prepare({ positionals: [name, amount], text }) {
      if (!name || !amount) throw new UsageError('name the organization and the amount: org credit <name or id> <USD>')
      const nano = usdFrom(amount, 'the credit')
      return async (store) => {
        const credited = await audited(store, actor, async (tx) => {
          const { id, ...before } = await organizationOf(tx, name)
          const result = await tx.organizations.credit(id, nano, text('note'))
          const given = { amount: usdOf(nano), note: text('note') ?? '' }
          const sums = {
            before: { credit: usdOf(before.creditNano) },
            after: { credit: usdOf(result.creditNano), ...given },
          }
          return { result, organization: id, action: 'organization.credit', subject: id, ...sums }
        })
        return { json: entry(credited), text: `Organization ${credited.name}: balance ${balanceText(credited)} USD` }
      }
    },
  },
  store: {
    options: { 'retention-days': { type: 'string' } },
    positionals: 2,
    prepare({ positionals: [name, state], text }) {
      if (!name) throw new UsageError('name the organization: org store <name or id> [on|off] [--retention-days N]')
      if (state !== undefined && state !== 'on' && state !== 'off')
        throw new UsageError(`write on or off for the store, not '${state}'`)
      const days = daysFrom(text('retention-days'))
      const changes = { ...(state && { stores: state === 'on' }), ...(days !== undefined && { days }) }
      return async (store) => {
        const { id, name: foundName } = await organizationOf(store, name)
        if (Object.keys(changes).length > 0) {
          await audited(store, actor, async (tx) => {
            const before = await tx.organizations.retention(id)
            const after = await tx.organizations.setRetention(id, changes)
            const states = { before: retentionEntry(before), after: retentionEntry(after) }
            return { result: after, organization: id, action: 'organization.store', subject: id, ...states }
          })
        }
        const now = await store.organizations.retention(id)
        return {
          json: { id, name: foundName, store: now.stores, retention_days: now.days },
          text: `Organization ${foundName}: responses are ${now.stores ? `stored for ${now.days} days` : 'not stored'}`,
        }
      }
    },
  },
}

/** Returns the retention in the audit log. */
function retentionEntry({ stores, days }: Retention): JsonObject {
  return { keeps: stores, days }
}

function daysFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (days >= 1 && days <= maxRetentionDays) return days
  throw new UsageError(`--retention-days is '${text}'; write a whole number of days from 1 to ${maxRetentionDays}`)
}

function entry(one: Organization): JsonObject {
  const { id, name, creditNano, spendNano, createdAt } = one
  const balance = usdOf(creditNano - spendNano)
  const created_at = new Date(createdAt).toISOString()
  return { id, name, balance, credit: usdOf(creditNano), spend: usdOf(spendNano), created_at }
}

function balanceText({ creditNano, spendNano }: Organization): string {
  return usdText(creditNano - spendNano)
}
