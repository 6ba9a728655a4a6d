import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import { directoryOf } from '../../app/directory.ts'
import { hasErrors } from '../../manifest/check/problem.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import { closeAll } from '../../plugin/instances.ts'
import { type FoldersFile, foldersOf, programConfig } from '../../snapshot/folders.ts'
import { buildSnapshot, type Snapshot } from '../../snapshot/snapshot.ts'
import { pendingMigrations } from '../../store/sqlite/inspect.ts'
import { organizationFor } from '../admin.ts'
import {
  type Args,
  actionNamed,
  CommandError,
  jsonText,
  type Out,
  parseArguments,
  problemLine,
  relativePath,
  runCommand,
  table,
  UsageError,
} from '../command.ts'
import { dotEnvBeside } from '../read-config.ts'
import { earlierFiles } from '../read-snapshot.ts'
import { withStore } from '../store-command.ts'
import { planBifrost } from './bifrost.ts'
import { type PlannedFile, planFiles, writeFiles } from './files.ts'
import { ForeignFile } from './foreign-file.ts'
import { planLitellm } from './litellm.ts'
import { noRows, readRows } from './litellm-rows.ts'
import type { ImportPlan, Remark } from './plan.ts'
import { planPortkey } from './portkey.ts'
import { createRecords, type ImportedRecords } from './records.ts'
import { ShippedProviders } from './shipped.ts'

/** The text of `inference-router import --help`. */
export const help = `Imports the configuration of another gateway: models, names, fallbacks, settings, keys, teams, budgets.

  inference-router import litellm FILE [--database FROM] [options]
  inference-router import portkey FILE [--name NAME] [--model MODEL…] [--provider KEY=SLUG…] [options]
  inference-router import bifrost FILE [options]

  --database FROM  keys, teams and budgets of LiteLLM: a file of pg_dump, CSV or JSON, a folder of CSV files named by their tables,
                   or postgresql://…, for which psql must be installed
  --name NAME      the name of a Portkey config for clients (default: that of the file)
  --model MODEL    a model that clients send with a Portkey config that sets none; repeatable
  --provider KEY=SLUG  the provider of a virtual key of Portkey; repeatable
  --org NAME       the organization that gets names, groups and keys, by name or id; may be left out when there is at most one
  --dry-run        check and report everything, change nothing
  --config FILE    the configuration to add to, created where it does not exist (default: ./config.yaml)
  --json           print JSON: {files, created, unchanged, remarks: [{effect, path, message}]}

Clients keep their keys: of a key only the SHA-256 is known, and stored. Settings that are missing are added to the configuration, providers
that have no equivalent become files beside it, credentials go to .env, which only you can read. Nothing that exists is changed, so that
an import can be repeated. What has no equivalent is reported by its path in the other gateway's file.
`

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const
const options = {
  ...{ database: text, name: text, model: texts, provider: texts },
  ...{ org: text, 'dry-run': flag, config: text, json: flag },
} as const

type Planner = (
  file: string,
  args: Args,
  context: { shipped: ShippedProviders; env: Environment },
) => Promise<ImportPlan>

const planners: { readonly [gateway: string]: Planner } = {
  async litellm(file, args, context) {
    const from = args.text('database')
    const rows = from === undefined ? noRows() : await readRows(from)
    return planLitellm(new ForeignFile(readForeign(file)), rows, context)
  },
  async portkey(file, args, context) {
    const name = args.text('name') ?? basename(file).replace(/\.\w+$/, '')
    const virtualKeys = new Map(args.texts('provider').map(virtualKey))
    return planPortkey(readForeign(file), { name, models: args.texts('model'), virtualKeys }, context)
  },
  async bifrost(file, _, context) {
    return planBifrost(new ForeignFile(readForeign(file)), context)
  },
}

function virtualKey(text: string): [name: string, slug: string] {
  const [, name, slug] = /^([^=]+)=([^=]+)$/.exec(text) ?? []
  if (name === undefined || slug === undefined)
    throw new UsageError(`--provider is '${text}'; write the virtual key and its provider: openai-main=openai`)
  return [name, slug]
}

/** Runs `inference-router import …`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const [name, ...rest] = args
    const planner = actionNamed(planners, name)
    const parsed = parseArguments(rest, { options, positionals: 1 })
    const [file] = parsed.positionals
    if (!file) throw new UsageError(`name the file: import ${name} FILE`)
    const config = resolve(parsed.text('config') ?? process.env.INFERENCE_ROUTER_CONFIG ?? 'config.yaml')
    if (resolve(file) === config)
      throw new CommandError(
        `${file} is the file to import: name another one for this router, as --config router/config.yaml`,
      )
    const env = { ...dotEnvBeside(config), ...process.env }
    const shipped = new ShippedProviders(await snapshotOf(programConfig, env))
    const plan = await planner(file, parsed, { shipped, env })
    const result = await apply(plan, { config, env, org: parsed.text('org'), dryRun: parsed.flag('dry-run') })
    out.stdout(parsed.flag('json') ? jsonText(result) : asText(result, parsed.flag('dry-run')))
    return 0
  })
}

/** Reads a YAML or JSON file. Throws CommandError. */
export function readForeign(file: string): unknown {
  try {
    return parse(readFileSync(file, 'utf8'), { maxAliasCount: 1_000 })
  } catch (thrown) {
    throw new CommandError(`${file}: ${(thrown as Error).message.split('\n')[0]}`)
  }
}

type Result = Pick<ImportedRecords, 'created' | 'unchanged'> & { files: string[]; remarks: Remark[]; manager: boolean }
type Place = { config: string; env: Environment; org: string | undefined; dryRun: boolean }

async function apply(plan: ImportPlan, { config, env, org, dryRun }: Place): Promise<Result> {
  const planned = planFiles(plan, config, env)
  const staged = stage(planned.files, config)
  try {
    const snapshot = await snapshotOf(staged.config, { ...env, ...plan.variables })
    if (!dryRun) writeFiles(planned.files)
    const url = snapshot.config.store.url
    const path = url.slice('sqlite:'.length)
    if (dryRun && existsSync(path) && pendingMigrations(path).names.length > 0)
      throw new CommandError(
        `${path} has tables of an older version, which a dry run does not change; start the router first`,
      )
    const { records, manager } = await withStore(
      dryRun && !existsSync(path) ? 'sqlite::memory:' : url,
      async (store) => {
        if ((await store.organizations.list()).length === 0) await store.organizations.create('default')
        const organization = await organizationFor(store, org)
        const context = { store, organization, directory: directoryOf(snapshot) }
        const made = await createRecords(plan, context, { dryRun })
        const isPlanned = plan.keys.some(({ body }) => (body.permissions as { manage?: string }).manage === 'write')
        return {
          records: made,
          manager: isPlanned || (await store.keys.anotherMay('manage', { organization, id: '' }, Date.now())),
        }
      },
    )
    return {
      files: planned.files.map(({ path }) => path),
      created: records.created,
      unchanged: records.unchanged,
      remarks: [...plan.remarks, ...planned.remarks, ...records.remarks],
      manager,
    }
  } finally {
    rmSync(staged.folder, { recursive: true, force: true })
  }
}

/** Writes the files of an import to a folder of its own, to check them; everything else is read where it is. */
function stage(files: readonly PlannedFile[], config: string): { folder: string; config: string } {
  const folder = mkdtempSync(join(tmpdir(), 'import-'))
  const found = files.find(({ path }) => path === config)
  const settings = (parse(found?.text ?? readFileSync(config, 'utf8')) ?? {}) as {
    folders?: FoldersFile
    store?: { url?: string }
  }
  const folders = foldersOf(settings.folders, dirname(config))
  const absolute = (kind: 'providers' | 'catalog' | 'plugins') =>
    folders[kind].map(({ path, isShipped }) => (isShipped ? 'shipped' : path))
  const own = folders.providers.find(({ isShipped }) => !isShipped)?.path
  const url = settings.store?.url ?? 'sqlite:data/router.sqlite'
  const database = url === 'sqlite::memory:' ? url : `sqlite:${resolve(dirname(config), url.slice('sqlite:'.length))}`
  const providers = join(folder, 'providers')
  mkdirSync(providers)
  const staged = {
    ...settings,
    store: { url: database },
    folders: {
      providers: [providers, ...absolute('providers')],
      catalog: absolute('catalog'),
      plugins: absolute('plugins'),
    },
  }
  writeFiles([
    { path: join(folder, 'config.yaml'), text: stringify(staged) },
    ...files.flatMap(({ path, text }) =>
      own !== undefined && dirname(path) === own ? [{ path: path.replace(own, providers), text }] : [],
    ),
  ])
  return { folder, config: join(folder, 'config.yaml') }
}

/** Builds the snapshot of a configuration. Throws CommandError where it has errors. */
async function snapshotOf(config: string, env: Environment): Promise<Snapshot> {
  const cache = earlierFiles(process.env)
  const { snapshot, problems } = await buildSnapshot(config, env, { cache })
  await cache.written()
  await closeAll(snapshot?.instances ?? [])
  if (snapshot && !hasErrors(problems)) return snapshot
  throw new CommandError(problems.map((problem) => problemLine(problem).trimEnd()).join('\n'))
}

const effects: { readonly [effect in Remark['effect']]: string } = {
  manual: 'To do',
  near: 'Imported as something similar',
  none: 'No equivalent',
}

function asText({ files, created, unchanged, remarks, manager }: Result, dryRun: boolean): string {
  const counts = Object.entries(created).map(([kind, names]) => `${names.length} ${kind}`)
  const wrote = files.map((path) => `  ${relativePath(path)}\n`).join('')
  const sections = (['manual', 'near', 'none'] as const).map((effect) => {
    const rows = remarks.filter((one) => one.effect === effect).map(({ path, message }) => [`  ${path}`, message])
    return rows.length === 0 ? '' : `\n${effects[effect]}:\n${table(rows)}\n`
  })
  const noManager = manager
    ? ''
    : '\nNo key may manage this organization yet: inference-router key create admin --manage write --operate write\n'
  return `${dryRun ? 'Nothing was changed. An import would create' : 'Created'} ${counts.join(', ')}; ${unchanged} were there already.
${wrote === '' ? '' : `${dryRun ? 'It would write' : 'Written'}:\n${wrote}`}${sections.join('')}${noManager}`
}
