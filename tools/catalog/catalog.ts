import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, matchesGlob, relative } from 'node:path'
import { type CatalogFile, readList } from '../../src/catalog/read-list.ts'
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
} from '../../src/cli/command.ts'
import { locateConfig } from '../../src/cli/read-config.ts'
import type { Json } from '../../src/core/json.ts'
import { readYaml } from '../../src/manifest/read/read-yaml.ts'
import { loadConfig } from '../../src/snapshot/config.ts'
import { pathsOf } from '../../src/snapshot/folders.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import { type Comparison, compareList, type Difference, type ListedCatalog } from './compare-list.ts'
import { editCatalog } from './edit-list.ts'
import { lineDifference } from './line-difference.ts'
import { comparedFields, isPrice, type PublicList, type PublicListName, readPublicList } from './public-list.ts'

/** The text of `inference-router catalog --help`. */
export const help = `Compares the catalog with a public price list, and applies the changes that you accept.

  inference-router catalog diff --from LIST [--provider SLUG] [--model NAME] [--field NAME] [--json]
  inference-router catalog update --from LIST [--provider SLUG] [--model NAME] [--field NAME] [--write]

diff shows where prices (of the lowest tier, in force now) and limits differ, and how many models only one side has.
update prints the same changes as a diff of the YAML files, for \`git apply\`, or makes them with --write: it changes
single numbers, so that comments stay. Changes that no number in a file expresses (a field that is missing or comes from the
defaults, a price that applies for a limited time) are listed for you to make by hand, and so are prices that would change
by a factor of ten or more, or to zero: they are probably in another unit.

  --from LIST       a file or an https URL: LiteLLM's model_prices_and_context_window.json, the api.json of models.dev, or
                    OpenRouter's /api/v1/models
  --provider SLUG   one provider; repeatable
  --model NAME      models by name, or by a pattern such as gpt-5*; repeatable
  --field NAME      one of ${comparedFields.join(', ')}; repeatable
  --write           change the files of folders.catalog
  --config FILE     the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json            print JSON

Where a list has another name for a provider, its catalog file has that name under \`listed_as\`.
`

const options = {
  from: { type: 'string' },
  provider: { type: 'string', multiple: true },
  model: { type: 'string', multiple: true },
  field: { type: 'string', multiple: true },
  write: { type: 'boolean' },
  config: { type: 'string' },
  json: { type: 'boolean' },
} as const

const actions = { diff: showDifferences, update }

/** Runs `inference-router catalog …`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const [name, ...rest] = args
    const action = actionNamed(actions, name)
    const parsed = parseArguments(rest, { options })
    const from = parsed.text('from')
    if (from === undefined) throw new UsageError('name the list with --from: a file or an https URL')
    const { config, problems } = await loadConfig(locateConfig(parsed.text('config')), process.env)
    for (const problem of problems) out.stderr(problemLine(problem))
    if (!config) return 1
    const list = await fetchList(from)
    // Shipped files are not changed: an update of the program would replace them.
    const folders = config.folders.catalog.filter(({ isShipped }) => action === showDifferences || !isShipped)
    const paths = pathsOf(folders)
    const files = catalogFiles(paths, list.name)
    const catalogs = files.filter(({ provider }) => isChosen(parsed.texts('provider'), provider))
    if (catalogs.length === 0) throw new CommandError(`There is no such provider in ${paths.join(' or ')}.`)
    return action({ comparison: chosen(compareList(catalogs, list, Date.now()), parsed), catalogs, list, parsed }, out)
  })
}

type CatalogFileOf = ListedCatalog & { path: string; text: string }
type Compared = { comparison: Comparison; catalogs: readonly CatalogFileOf[]; list: PublicList; parsed: Args }

function catalogFiles(folders: readonly string[], list: PublicListName): CatalogFileOf[] {
  // Of several files of a name the first folder's is used.
  const paths = new Map(folders.toReversed().flatMap((folder) => yamlFilesIn(folder)))
  return [...paths.values()].map((path) => {
    const text = readFileSync(path, 'utf8')
    const file = readYaml(text)?.value as (CatalogFile & { listed_as?: Record<string, string | string[]> }) | undefined
    if (!file) throw new CommandError(`${relativePath(path)} cannot be read: \`inference-router check\` says why.`)
    const { models } = readList(file)
    return { path, text, provider: file.provider, models, names: [file.listed_as?.[list] ?? file.provider].flat() }
  })
}

function yamlFilesIn(folder: string): (readonly [name: string, path: string])[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
  return names.map((name) => [name, join(folder, name)] as const)
}

async function fetchList(from: string): Promise<PublicList> {
  try {
    const text = /^https?:\/\//.test(from) ? await download(from) : readFileSync(from, 'utf8')
    return readPublicList(JSON.parse(text) as Json)
  } catch (thrown) {
    throw new CommandError(`${from}: ${(thrown as Error).message}`)
  }
}

async function download(url: string): Promise<string> {
  const client = openHttpClient()
  try {
    const headers = { accept: 'application/json', 'user-agent': 'inference-router' }
    const signal = AbortSignal.timeout(timeouts.totalMs)
    const { status, bytes } = await client.send({ method: 'GET', url, headers, timeouts, signal, provider: 'list' })
    if (status !== 200) throw new Error(`the answer is ${status}`)
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of bytes) {
      size += chunk.length
      if (size > maxListBytes) throw new Error(`the answer has more than ${maxListBytes / 1e6} MB`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  } finally {
    await client.close()
  }
}

/** Bytes of a list; the largest known has 5 MB. */
const maxListBytes = 50e6

const timeouts = { connectMs: 10_000, firstEventMs: 30_000, betweenEventsMs: 30_000, totalMs: 60_000, wholeMs: 60_000 }

function isChosen(wanted: readonly string[], name: string): boolean {
  return wanted.length === 0 || wanted.some((pattern) => matchesGlob(name, pattern))
}

function chosen(comparison: Comparison, parsed: Args): Comparison {
  const [models, fields] = [parsed.texts('model'), parsed.texts('field')]
  const wrong = fields.find((field) => !(comparedFields as readonly string[]).includes(field))
  if (wrong !== undefined) throw new UsageError(`there is no field '${wrong}'; fields: ${comparedFields.join(', ')}`)
  const differences = comparison.differences.filter(
    ({ model, field }) => isChosen(models, model) && (fields.length === 0 || fields.includes(field)),
  )
  return { ...comparison, differences }
}

function showDifferences({ comparison, list, parsed }: Compared, out: Out): number {
  const { compared, differences, unknown, unlisted } = comparison
  if (parsed.flag('json')) out.stdout(jsonText({ list: list.name, ...comparison }))
  else {
    if (differences.length > 0) out.stdout(`${asTable(differences)}\n\n`)
    const facts = [`${compared} models compared with ${list.name}, ${differences.length} differences`]
    facts.push(`${unlisted.length} models only in the catalog, ${unknown.length} only in the list`)
    out.stdout(`${facts.join('; ')}\n`)
  }
  return 0
}

function asTable(differences: readonly Difference[]): string {
  const rows = differences.map(({ provider, model, field, ours, theirs }) => [
    `${provider}/${model}`,
    field,
    shown(field, ours),
    shown(field, theirs),
  ])
  return table([['MODEL', 'FIELD', 'HERE', 'THERE'], ...rows])
}

/** Writes prices in USD per million tokens. */
function shown(field: string, value: number | undefined): string {
  if (value === undefined) return '-'
  return isPrice(field) ? `${Number((value * 1e6).toPrecision(6))} $/M` : String(value)
}

function update({ comparison, catalogs, parsed }: Compared, out: Out): number {
  const byHand: Difference[] = []
  let changed = 0
  for (const { provider, path, text } of catalogs) {
    const own = comparison.differences.filter((one) => one.provider === provider)
    const edited = editCatalog(text, own)
    byHand.push(...edited.byHand)
    changed += own.length - edited.byHand.length
    if (edited.text === text) continue
    if (parsed.flag('write')) writeFileSync(path, edited.text)
    else out.stdout(lineDifference(relative('', path), text, edited.text))
  }
  if (byHand.length > 0) out.stderr(`To change by hand:\n${asTable(byHand)}\n`)
  const how = parsed.flag('write') ? 'numbers were changed' : 'numbers would change: use --write to change them'
  out.stderr(`${changed} ${how}. Run \`inference-router check\` afterwards.\n`)
  return 0
}
