import { basename } from 'node:path'
import { type ModelIds, readForm } from '../../catalog/model-ids.ts'
import { readEntries } from '../../catalog/read-list.ts'
import type { Api } from '../../core/request.ts'
import { durationMs } from '../../core/time.ts'
import { hasErrors, type Problem } from '../check/problem.ts'
import { checkSchema } from '../check/schema.ts'
import { unreadMembers } from '../check/unread-members.ts'
import type { Provider, Timeouts } from '../provider.ts'
import { accountProblems } from './account.ts'
import { authProblems } from './auth.ts'
import { exportsOf, foundation, modelsOfProblems, seenOf } from './base-layers.ts'
import { filesOf, type Layer, readLayer } from './layer.ts'
import { besideChat, chatOf, defaultTimeouts, hasAny, merge, operationsOf } from './merge.ts'
import {
  type ManifestFile,
  type ModelIdsFile,
  type ProviderSettings,
  resolveReferences,
  type Surroundings,
  type TimeoutsFile,
  type UnknownModelsFile,
} from './references.ts'
import type { Source } from './source.ts'
import { loadVariants } from './variants.ts'

/** A manifest's provider, and the layers it is made of, the dialect first; `files` are those of all layers, variants included. */
export type LoadedProvider = { provider: Provider; source: Source; files: readonly Source[]; layers: Layer[] }

/** A provider that was loaded before has no layers any more: they are large, and its examples need not be run again. */
export type KeptProvider = Omit<LoadedProvider, 'layers'> & { layers?: Layer[] }

/** Reads a manifest. It is missing when there are errors; variables that are not set do not count as errors. */
export function loadManifest(source: Source, around: Surroundings): { loaded?: LoadedProvider; problems: Problem[] } {
  if (source.problems.length > 0) return { problems: source.problems }
  if (source.sound !== seenOf(source, around)) source.sound = undefined
  const form = checkSchema(source, 'provider')
  if (form.length > 0) return { problems: [...source.warnings, ...form] }
  const file = source.value as ManifestFile
  const { layer, problems } = readLayer(source, {
    given: exportsOf(file.dialect, around),
    functions: around.extensions?.functions,
  })
  problems.push(
    ...source.warnings,
    ...slugProblems(source, file.slug),
    ...authProblems(source, file.auth, around.extensions?.schemes),
  )
  const below = foundation(source, file, around)
  problems.push(...below.problems, ...modelsOfProblems(source, file, around), ...accountProblems(source, file, around))
  if (below.problems.length > 0) return { problems }
  const layers = [...below.layers, layer]
  const { modelIds, problems: wrongForms } = readModelIds(source, file.model_ids)
  problems.push(...wrongForms)
  const operations = operationsOf(layers, source)
  const { chat, problems: gaps } = chatOf(layers, source)
  problems.push(...gaps, ...operations.problems, ...unreadMembers(layer, { chat, operations: operations.endpoints }))
  const resolved = resolveReferences(source, file, layers, around)
  problems.push(...resolved.problems)
  if (hasErrors(problems)) return { problems }
  const { headers: _headers, restricted, ...tables } = merge(layers)
  const sameAs = layers.findLast((one) => one.sameAs)?.sameAs
  const others = besideChat(layers)
  problems.push(...formatProblems(source, others, sameAs))
  if (hasErrors(problems)) return { problems }
  const provider: Provider = {
    slug: file.slug,
    name: file.name,
    signer: file.signer ?? file.slug,
    ...resolved.values,
    timeouts: timeoutsOf(file.timeouts, around.settings?.value.timeouts),
    ...limitsOf(around.settings?.value.limits),
    ...(sameAs && { sameAs }),
    ...(chat && { chat }),
    ...(hasAny(operations.endpoints) && { operations: operations.endpoints }),
    ...others,
    ...tables,
    ...(restricted.length > 0 && { restricted }),
    ...unknownModelsOf(around.settings?.value.unknown_models ?? file.unknown_models ?? around.unknownModels),
    ...retiredRule(file, around.settings?.value),
    ...(modelIds && { modelIds }),
    ...(file.idempotency !== undefined && { idempotency: file.idempotency.toLowerCase() }),
    ...(file.reports && { reports: new Set(file.reports) }),
    models: readEntries(file.models ?? {}),
    ...(file.models_of !== undefined && { modelsOf: file.models_of }),
    ...(file.dialect !== undefined && { dialect: file.dialect }),
    file: source.file,
  }
  const variants = loadVariants({ source, file, around, provider, layers })
  problems.push(
    ...variants.problems.filter(({ message }) => !resolved.problems.some((known) => known.message === message)),
  )
  if (hasErrors(problems)) return { problems }
  layer.variants = variants.layers
  const loaded = { provider: { ...provider, variants: variants.variants }, source, files: filesOf(layers), layers }
  return { loaded, problems }
}

/** Returns which models are refused although their name is one of the provider's. */
function retiredRule(file: ManifestFile, over: ProviderSettings = {}): Pick<Provider, 'refuseRetired'> {
  const refuseRetired = over.refuse_retired ?? file.refuse_retired
  return refuseRetired === undefined ? {} : { refuseRetired }
}

function slugProblems(source: Source, slug: string): Problem[] {
  const file = basename(source.file, '.yaml')
  if (slug === file) return []
  return [
    source.problem(
      ['slug'],
      `the slug \`${slug}\` must be the name of the file: rename one, to \`${file}\` or ${slug}.yaml`,
    ),
  ]
}

function readModelIds(source: Source, file: ModelIdsFile | undefined): { modelIds?: ModelIds; problems: Problem[] } {
  if (!file) return { problems: [] }
  const read = (file.forms ?? []).map((form) => ({ form, pattern: readForm(form) }))
  const problems = read.flatMap(({ form, pattern }, index) => {
    const message = `the form \`${form}\` must contain \`{model}\` once, where the id of the model is`
    return pattern ? [] : [source.problem(['model_ids', 'forms', index], message)]
  })
  const forms = read.flatMap(({ pattern }) => pattern ?? [])
  return { modelIds: { ignore: new Set(file.ignore), forms }, problems }
}

/** An endpoint that takes bodies of a client API is one of providers of its format. */
function formatProblems(
  source: Source,
  others: Pick<Provider, 'count' | 'compact'>,
  sameAs: Api | undefined,
): Problem[] {
  const known = Object.entries(formats) as [keyof typeof formats, readonly Api[]][]
  return known.flatMap(([name, apis]) => {
    if (!others[name] || (sameAs && apis.includes(sameAs))) return []
    const message = `\`endpoints.${name}\` passes on bodies of a client API: the dialect must be \`same_as: ${apis.join('` or `')}\``
    return [source.problem(['endpoints', name], message, 'name')]
  })
}

const formats = { count: ['messages', 'responses'], compact: ['responses'] } as const

function unknownModelsOf(file: UnknownModelsFile = 'refuse'): Pick<Provider, 'unknownModels' | 'unknownEntry'> {
  const { pass, price } = typeof file === 'string' ? { pass: file === 'pass', price: undefined } : file
  if (!pass || price === undefined) return { unknownModels: pass ? 'pass' : 'refuse' }
  const { unknown } = readEntries({ unknown: { api: 'chat', also: ['embedding', 'completion'], pricing: price } })
  return { unknownModels: 'pass', ...(unknown && { unknownEntry: unknown }) }
}

function limitsOf(limits: ProviderSettings['limits']): Pick<Provider, 'limits'> {
  return limits ? { limits: { queue: defaultQueue, ...limits } } : {}
}

/** Default number of calls that wait for a target. */
const defaultQueue = 100

function timeoutsOf(...files: (TimeoutsFile | undefined)[]): Timeouts {
  const { connect, first_event, between_events, whole, total }: TimeoutsFile = Object.assign({}, ...files)
  const totalMs = limit(total, defaultTimeouts.totalMs)
  return {
    connectMs: limit(connect, defaultTimeouts.connectMs),
    firstEventMs: limit(first_event, totalMs),
    betweenEventsMs: limit(between_events, defaultTimeouts.betweenEventsMs),
    wholeMs: limit(whole, totalMs),
    totalMs,
  }
}

function limit(duration: string | undefined, otherwise: number): number {
  return (duration === undefined ? undefined : durationMs(duration)) ?? otherwise
}
