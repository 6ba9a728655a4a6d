import type { Json } from '../core/json.ts'
import { nanoOf, usdOf, usdText } from '../money/usd.ts'
import type { Store } from '../store/open.ts'
import { longestRetentionDays, type Organization } from '../store/organizations.ts'
import { type Action, CannotDo, type Out, runAction, type StoreUrl, table, WrongUsage } from './store-command.ts'

/** What `inference-router org --help` says. */
export const help = `Organizations, their credit, and what is kept of their responses.

  inference-router org create <name> [--credit USD]
  inference-router org list
  inference-router org credit <name or id> <USD> [--note TEXT]
  inference-router org store <name or id> [on|off] [--retention-days N]

  --credit USD    credit to begin with
  --note TEXT     why the credit was given
  --retention-days N
                  how many days responses are kept, 1 to 3650; holds for those kept already as well
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON

Credit is added; to take it back write a negative sum after two dashes: org credit acme -- -5
Of an organization whose store is off no new response is kept; those kept before stay until they expire or are deleted.
`

/** Runs `inference-router org …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runAction(args, actions, help, out, storeUrl)
}

/** The organization of a name or an id. Throws CannotDo. */
export function organizationOf(store: Store, nameOrId: string): Organization {
  const found = store.organizations.findByName(nameOrId) ?? store.organizations.find(nameOrId)
  if (found) return found
  const names = store.organizations.list().map(({ name }) => name)
  throw new CannotDo(
    `There is no organization '${nameOrId}'. There is: ${names.join(', ') || 'none; org create makes one'}`,
  )
}

/** A sum of USD that a user wrote. Throws WrongUsage. */
export function usdFrom(text: string, what: string): bigint {
  const nano = nanoOf(text)
  if (nano === undefined)
    throw new WrongUsage(`${what} is '${text}'; write USD as 25 or 0.5, with at most nine decimals`)
  return nano
}

const actions: { readonly [name: string]: Action } = {
  create: {
    options: { name: { type: 'string' }, credit: { type: 'string' } },
    positionals: 1,
    read({ positionals, text }) {
      const name = (positionals[0] ?? text('name'))?.trim()
      if (!name) throw new WrongUsage('say how the organization is called: org create <name>')
      const credit = usdFrom(text('credit') ?? '0', '--credit')
      return (store) => {
        const made = store.atomically(() => {
          const organization = store.organizations.create(name)
          return credit === 0n ? organization : store.organizations.credit(organization.id, credit)
        })
        return { json: shown(made), text: `Organization ${made.name} (${made.id}), balance ${balanceText(made)} USD` }
      }
    },
  },
  list: {
    options: {},
    positionals: 0,
    read: () => (store) => {
      const all = store.organizations.list()
      const rows = all.map((one) => [
        one.id,
        one.name,
        usdText(one.creditNano),
        usdText(one.spendNano),
        balanceText(one),
      ])
      return {
        json: { organizations: all.map(shown) },
        text: table([['ID', 'NAME', 'CREDIT USD', 'SPEND USD', 'BALANCE USD'], ...rows]),
      }
    },
  },
  credit: {
    options: { note: { type: 'string' } },
    positionals: 2,
    read({ positionals: [name, amount], text }) {
      if (!name || !amount) throw new WrongUsage('say whom and how much: org credit <name or id> <USD>')
      const nano = usdFrom(amount, 'the credit')
      return (store) => {
        const { id } = organizationOf(store, name)
        const credited = store.organizations.credit(id, nano, text('note'))
        return { json: shown(credited), text: `Organization ${credited.name}: balance ${balanceText(credited)} USD` }
      }
    },
  },
  store: {
    options: { 'retention-days': { type: 'string' } },
    positionals: 2,
    read({ positionals: [name, state], text }) {
      if (!name) throw new WrongUsage('say whose: org store <name or id> [on|off] [--retention-days N]')
      if (state !== undefined && state !== 'on' && state !== 'off')
        throw new WrongUsage(`the store is 'on' or 'off', not '${state}'`)
      const days = daysFrom(text('retention-days'))
      const changes = { ...(state && { keeps: state === 'on' }), ...(days !== undefined && { days }) }
      return (store) => {
        const { id, name: called } = organizationOf(store, name)
        const now = store.organizations.setRetention(id, changes)
        return {
          json: { id, name: called, store: now.keeps, retention_days: now.days },
          text: `Organization ${called}: responses are ${now.keeps ? `kept for ${now.days} days` : 'not kept'}`,
        }
      }
    },
  },
}

function daysFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (days >= 1 && days <= longestRetentionDays) return days
  throw new WrongUsage(`--retention-days is '${text}'; write a whole number of days from 1 to ${longestRetentionDays}`)
}

function shown(one: Organization): Json {
  const { id, name, creditNano, spendNano, createdAt } = one
  const balance = usdOf(creditNano - spendNano)
  const created_at = new Date(createdAt).toISOString()
  return { id, name, balance, credit: usdOf(creditNano), spend: usdOf(spendNano), created_at }
}

function balanceText({ creditNano, spendNano }: Organization): string {
  return usdText(creditNano - spendNano)
}
