import { type Operation, operations } from '../../core/operation.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { Problem } from '../check/problem.ts'
import { undeclarable, unsupportedNameProblem } from '../fields.ts'
import type { Job, OperationEndpoint, OperationEndpoints } from '../operation.ts'
import type { ChatEndpoint, Provider, StreamForm, Timeouts } from '../provider.ts'
import type { UnsupportedField } from '../types.ts'
import type { PartialChat } from './chat-layer.ts'
import { jobMistake, joinJob } from './job.ts'
import { isOfProvider, type Layer } from './layer.ts'
import type { PartialOperation } from './operation-layer.ts'
import type { Source } from './source.ts'

/** The default limits of an attempt. */
export const defaultTimeouts: Timeouts = {
  connectMs: 5_000,
  firstEventMs: 600_000,
  betweenEventsMs: 60_000,
  wholeMs: 600_000,
  totalMs: 600_000,
}

/** Merges what all kinds of layers have, the later ones over the earlier ones: tables join by name, lists add up. */
export function merge(
  layers: readonly Layer[],
): Pick<Provider, 'errors' | 'rejections' | 'errorHeaders' | 'rateLimits' | 'traits' | 'failure'> &
  Pick<Layer, 'headers' | 'restricted'> {
  const governed = new Map(layers.flatMap((layer) => layer.restricted.map((field) => [field.name, field] as const)))
  const failure = layers.findLast((layer) => layer.failure)?.failure
  const rejections: Layer['rejections'] = Object.assign({}, ...layers.map((layer) => layer.rejections))
  const errorHeaders = [...new Set(layers.flatMap((layer) => layer.errorHeaders))]
  const rateLimits = new Map(
    layers.flatMap((layer) => layer.rateLimits.map((one) => [[one.remaining, ...(one.in ?? [])].join(' '), one])),
  )
  return {
    restricted: [...governed.values()],
    headers: Object.assign({}, ...layers.map(({ headers }) => headers)),
    // Codes come from providers: a name that every object has must not be found in the table.
    errors: Object.assign(Object.create(null), ...layers.map(({ errors }) => errors)),
    ...(failure && { failure }),
    ...(Object.keys(rejections).length > 0 && { rejections }),
    ...(errorHeaders.length > 0 && { errorHeaders }),
    ...(rateLimits.size > 0 && { rateLimits: [...rateLimits.values()] }),
    traits: layers.flatMap(({ traits }) => traits),
  }
}

/** Returns the endpoints that count requests, compact conversations and list models. */
export function besideChat(layers: readonly Layer[]): Pick<Provider, 'count' | 'compact' | 'listing'> {
  const count = layers.findLast((one) => one.count)?.count
  const compact = layers.findLast((one) => one.compact)?.compact
  const listing = layers.findLast((one) => one.listing !== undefined)?.listing
  return { ...(count && { count }), ...(compact && { compact }), ...(listing && { listing }) }
}

/** Merges all layers to one endpoint; missing, with the reasons, when none of them declares something that it needs. */
export function chatOf(layers: readonly Layer[], source: Source): { chat?: ChatEndpoint; problems: Problem[] } {
  const parts = layers.flatMap(({ chat }) => (chat ? [chat] : []))
  const last = <Name extends 'path' | 'request' | 'reply' | 'outputLimits'>(name: Name) =>
    parts.findLast((part) => part[name])?.[name]
  const path = last('path')
  const request = last('request')
  const reply = last('reply')
  const outputLimits = last('outputLimits')
  const events = new Map(parts.flatMap((part) => [...part.events]))
  const { job, missing: lacked } = joinJob(parts.map((part) => part.job))
  const stream: StreamForm = { path: path ?? '', format: 'sse', data: 'json', ...streamOf(parts, job) }
  const needed = { path, request, reply, events: events.size > 0 || stream.whole || undefined }
  const absent = [
    ...Object.entries(needed).flatMap(([name, declared]) => (declared === undefined ? [name] : [])),
    ...(lacked ? [lacked] : []),
  ]
  // A provider may have operations alone.
  if (parts.length === 0 && layers.some(({ offers }) => offers.length > 0))
    return { problems: unsupportedProblems(layers) }
  if (path === undefined || !request || !reply || absent.length > 0) {
    const broken = new Set(parts.flatMap((part) => part.broken))
    const gaps = absent.filter((name) => !broken.has(name)).map((name) => missing(source, name, layers.length > 1))
    return { problems: [...gaps, ...unsupportedProblems(layers)] }
  }
  const mistake = (job && jobMistake(job)) ?? streamMistake(parts)
  if (mistake !== undefined) {
    const about = source.problem(['endpoints', 'chat'], `\`endpoints.chat\` ${mistake}`, 'name')
    return { problems: [about, ...unsupportedProblems(layers)] }
  }
  const tables = layers.flatMap(({ finish }) => (finish ? [finish] : []))
  const usage = layers.findLast((layer) => layer.usage)?.usage
  const chat: ChatEndpoint = {
    path,
    stream,
    request,
    ...(outputLimits && { outputLimits }),
    reply,
    events,
    ...(tables.length > 0 && { finish: Object.assign(Object.create(null), ...tables) }),
    ...(usage && { usage }),
    patch: Object.assign({}, ...parts.map(({ patch }) => patch)),
    ...(job && { job }),
    unsupported: unsupportedOf(layers),
    history: Object.assign({}, ...parts.map(({ history }) => history)),
  }
  return { chat, problems: unsupportedProblems(layers) }
}

/**
 * Merges the stream form of all layers. The place of the text is given by the last one that defines how events are read. A job whose
 * stream has no address gives its result at once.
 */
function streamOf(parts: readonly PartialChat[], job: Job | undefined): Partial<StreamForm> {
  const {
    text: _,
    address: __,
    whole: isWhole,
    ...rest
  }: PartialChat['stream'] = Object.assign({}, ...parts.map((one) => one.stream))
  const { url, hosts = [] } = addressOf(parts)
  const reads = parts.findLast((part) => part.stream.text || part.events.size > 0 || part.patch.event)
  const hasText = reads?.stream.text && !rest.cumulative
  const whole = isWhole === true || (job !== undefined && url === undefined)
  return {
    ...rest,
    ...(whole && { whole }),
    ...(url && { address: { url, hosts } }),
    ...(hasText && { text: reads.stream.text as readonly string[] }),
  }
}

function addressOf(parts: readonly PartialChat[]): Partial<NonNullable<StreamForm['address']>> {
  return Object.assign({}, ...parts.map(({ stream }) => stream.address))
}

function streamMistake(parts: readonly PartialChat[]): string | undefined {
  const { url, hosts } = addressOf(parts)
  return hosts && !url ? 'has `stream.hosts`, which matters only where `stream.url` reads an address' : undefined
}

/** Returns the unsupported fields of all layers; the name of a group stands for those in it. */
function unsupportedOf(layers: readonly Layer[]): UnsupportedField[] {
  const groups = groupsOf(layers)
  return layers.flatMap(({ chat }) =>
    (chat?.unsupported ?? []).flatMap((loss) =>
      (groups[loss.field] ?? [loss.field]).map((field) => ({ ...loss, field })),
    ),
  )
}

/** Finds names of unsupported fields in the last layer that mean nothing; those of the others are reported with their own files. */
function unsupportedProblems(layers: readonly Layer[]): Problem[] {
  const layer = layers.at(-1)
  if (!layer) return []
  const names = Object.keys(groupsOf(layers))
  const inGroups = Object.entries(layer.groups).flatMap(([name, fields]) =>
    fields.map((field, index) => ({ field, path: ['groups', name, index] })),
  )
  const losses = (layer.chat?.unsupported ?? []).filter(({ field }) => !names.includes(field))
  return [...inGroups, ...losses].flatMap(({ field, path }) => {
    const wrong = unsupportedNameProblem(field, names) ?? undeclarable(field)
    return wrong === undefined ? [] : [layer.source.problem(path, wrong)]
  })
}

function groupsOf(layers: readonly Layer[]): Layer['groups'] {
  return Object.assign(Object.create(null), ...layers.map(({ groups }) => groups))
}

function missing(source: Source, name: string, hasDialect: boolean): Problem {
  const advice = hasDialect ? 'which its dialect does not have either' : 'or the manifest needs a `dialect` that has it'
  return source.problem(['endpoints', 'chat'], `\`endpoints.chat\` needs \`${name}\`, ${advice}`, 'name')
}

/**
 * The endpoints for operations that are described for a provider; those that its own files name are `offered`, with a problem for
 * each that nothing describes enough.
 */
export function operationsOf(
  layers: readonly Layer[],
  source: Source,
): { endpoints: OperationEndpoints; problems: Problem[] } {
  const offered = new Set(layers.flatMap(({ offers }) => offers))
  const withheld = new Set(layers.flatMap(({ withholds }) => withholds))
  const usage = layers.findLast((layer) => layer.usage && isOfProvider(layer.source.value))?.usage
  const endpoints: { [name in Operation]?: OperationEndpoint } = {}
  const problems: Problem[] = []
  for (const name of Object.keys(operations) as Operation[]) {
    if (withheld.has(name)) continue
    const parts = layers.flatMap((layer) => layer.operations[name] ?? [])
    const { endpoint, missing } = join(parts, usage)
    const isOffered = offered.has(name)
    const mistake = endpoint ? mistakeIn(name, endpoint) : `needs \`${missing}\``
    if (endpoint) endpoints[name] = { ...endpoint, offered: isOffered }
    if (isOffered && mistake !== undefined)
      problems.push(source.problem(['endpoints', name], `\`endpoints.${name}\` ${mistake}`, 'name'))
  }
  return { endpoints, problems }
}

/** Returns what cannot work in an endpoint, regardless of the provider. */
function mistakeIn(name: Operation, { body, request, answer, reply, job }: Described): string | undefined {
  if (answer === 'bytes' && !reply && name !== 'speech')
    return 'needs `reply`: its answers are bytes, and clients get JSON'
  if (body === 'bytes' && !request && !withFiles.has(name))
    return 'needs `request`: its body is bytes, and clients send no file'
  return job && jobMistake(job)
}

/** The operations whose fields have a file. */
const withFiles: ReadonlySet<Operation> = new Set<Operation>(['transcribe', 'image_edit'])

/** Checks whether there is any endpoint. */
export function hasAny(endpoints: OperationEndpoints): boolean {
  return Object.keys(endpoints).length > 0
}

/** Joins the parts of one endpoint; `usage` is that of the manifest, for an endpoint without its own. */
function join(parts: readonly PartialOperation[], usage?: Mapping): { endpoint?: Described; missing?: string } {
  const all: PartialOperation = Object.assign({}, ...parts)
  const { path, patch: _, unsupported: __, stream: ___, job: ____, ...rest } = all
  if (path === undefined) return { missing: 'path' }
  const stream = Object.assign({}, ...parts.map((part) => part.stream))
  const { job, missing } = joinJob(parts.map((part) => part.job))
  if (missing) return { missing }
  const endpoint: Described = {
    body: 'json',
    answer: 'json',
    ...(usage && { usage }),
    ...rest,
    path,
    patch: Object.assign({}, ...parts.map(({ patch }) => patch)),
    unsupported: parts.flatMap(({ unsupported }) => unsupported),
    ...((rest.answer === 'events' || parts.some((part) => part.stream)) && {
      stream: { path, format: 'sse', ...stream },
    }),
    ...(job && { job }),
  }
  return { endpoint }
}

type Described = Omit<OperationEndpoint, 'offered'>
