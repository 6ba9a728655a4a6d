import type { JsonObject } from '../core/json.ts'
import type { Store } from '../store/open.ts'
import { organizationFor } from './admin.ts'
import { type Args, type Out, table, UsageError } from './command.ts'
import { linesOf, managed, type OptionNames } from './managed.ts'
import { type ActionResult, runStoreAction, type StoreAction, type StoreUrl } from './store-command.ts'

/** The text of `inference-router policy --help`. */
export const help = `Manages policies: names of an organization for a list of models, and the rules for asking them.

  inference-router policy set <id> <model>[=WEIGHT] … [options]
  inference-router policy list [--after ID]
  inference-router policy show <id>
  inference-router policy delete <id>

  --org NAME            the organization, by name or id; may be left out when there is only one
  --description TEXT    what it is for
  --sort WORD           order (the models as they are written), weighted, price, latency or throughput
  --sticky WORD         which calls stay at one model: none, session, user, hash or cache
  --retries N           further attempts at one model
  --first-event TIME, --total TIME, --retry-after TIME
                        the time until the first event, of the whole call, and the longest wait before a retry: 500ms, 10s or 5m
  --on-cut WORD         what follows when a stream breaks off: error, hold, continue or restart
  --on-blocked WORD     what follows when a provider blocks the content: error or next
  --after ID            list those that come after this one
  --config FILE         the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json                print JSON

set creates a policy or replaces it; rules that are not given are those of the router.
`

/** Runs `inference-router policy …` on the database of the configuration. Returns the exit code. */
export function run(args: string[], out: Out, storeUrl?: StoreUrl): Promise<number> {
  return runStoreAction(args, actions, { help, out, storeUrl })
}

const text = { type: 'string' } as const

/** The rules that are texts, by their options. */
const textRules = ['sort', 'sticky', 'first-event', 'total', 'retry-after', 'on-cut', 'on-blocked'] as const

const ruleOptions = Object.fromEntries([...textRules, 'retries'].map((name) => [name, text]))

const optionNames: OptionNames = Object.fromEntries(
  [...textRules, 'retries'].map((name) => [fieldOf(name), `--${name}`]),
)

const actions: { readonly [name: string]: StoreAction } = {
  set: {
    options: { org: text, description: text, ...ruleOptions },
    positionals: Number.POSITIVE_INFINITY,
    async prepare(args, loadDirectory) {
      const id = idIn(args, 'set <id> <model> …')
      const body = { targets: targetsIn(args), ...rulesIn(args) }
      const directory = await loadDirectory()
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        const request = { method: 'put', path: '/policy/:id', params: { id }, body } as const
        const json = await managed(request, { store, organization, directory }, optionNames)
        return { json, text: linesOf(json) }
      }
    },
  },
  list: {
    options: { org: text, after: text },
    prepare: (args) => async (store) => {
      const organization = await organizationFor(store, args.text('org'))
      const after = args.text('after')
      const query = after === undefined ? {} : { cursor: after }
      const json = await managed({ path: '/policy', query }, { store, organization }, { cursor: '--after' })
      const rows = (json.policies as JsonObject[]).map(({ id, description, targets }) => [
        String(id),
        (targets as (string | JsonObject)[]).map(targetText).join(' '),
        String(description),
      ])
      const more = json.next_cursor === undefined ? '' : `\n\nThere are more: policy list --after ${json.next_cursor}`
      return { json, text: `${table([['ID', 'MODELS', 'DESCRIPTION'], ...rows])}${more}` }
    },
  },
  show: {
    options: { org: text },
    positionals: 1,
    prepare(args) {
      const id = idIn(args, 'show <id>')
      return async (store) => await shown(store, await organizationFor(store, args.text('org')), id)
    },
  },
  delete: {
    options: { org: text },
    positionals: 1,
    prepare(args) {
      const id = idIn(args, 'delete <id>')
      return async (store) => {
        const organization = await organizationFor(store, args.text('org'))
        await managed({ method: 'delete', path: '/policy/:id', params: { id } }, { store, organization })
        return { json: { id, deleted: true }, text: `Policy ${id} is deleted.` }
      }
    },
  },
}

function idIn({ positionals: [id] }: Args, use: string): string {
  if (id) return id
  throw new UsageError(`name the policy: policy ${use}`)
}

/** Returns the models, with their weights where they have one. Throws UsageError. */
function targetsIn({ positionals: [, ...targets] }: Args): (string | JsonObject)[] {
  if (targets.length === 0) throw new UsageError('name its models: policy set <id> <model> …')
  return targets.map((written) => {
    const [, target, weight] = /^(.+)=(\d+(?:\.\d+)?)$/.exec(written) ?? []
    return target === undefined ? written : { target, weight: Number(weight) }
  })
}

function targetText(target: string | JsonObject): string {
  return typeof target === 'string' ? target : `${target.target}=${target.weight}`
}

/** Returns the description and the rules that options give. Throws UsageError. */
function rulesIn({ text }: Args): JsonObject {
  const retries = text('retries')
  if (retries !== undefined && !/^\d{1,4}$/.test(retries))
    throw new UsageError(`--retries is '${retries}'; write a whole number`)
  const description = text('description')
  const rules = textRules.flatMap((name): [string, string][] => {
    const value = text(name)
    return value === undefined ? [] : [[fieldOf(name), value]]
  })
  return {
    ...(description !== undefined && { description }),
    ...Object.fromEntries(rules),
    ...(retries !== undefined && { retries: Number(retries) }),
  }
}

function fieldOf(option: string): string {
  return option.replaceAll('-', '_')
}

async function shown(store: Store, organization: string, id: string): Promise<ActionResult> {
  const json = await managed({ path: '/policy/:id', params: { id } }, { store, organization })
  return { json, text: linesOf(json) }
}
