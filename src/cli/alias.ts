import type { JsonObject } from '../core/json.ts'
import { organizationFor } from './admin.ts'
import { type Args, type Out, table, UsageError } from './command.ts'
import { managed } from './managed.ts'
import { runStoreAction, type StoreAction, type StoreUrl } from './store-command.ts'

/** The text of `inference-router alias --help`. */
export const help = `Manages aliases: names of an organization that stand for a model or a policy.

  inference-router alias set <name> <model or policy>
  inference-router alias list [--after NAME]
  inference-router alias delete <name>

  --org NAME      the organization, by name or id; may be left out when there is only one
  --after NAME    list those that come after this one
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON
`

/** Runs `inference-router alias …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runStoreAction(args, actions, { help, out, storeUrl })
}

const text = { type: 'string' } as const

const actions: { readonly [name: string]: StoreAction } = {
  set: {
    options: { org: text },
    positionals: 2,
    async prepare(args, loadDirectory) {
      const name = nameIn(args, 'set <name> <model or policy>')
      const [, target] = args.positionals
      if (!target) throw new UsageError('name what it stands for: alias set <name> <model or policy>')
      const directory = await loadDirectory()
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        const request = { method: 'post', path: '/alias', body: { name, target } } as const
        const json = await managed(request, { store, organization, directory })
        return { json, text: `Alias ${name} stands for ${target}.` }
      }
    },
  },
  list: {
    options: { org: text, after: text },
    prepare: (args) => async (store) => {
      const organization = await organizationFor(store, args.text('org'))
      const after = args.text('after')
      const query = after === undefined ? {} : { cursor: after }
      const json = await managed({ path: '/alias', query }, { store, organization }, { cursor: '--after' })
      const rows = (json.aliases as JsonObject[]).map(({ name, target }) => [name, target].map(String))
      const more = json.next_cursor === undefined ? '' : `\n\nThere are more: alias list --after ${json.next_cursor}`
      return { json, text: `${table([['NAME', 'TARGET'], ...rows])}${more}` }
    },
  },
  delete: {
    options: { org: text },
    positionals: 1,
    prepare(args) {
      const name = nameIn(args, 'delete <name>')
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        await managed({ method: 'delete', path: '/alias/*name', params: { name } }, { store, organization })
        return { json: { name, deleted: true }, text: `Alias ${name} is deleted.` }
      }
    },
  },
}

function nameIn({ positionals: [name] }: Args, use: string): string {
  if (name) return name
  throw new UsageError(`name the alias: alias ${use}`)
}
