import { readFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type CreationLimits, defaultCreationLimits } from '../core/creation-limits.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { Policy } from '../core/names.ts'
import { type PolicyFile, policyOf, type RoutingFile, routingOf } from '../core/routing/policy-file.ts'
import { defaultHealth, defaultRouting, type HealthSettings, type RoutingRules } from '../core/routing/rules.ts'
import { dayMs, durationMs } from '../core/time.ts'
import { type Problem, readingFailure } from '../manifest/check/problem.ts'
import { checkSchema, readSchema } from '../manifest/check/schema.ts'
import {
  brokenReferenceMessage,
  type Environment,
  hasBrokenReference,
  resolveText,
} from '../manifest/read/environment.ts'
import { type FileCache, noCache } from '../manifest/read/file-cache.ts'
import type { KnownSources, Texts } from '../manifest/read/folder.ts'
import type { Path } from '../manifest/read/position.ts'
import type { ProviderSettings, UnknownModelsFile } from '../manifest/read/references.ts'
import { readSource, type Source } from '../manifest/read/source.ts'
import type { CallMetricsSettings } from '../observe/call-metrics.ts'
import { type PluginFile, type PluginSettings, pluginSettings } from '../plugin/settings.ts'
import type { UnprefixedModels } from '../routing/names/resolve.ts'
import { type AnswerBounds, defaultAnswerBounds } from '../upstream/answer-body.ts'
import type { MediaSettings } from '../upstream/files/fetcher.ts'
import { absentText, isOptional } from './find-config.ts'
import { type Folders, type FoldersFile, foldersOf } from './folders.ts'
import { storeProblems, storeUrl, usualStore } from './store-place.ts'

/** Limits of the body of a request: values of any kind, and fields at its top that its API does not have. */
type BodyBounds = { bytes: number; values: number; unknownFields: number }

/** The operator's settings with all defaults filled in; folders and the store's path are absolute. */
export type Config = {
  /** The file they come from; it need not exist at the default place. */
  path: string
  /** `threads`: how many event loops serve calls; `auto` is one for each core. */
  server: {
    host: string
    port: number
    threads: number | 'auto'
    body: BodyBounds
    cors: readonly string[]
    /** Number of calls that may run at once, and of those that may wait. */
    limits: { concurrent: number; queue: number }
    /** Moment at which a stream that has nothing to send yet is begun. */
    keepAlive: 'late' | 'early'
    /** Maximum time for which a client may stall while it sends or reads. Milliseconds. */
    clientTimeoutMs: number
    /** Least number of bytes that a client takes in a second while its answer is waiting; 0 for none. */
    clientMinRate: number
  }
  /** Time for which messages of providers about failed attempts are stored; 0 for not at all. */
  errors: { keepMs: number }
  /** Limits of the size of the answers of providers. */
  answers: AnswerBounds
  /** Port of the management API, null where it shares the server; and how much an organization can create. */
  manage: { port: number | null; limits: CreationLimits }
  /** `sqlite:` and an absolute path, or `sqlite::memory:`. */
  store: { url: string }
  folders: Folders
  /** Limits of fetching files that clients give by URL. */
  media: MediaSettings
  /** The reservation of a call. */
  budget: { defaultOutputTokens: number; abandoned: 'prompt' | 'nothing'; usageWaitMs: number }
  /** Settings of providers by slug, in the form of manifests; their references are resolved together with the manifest. */
  providers: { [slug: string]: ProviderSettings }
  /** Handling of models that no catalog lists, where a provider does not define it. */
  unknownModels: UnknownModelsFile
  /** Handling of names of models without a provider. */
  unprefixedModels: UnprefixedModels
  /** True if models are refused from the day on for which their provider has announced their retirement. */
  refuseRetired: boolean
  /** Managed policies, by id. */
  policies: ReadonlyMap<string, Policy>
  /** Settings of organizations, by id. */
  organizations: ReadonlyMap<string, OrganizationSettings>
  /** The rules of names that have none of their own. */
  routing: RoutingRules
  health: HealthSettings
  /** Settings of plugins, in the order in which they are called. */
  plugins: readonly PluginSettings[]
  /** `public`: they may be read without a key; how many label sets a metric has at most, and what else calls are counted by. */
  metrics: CallMetricsSettings & { enabled: boolean; public: boolean }
  /** The pages at /console/. */
  console: { enabled: boolean }
}

/** Resources of the accounts at providers that an organization may use: all of them, or these ids and patterns. */
type OrganizationSettings = { resources: 'open' | readonly string[] }

/** The file as it may be written. */
type ConfigFile = {
  server?: {
    host?: string
    port?: number
    threads?: number | 'auto'
    body_limit?: string | number
    max_values?: number
    max_unknown_fields?: number
    cors?: string[]
    keep_alive?: 'late' | 'early'
    client_timeout?: string
    client_min_rate?: string | number
    limits?: { concurrent: number; queue?: number }
  } | null
  manage?: { port?: number | null; limits?: CreationLimitsFile | null } | null
  metrics?: Partial<Config['metrics']> | null
  console?: Partial<Config['console']> | null
  answers?: { body_limit?: string | number; event_limit?: string | number; max_values?: number } | null
  errors?: { keep?: string | number } | null
  store?: { url?: string } | null
  folders?: FoldersFile | null
  media?: {
    schemes?: string[]
    max_bytes?: string | number
    max_total_bytes?: string | number
    max_files?: number
    timeout?: string
    allow_hosts?: string[]
  } | null
  budget?: { default_output_tokens?: number; abandoned?: 'prompt' | 'nothing'; wait_for_usage?: string } | null
  providers?: { [slug: string]: ProviderSettings | null } | null
  unknown_models?: UnknownModelsFile
  unprefixed_models?: UnprefixedModels
  refuse_retired?: boolean
  policies?: { [id: string]: PolicyFile } | null
  organizations?: { [id: string]: { resources?: 'open' | string[] } | null } | null
  routing?: RoutingFile | null
  health?: HealthFile | null
  plugins?: PluginFile[] | null
}

type CreationLimitsFile = {
  [name in 'keys' | 'groups' | 'aliases' | 'policies' | 'targets' | 'labels' | 'models' | 'responses']?: number
} & { label_length?: number; changes_per_hour?: number; response_bytes?: string | number }

/**
 * Reads a configuration file; a `known` source with the same text is not parsed again. Only the project's own file may
 * be missing, and in builds that of the working folder: then everything has its default. Problems beside a configuration are warnings.
 */
export async function loadConfig(
  path: string,
  env: Environment,
  { known, cache = noCache, texts }: { known?: KnownSources; cache?: FileCache; texts?: Texts | undefined } = {},
): Promise<{ config?: Config; source: Source; problems: Problem[] }> {
  const { source, problems } = await readConfigFile(path, known?.get(path), texts)
  if (problems.length > 0) return { source, problems }
  const { value, problems: unresolved } = resolveReferences(source, env)
  // The schema would report missing variables a second time.
  const wrong = unresolved.length > 0 ? unresolved : checkOnce(source, value, cache)
  if (wrong.length > 0) return { source, problems: [...source.warnings, ...wrong] }
  const config = configOf(path, (value ?? {}) as ConfigFile, env)
  return { config, source, problems: [...source.warnings, ...storeProblems(config, source, env)] }
}

/** Checks settings with the values of the environment in them, unless the very same ones passed before. */
function checkOnce(source: Source, value: unknown, cache: FileCache): Problem[] {
  const about = ['config', source.text, JSON.stringify(value) ?? '']
  if (cache.read(about) === true) return []
  const problems = checkSchema(source, 'config', value)
  if (problems.length === 0) cache.write(about, true)
  return problems
}

/** Lists settings that differ between two generations but apply only from the next start, by name: `server.port`. */
export function needRestart(before: Config, after: Config): string[] {
  return restartSettings().flatMap((path) => {
    const [one, other] = [valueAt(before, path), valueAt(after, path)]
    return isDeepStrictEqual(one, other) ? [] : [path.join('.')]
  })
}

/** Returns the paths of the settings that apply only from the next start. */
export function restartSettings(): string[][] {
  return restartPaths(readSchema('config'), [])
}

async function readConfigFile(
  path: string,
  known?: Source,
  texts?: Texts,
): Promise<{ source: Source; problems: Problem[] }> {
  try {
    const text = texts ? (texts.get(path) ?? absentText(path)) : await readFile(path, 'utf8')
    const source = known?.text === text ? known : readSource(path, text)
    return { source, problems: source.problems }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const text = absentText(path)
    const source = known?.text === text ? known : readSource(path, text)
    if (code === 'ENOENT' && isOptional(path)) return { source, problems: [] }
    const reason = code === 'ENOENT' ? 'there is no such file' : readingFailure(error)
    return { source, problems: [source.problem([], `the configuration cannot be read: ${reason}`)] }
  }
}

function configOf(path: string, file: ConfigFile, env: Environment): Config {
  const folder = dirname(path)
  // A container is reached from outside; INFERENCE_ROUTER_HOST of its image says so without a configuration.
  const {
    host = env.INFERENCE_ROUTER_HOST || '127.0.0.1',
    port = 8787,
    threads = 1,
    cors = [],
    keep_alive = 'late',
  } = file.server ?? {}
  const { client_timeout = '30s', client_min_rate = '1kb' } = file.server ?? {}
  const settings = Object.entries(file.providers ?? {}).map(([slug, settings]) => [slug, settings ?? {}] as const)
  return {
    path,
    server: {
      host,
      port,
      threads,
      body: bodyBounds(file.server ?? {}),
      cors,
      limits: { ...defaultLimits, ...file.server?.limits },
      keepAlive: keep_alive,
      clientTimeoutMs: durationMs(client_timeout) as number,
      clientMinRate: bytesOf(client_min_rate),
    },
    answers: answerBounds(file.answers ?? {}),
    manage: { port: file.manage?.port ?? null, limits: creationLimits(file.manage?.limits ?? {}) },
    errors: { keepMs: keptMs(file.errors?.keep ?? '7d') },
    store: { url: storeUrl(file.store?.url ?? usualStore, path, env) },
    folders: foldersOf(file.folders, folder),
    media: mediaOf(file.media ?? {}),
    budget: {
      defaultOutputTokens: file.budget?.default_output_tokens ?? 4_096,
      abandoned: file.budget?.abandoned ?? 'prompt',
      usageWaitMs: ms(file.budget?.wait_for_usage) ?? 10_000,
    },
    providers: Object.assign(Object.create(null), Object.fromEntries(settings)),
    unknownModels: file.unknown_models ?? 'refuse',
    unprefixedModels: file.unprefixed_models ?? 'refuse',
    refuseRetired: file.refuse_retired ?? false,
    policies: policiesOf(file.policies ?? {}),
    organizations: new Map(
      Object.entries(file.organizations ?? {}).map(([id, settings]) => [id, { resources: settings?.resources ?? [] }]),
    ),
    routing: { ...defaultRouting, ...routingOf(file.routing ?? {}) },
    health: healthOf(file.health ?? {}),
    plugins: (file.plugins ?? []).map(pluginSettings),
    metrics: { enabled: true, public: false, series: 1_000, labels: [], ...file.metrics },
    console: { enabled: true, ...file.console },
  }
}

/** Default limits of the whole server. */
const defaultLimits = { concurrent: 5_000, queue: 1_000 }

function bodyBounds(file: NonNullable<ConfigFile['server']>): BodyBounds {
  const { body_limit = '50mb', max_values = 200_000, max_unknown_fields = 1_000 } = file
  return { bytes: bytesOf(body_limit), values: max_values, unknownFields: max_unknown_fields }
}

function creationLimits({
  label_length: labelLength = defaultCreationLimits.labelLength,
  changes_per_hour: changesPerHour = defaultCreationLimits.changesPerHour,
  response_bytes = defaultCreationLimits.responseBytes,
  ...counts
}: CreationLimitsFile): CreationLimits {
  return { ...defaultCreationLimits, ...counts, labelLength, changesPerHour, responseBytes: bytesOf(response_bytes) }
}

function answerBounds({ body_limit, event_limit, max_values }: NonNullable<ConfigFile['answers']>): AnswerBounds {
  const { bytes, eventBytes, values } = defaultAnswerBounds
  return {
    bytes: bytesOf(body_limit ?? bytes),
    eventBytes: bytesOf(event_limit ?? eventBytes),
    values: max_values ?? values,
  }
}

function mediaOf(file: NonNullable<ConfigFile['media']>): MediaSettings {
  const { max_bytes = '20mb', max_total_bytes = '50mb', timeout = '10s' } = file
  return {
    schemes: file.schemes ?? ['https'],
    maxBytes: bytesOf(max_bytes),
    maxTotalBytes: bytesOf(max_total_bytes),
    maxFiles: file.max_files ?? 20,
    timeoutMs: durationMs(timeout) as number,
    allowHosts: file.allow_hosts ?? [],
  }
}

const sizes: { [unit: string]: number } = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }

function bytesOf(size: string | number): number {
  const [, count, unit = 'b'] = /^([\d.]+)([a-z]+)$/.exec(String(size)) ?? []
  return count === undefined ? Number(size) : Math.floor(Number(count) * (sizes[unit] ?? 1))
}

/** Returns a copy of the file's value with the environment's values in it; providers' settings keep their references. */
function resolveReferences(source: Source, env: Environment): { value: unknown; problems: Problem[] } {
  const problems: Problem[] = []
  const schema = readSchema('config')
  const visit = (value: unknown, path: Path): unknown => {
    if (path[0] === 'providers') return value
    if (Array.isArray(value)) return value.map((item, index) => visit(item, [...path, index]))
    if (isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, visit(member, [...path, name])]))
    }
    if (typeof value !== 'string' || !value.includes('${')) return value
    if (hasBrokenReference(value)) problems.push(source.problem(path, brokenReferenceMessage))
    const { text, missing } = resolveText(value, env)
    for (const name of missing) {
      problems.push(source.problem(path, `the variable ${name} is not set: set it, or write \${${name}:-a default}`))
    }
    return takesText(schema, path) ? text : plainValue(text)
  }
  return { value: visit(source.value, []), problems }
}

/**
 * Checks whether a setting takes a text. Environment variables are strings: where the schema has another type, a string that looks like a
 * number, boolean or null is converted.
 */
function takesText(schema: JsonObject, path: Path): boolean {
  const inside = (step: Path[number]) => (typeof step === 'number' ? ['items'] : ['properties', step])
  const node = path.reduce<unknown>((at, step) => valueAt(at, inside(step)), schema)
  return [valueAt(node, ['type'])].flat().includes('string')
}

function plainValue(text: string): unknown {
  return /^(?:-?\d+(?:\.\d+)?|true|false|null)$/.test(text) ? JSON.parse(text) : text
}

function restartPaths(schema: unknown, path: string[]): string[][] {
  if (!isObject(schema)) return []
  if (schema['x-restart'] === true) return [path]
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => restartPaths(member, [...path, name]))
}

/** Returns a member of an object by its path. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), value)
}

type HealthFile = {
  consecutive_failures?: number
  share?: number
  min_calls?: number
  window?: string
  open_for?: string
  max_open?: string
  ramp_up?: string
}

/** Returns policies by id, of a file that has passed its schema. */
function policiesOf(file: { [id: string]: PolicyFile }): Map<string, Policy> {
  return new Map(Object.entries(file).map(([id, policy]) => [id, policyOf(id, policy)]))
}

/** Returns the settings of health that a file states, with the defaults of the others. */
function healthOf(file: HealthFile): HealthSettings {
  const { consecutive_failures, share, min_calls, window, open_for, max_open, ramp_up } = file
  const base = defaultHealth
  return {
    inARow: consecutive_failures ?? base.inARow,
    share: share ?? base.share,
    of: min_calls ?? base.of,
    windowMs: ms(window) ?? base.windowMs,
    openMs: ms(open_for) ?? base.openMs,
    maxOpenMs: ms(max_open) ?? base.maxOpenMs,
    rampUpMs: ms(ramp_up) ?? base.rampUpMs,
  }
}

/** Returns how long something is stored: a duration, also in days; 0 and `off` are not at all. */
function keptMs(duration: string | number): number {
  const [, days] = /^([\d.]+)d$/.exec(String(duration)) ?? []
  return days === undefined ? (durationMs(String(duration)) ?? 0) : Math.round(Number(days) * dayMs)
}

function ms(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}

/** Returns a file relative to the folder of the configuration; of files elsewhere, such as shipped dialects, the last two names. */
export function shortPath(file: string, config: string): string {
  const path = relative(dirname(config), file)
  return path.startsWith('..') ? join(basename(dirname(file)), basename(file)) : path
}
