import { statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { doubtsIn, gapsIn } from '../catalog/findings.ts'
import { type CatalogFile, readEntries } from '../catalog/read-list.ts'
import { isObject } from '../core/json.ts'
import type { ModelEntry } from '../core/models/model.ts'
import { withoutKeys } from '../core/secrets.ts'
import { hasErrors, type Problem } from '../manifest/check/problem.ts'
import { prove } from '../manifest/check/proof.ts'
import { type FileKind, keepValidatorsIn, readSchema } from '../manifest/check/schema.ts'
import type { ChatEndpoint, Provider } from '../manifest/provider.ts'
import type { Environment } from '../manifest/read/environment.ts'
import type { FileCache } from '../manifest/read/file-cache.ts'
import { countExamples, filesOf } from '../manifest/read/layer.ts'
import type { Source } from '../manifest/read/source.ts'
import { unsupportedByEndpoint } from '../manifest/run/inferred-support.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { closeAll, type PluginInstance } from '../plugin/instances.ts'
import { type Config, loadConfig } from '../snapshot/config.ts'
import { ejectedProblems } from '../snapshot/ejected.ts'
import { shippedFolder } from '../snapshot/folders.ts'
import { type Files, loadCatalog, readFiles } from '../snapshot/load-files.ts'
import { pluginFolders } from '../snapshot/load-plugins.ts'
import { proveFiles } from '../snapshot/snapshot.ts'
import { openHttpClient } from '../upstream/http/http-client.ts'
import { type CheckedTypes, checkTypes } from './check-types.ts'
import { jsonText, type Out, parseArguments, problemLine, relativePath, runCommand, UsageError } from './command.ts'
import { callManifest } from './live/check-call.ts'
import type { LiveCall } from './live/live-call.ts'
import { liveText } from './live/live-text.ts'
import {
  interpretedWarnings,
  isDialect,
  loadOne,
  mappingsIn,
  type PlacedMapping,
  printedMapping,
  readInput,
  treatmentOf,
} from './load-one.ts'
import { dotEnvBeside, locateConfig } from './read-config.ts'
import { earlierFiles } from './read-snapshot.ts'

/** The text of `inference-router check --help`. */
export const help = `Checks configuration, manifests, dialects, catalog and plugins; runs their examples, and sets up the plugins.

  inference-router check [path…] [--mappings [--print]] [--config FILE] [--json]
  inference-router check MANIFEST… --call [--model NAME]

  path            a file or folder to check (default: the configuration and all files it refers to)
  --mappings      list every mapping: compiled, or interpreted because of which construct
  --print         with --mappings: print the JavaScript that each mapping of the paths is compiled to, below its
                  place and the URL by which stack traces and CPU profiles name it
  --call          call the live address of each named manifest as well, once for a whole answer and once for a stream, with
                  at most 16 tokens of output: shows the finish reason, the usage and what it is read from, and the
                  members of the answer that no mapping reads. The provider charges for it
  --model NAME    the model to call (default: the one that costs least)
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON: {checked, mappings: [{file, line, column, name, compiled, construct?, url?, code?}],
                  not_taken: [{file, names}], problems: [{file, line, column, message, severity}], calls?,
                  types_unchecked?: <reason>}

Each problem is one line, file:line:column: message. For each named file, a line lists the request fields that
never reach the provider. The exit code is 1 when there is an error, or a call fails. The types of your plugins are checked
where TypeScript is installed with them or with the router; else a line says that they were not. Variables that are not set are not errors here:
inference-router providers lists them. Interpreted mappings, which are slow, and old names of keys are warnings.
`

const flag = { type: 'boolean' } as const
const text = { type: 'string' } as const
const options = { config: text, model: text, json: flag, mappings: flag, print: flag, call: flag } as const

/** Runs `inference-router check`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { positionals: paths, text, flag } = parseArguments(args, { options, positionals: Number.POSITIVE_INFINITY })
    if (flag('print') && !flag('mappings')) throw new UsageError('--print is for --mappings: name both.')
    if (flag('call') && paths.length === 0)
      throw new UsageError(
        '--call is for manifests: name their files. doctor --call calls the providers of a configuration.',
      )
    const plugin = paths.find((path) => path.endsWith('.ts'))
    if (plugin !== undefined)
      throw new UsageError(`${plugin} is checked together with the configuration that lists it: leave out its path.`)
    const absent = paths.find((path) => !statSync(path, { throwIfNoEntry: false }))
    if (absent !== undefined) throw new UsageError(`There is no file or folder ${absent}.`)
    const configPath = locateConfig(text('config'))
    // A copy: that of the process has no credentials left when plugins were set up.
    const env = { ...process.env }
    const checked = paths.length === 0 ? await checkConfig(configPath, env) : await checkPaths(paths, configPath, env)
    const problems = inOrder([...checked.problems, ...interpretedWarnings(interpretedOf(checked))]).map(withoutKeysIn)
    const calls =
      flag('call') && !hasErrors(problems) ? await callAll(paths, { configPath, env, model: text('model') }) : []
    if (flag('json')) {
      const mappings = checked.mappings.map((placed) => mappingEntry(placed, flag('print')))
      const not_taken = checked.notTaken
      const types = checked.typesUnchecked === undefined ? {} : { types_unchecked: checked.typesUnchecked }
      const called = flag('call') ? { calls } : {}
      out.stdout(jsonText({ checked: countsOf(checked), mappings, not_taken, problems, ...called, ...types }))
    } else {
      const shown = flag('print') ? (placed: PlacedMapping) => `${printedMapping(placed)}\n` : mappingLine
      if (flag('mappings')) for (const placed of checked.mappings) out.stdout(shown(placed))
      for (const problem of problems) out.stdout(problemLine(problem))
      for (const line of checked.notTaken) out.stdout(notTakenLine(line))
      if (checked.typesUnchecked !== undefined)
        out.stdout(`The types of plugins were not checked: ${checked.typesUnchecked}.\n`)
      out.stdout(summary(checked, problems))
      for (const call of calls) out.stdout(liveText(call))
    }
    return hasErrors(problems) || calls.some(({ error }) => error) ? 1 : 0
  })
}

/** Calls the manifests among these files. */
async function callAll(
  paths: readonly string[],
  { configPath, env, model }: { configPath: string; env: Environment; model: string | undefined },
): Promise<LiveCall[]> {
  const { config } = await loadConfig(configPath, env)
  if (!config) return []
  const client = openHttpClient()
  try {
    const calls: LiveCall[] = []
    for (const file of new Set((await Promise.all(paths.map(filesIn))).flat())) {
      const source = await readInput(file)
      if (isConfig(source) || isCatalog(source)) continue
      calls.push(...(await callManifest(source, { config, env, model, client })))
    }
    return calls
  } finally {
    await client.close()
  }
}

/** The result of a check: the number of files of each kind, their mappings and problems. */
type Checked = { providers: number; dialects: number; models: number; examples: number; plugins: number } & {
  mappings: PlacedMapping[]
  /** The mappings that are not compiled. */
  interpreted: ReadonlySet<Mapping>
  /** Request fields of named files that never reach the provider. */
  notTaken: NotTaken[]
  /** The reason why the types of plugins were not checked, if they were not. */
  typesUnchecked?: string
  problems: Problem[]
}

function withoutKeysIn(problem: Problem): Problem {
  return { ...problem, message: withoutKeys(problem.message) }
}

type NotTaken = { file: string; names: string[] }

const nothing: Omit<Checked, 'problems'> = {
  providers: 0,
  dialects: 0,
  models: 0,
  examples: 0,
  plugins: 0,
  mappings: [],
  interpreted: new Set(),
  notTaken: [],
}

/** Checks the types of plugins, but those of the program, which are checked where they are made. */
async function checkPluginTypes(
  plugins: readonly Pick<PluginInstance, 'entry'>[],
  { folders }: Config,
): Promise<CheckedTypes> {
  const own = pluginFolders(folders).filter((folder) => folder !== shippedFolder('plugins'))
  const checked = await Promise.all(
    own.map((folder) =>
      checkTypes(
        plugins.flatMap(({ entry }) => (entry.startsWith(folder + sep) ? entry : [])),
        folder,
      ),
    ),
  )
  const unchecked = checked.find((one) => one.unchecked !== undefined)?.unchecked
  return { problems: checked.flatMap(({ problems }) => problems), ...(unchecked !== undefined && { unchecked }) }
}

async function checkConfig(path: string, env: Environment): Promise<Checked> {
  // Schemas that earlier runs compiled are not compiled again, nor are unchanged files that they found sound checked again.
  const cache = earlierFiles(env)
  keepValidatorsIn(cache)
  const { config, source, problems } = await loadConfig(path, env, { cache })
  if (!config) return { ...nothing, problems }
  const files = await readFiles({ config, source, env, cache, everything: true })
  await closeAll(files.plugins)
  const [types, proof] = [await checkPluginTypes(files.plugins, config), await proveFiles(files, { cache })]
  await cache.written()
  const layers = [
    ...files.dialects.map(({ layer }) => layer),
    ...files.providers.flatMap((one) => one.layers?.slice(-1) ?? []),
  ]
  return {
    ...nothing,
    providers: files.providers.length,
    dialects: files.dialects.length,
    models: files.catalog.list().length,
    examples: layers.reduce((count, layer) => count + countExamples(layer), 0),
    plugins: files.plugins.length,
    mappings: mappingsIn(layers),
    interpreted: proof.interpreted,
    problems: [
      ...problems,
      ...files.problems,
      ...proof.problems,
      ...ejectedProblems(files.sources.values()),
      ...gapsInCatalog(files),
      ...doubtsInFiles(config, source, files),
      ...types.problems,
    ],
    ...(types.unchecked !== undefined && { typesUnchecked: types.unchecked }),
  }
}

/** Finds prices of manifests and settings that can only be mistakes. */
function doubtsInFiles(config: Config, source: Source, { providers }: Pick<Files, 'providers'>): Problem[] {
  return [
    ...providers.flatMap((one) => doubtProblems(one.source, one.provider.models)),
    ...Object.entries(config.providers).flatMap(([slug, { models }]) =>
      doubtProblems(source, readEntries(models ?? {}), ['providers', slug, 'models']),
    ),
  ]
}

/** Finds the facts about models that the files of the catalog leave out; where providers charge by their replies, no price is missed. */
function gapsInCatalog({ providers, sources }: Pick<Files, 'providers' | 'sources'>): Problem[] {
  const charging = new Set(providers.flatMap(({ provider: { slug, reports } }) => (reports?.has('cost') ? [slug] : [])))
  return [...sources.values()].filter(isCatalog).flatMap((source) => {
    const { list } = loadCatalog(source)
    return list ? gapProblems(source, list.models, { priced: !charging.has(list.provider) }) : []
  })
}

function gapProblems(source: Source, models: { [model: string]: ModelEntry }, options: { priced: boolean }): Problem[] {
  const gaps = gapsIn(models, options).map(({ path, message }) => source.problem(['models', ...path], message))
  return [...gaps, ...doubtProblems(source, models)]
}

function doubtProblems(source: Source, models: { [model: string]: ModelEntry }, at?: readonly string[]): Problem[] {
  return doubtsIn(models).map(({ path, message }) => {
    const others = (source.value as Partial<CatalogFile>).by_api
    const api = models[path[0] as string]?.api ?? ''
    const isOther = Object.hasOwn(others?.[api]?.models ?? {}, path[0] as string)
    return source.problem([...(at ?? (isOther ? ['by_api', api, 'models'] : ['models'])), ...path], message)
  })
}

async function checkPaths(paths: readonly string[], configPath: string, env: Environment): Promise<Checked> {
  const cache = earlierFiles(env)
  keepValidatorsIn(cache)
  const { config, problems: unusable } = await loadConfig(configPath, env, { cache })
  const total: Checked = { ...nothing, mappings: [], notTaken: [], problems: [] }
  for (const file of new Set((await Promise.all(paths.map(filesIn))).flat())) {
    const source = await readInput(file)
    const checked = isConfig(source)
      ? await checkConfig(source.file, { ...dotEnvBeside(source.file), ...env })
      : config
        ? await checkOne(source, { config, env, cache })
        : { ...nothing, problems: unusable }
    for (const kind of ['providers', 'dialects', 'models', 'examples', 'plugins'] as const) total[kind] += checked[kind]
    total.mappings.push(...checked.mappings)
    total.interpreted = new Set([...total.interpreted, ...checked.interpreted])
    total.notTaken.push(...checked.notTaken)
    total.problems.push(...checked.problems, ...ejectedProblems([source]))
    if (checked.typesUnchecked !== undefined) total.typesUnchecked = checked.typesUnchecked
  }
  await cache.written()
  return total
}

async function filesIn(path: string): Promise<string[]> {
  if (!statSync(path).isDirectory()) return [resolve(path)]
  const names = await readdir(path, { recursive: true })
  return names
    .filter((name) => name.endsWith('.yaml') && !/(^|[\\/])(\.|node_modules)/.test(name))
    .sort()
    .map((name) => resolve(join(path, name)))
}

async function checkOne(
  source: Source,
  { config, env, cache }: { config: Config; env: Environment; cache: FileCache },
): Promise<Checked> {
  if (isCatalog(source)) {
    const { list, problems } = loadCatalog(source)
    const models = list?.models ?? {}
    const gaps = gapProblems(source, models, { priced: false })
    return { ...nothing, models: Object.keys(models).length, problems: [...problems, ...gaps] }
  }
  const { loaded, problems } = await loadOne(source, config, env)
  const kind = isDialect(source) ? 'dialects' : 'providers'
  if (!loaded) return { ...nothing, [kind]: 1, problems }
  const { provider, layers } = loaded
  const own = layers.slice(-1)
  const proof = await prove({ provider, layers, files: filesOf(layers) }, cache)
  return {
    ...nothing,
    [kind]: 1,
    models: Object.keys(provider.models).length,
    examples: own.reduce((count, layer) => count + countExamples(layer), 0),
    mappings: mappingsIn(own),
    interpreted: proof.interpreted,
    notTaken: provider.chat ? [{ file: source.file, names: notTakenBy(provider, provider.chat) }] : [],
    problems: [...problems, ...proof.problems, ...doubtProblems(source, provider.models)],
  }
}

/** Lists the fields that no request can bring to a provider: neither to its endpoint, nor to a variant that is there for it. */
function notTakenBy({ variants = [] }: Provider, chat: ChatEndpoint): string[] {
  const taken = variants.flatMap(({ when = [], provider }) => {
    const lacking = provider.chat ? unsupportedByEndpoint(provider.chat) : when
    return when.filter((need) => !lacking.includes(need))
  })
  return unsupportedByEndpoint(chat).filter((name) => !taken.some((need) => need === name))
}

/** Checks whether a file is a configuration: by its name, else by what most of its members are members of. */
function isConfig({ file, value }: Source): boolean {
  if (/^config\b/.test(basename(file))) return true
  if (!isObject(value)) return false
  const among = (known: readonly string[]) => Object.keys(value).filter((name) => known.includes(name)).length
  const ofConfig = among(membersOf('config'))
  return ofConfig > 0 && ofConfig >= among(otherKinds.flatMap(membersOf))
}

const otherKinds = ['provider', 'dialect', 'catalog'] as const satisfies FileKind[]

/** Returns the members that files of a kind have. */
function membersOf(kind: FileKind): string[] {
  const { properties } = readSchema(kind)
  return isObject(properties) ? Object.keys(properties) : []
}

function isCatalog({ file, value }: Source): boolean {
  if (basename(dirname(file)) === 'catalog') return true
  return isObject(value) && value.provider !== undefined && value.slug === undefined
}

/** Sorts problems by file and position; a problem that was found twice appears once. */
function inOrder(problems: readonly Problem[]): Problem[] {
  const once = new Map(problems.map((problem) => [problemLine(problem), problem]))
  return [...once.values()].sort(
    (one, other) =>
      (one.file < other.file ? -1 : one.file > other.file ? 1 : 0) ||
      one.line - other.line ||
      one.column - other.column,
  )
}

function interpretedOf({ mappings, interpreted }: Checked): PlacedMapping[] {
  return mappings.filter(({ mapping }) => interpreted.has(mapping))
}

function mappingEntry({ file, name, mapping, place }: PlacedMapping, isPrinted: boolean) {
  const { url, compiled } = mapping
  return {
    file,
    ...place(),
    name,
    ...treatmentOf(mapping),
    ...(isPrinted && compiled && { url, code: mapping.explain() }),
  }
}

function mappingLine({ file, name, mapping, place }: PlacedMapping): string {
  const { line, column } = place()
  const { compiled, construct } = treatmentOf(mapping)
  return `${relativePath(file)}:${line}:${column}: ${name}: ${compiled ? 'compiled' : `interpreted (${construct})`}\n`
}

function notTakenLine({ file, names }: NotTaken): string {
  return names.length === 0 ? '' : `${relativePath(file)} does not support: ${names.join(', ')}\n`
}

function countsOf(checked: Checked) {
  const { problems, mappings, interpreted: _, notTaken: __, typesUnchecked: ___, ...counts } = checked
  return { ...counts, mappings: mappings.length, interpreted: interpretedOf(checked).length }
}

function summary(checked: Checked, problems: readonly Problem[]): string {
  const { providers, dialects, models, examples, plugins, mappings, interpreted } = countsOf(checked)
  const errors = problems.filter(({ severity }) => severity === 'error').length
  const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
  const looked = [
    count(providers, 'provider'),
    count(dialects, 'dialect'),
    count(models, 'model'),
    count(examples, 'example'),
    ...(plugins > 0 ? [count(plugins, 'plugin')] : []),
    `${count(mappings, 'mapping')}${interpreted > 0 ? ` (${interpreted} interpreted)` : ''}`,
  ]
  const found = [count(errors, 'error'), count(problems.length - errors, 'warning')]
  return `${looked.join(', ')}: ${problems.length === 0 ? 'no problems' : found.join(', ')}\n`
}
