import { basename, dirname } from 'node:path'
import { chat } from '../api/chat/api.ts'
import { filledText, oneOf, optional, required } from '../api/check.ts'
import { messages } from '../api/messages/api.ts'
import { responses } from '../api/responses/api.ts'
import { chatKind } from '../call/kinds/chat.ts'
import { tryRequest } from '../call/kinds/try.ts'
import type { Catalog, CatalogedModel } from '../catalog/catalog.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { type Operation, operations } from '../core/operation.ts'
import type { NeutralRequest } from '../core/request.ts'
import { withoutKeys } from '../core/secrets.ts'
import { isFileProblem, type Problem } from '../manifest/check/problem.ts'
import { endpointFor } from '../manifest/operation.ts'
import type { Provider } from '../manifest/provider.ts'
import { readText } from '../manifest/read/folder.ts'
import { servedBy, type Target } from '../manifest/target.ts'
import type { TargetOutage } from '../routing/health/health.ts'
import { shortPath } from '../snapshot/config.ts'
import { pathsOf } from '../snapshot/folders.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { redact } from '../upstream/auth/secrets.ts'
import { timeText } from './key-entry.ts'
import {
  json,
  type ManagementContext,
  type ManageRequest,
  type ManageRoute,
  mayOperate,
  missing,
  pathPart,
} from './manage.ts'
import { withoutLiterals } from './manifest-text.ts'
import { invalid, membersOf, parametersOf } from './read.ts'

/** Serves `/v1/manage/providers`: the providers, the requirements and the state of each, and the request that it would be sent. */
export function providerRoutes(context: ManagementContext): ManageRoute[] {
  const { watch, degraded: troubled, explaining, store } = context
  const read = ({ organization }: ManageRequest) => {
    const snapshot = watch.current()
    return { snapshot, ...knownProviders(snapshot, watch.problems(), concerning(organization, troubled())) }
  }
  const found = (request: ManageRequest) => {
    const slug = pathPart(request, 'slug')
    const { snapshot, providers } = read(request)
    return { snapshot, known: providers.find((one) => one.slug === slug) ?? missing('provider', slug) }
  }
  return [
    {
      path: '/v1/manage/providers',
      handle(request) {
        parametersOf(request.query, [])
        const { snapshot, providers, others } = read(request)
        return json({
          providers: providers.map((known) => providerEntry(known, snapshot)),
          problems: others.map((problem) => problemEntry(problem, snapshot.config.path)),
          generation: snapshot.generation,
          reloaded_at: timeText(snapshot.builtAt),
        })
      },
    },
    {
      path: '/v1/manage/providers/:slug',
      async handle(request) {
        parametersOf(request.query, [])
        const { snapshot, known } = found(request)
        const entry = providerEntry(known, snapshot)
        if (!(await mayOperate(request.key, store))) return json(entry)
        return json({ ...entry, manifest: { file: String(entry.origin), text: await manifestText(known, snapshot) } })
      },
    },
    {
      path: '/v1/manage/providers/:slug/try',
      method: 'post',
      reads: true,
      async handle(request) {
        const { snapshot, known } = found(request)
        const { model, body, kind } = triedIn(request.body)
        const targetFor = (asked: NeutralRequest) => targetOf(known, model, { snapshot, asked })
        const { key } = request
        return json({ ...(await tryRequest({ key, kind, body, targetFor }, explaining())) })
      },
    },
  ]
}

const kinds = { chat: chatKind(chat), messages: chatKind(messages), responses: chatKind(responses) }

function triedIn(sent: ManageRequest['body']) {
  const members = membersOf(sent, ['model', 'request', 'api'])
  const model = required(members.model, 'model', "the provider's id of a model", filledText)
  const { request } = members
  if (!isObject(request)) throw invalid("'request' must be an object: a request as a client would send it.", 'request')
  const kind = kinds[optional(members.api, 'api', oneOf(['chat', 'messages', 'responses'])) ?? 'chat']
  return { model, kind, body: { ...request, model } satisfies JsonObject }
}

/** Returns the target of a request, also of a provider that is not configured: nothing is sent. Throws RouterError 400. */
function targetOf(
  { slug, provider: named }: KnownProvider,
  model: string,
  { snapshot, asked: requested }: { snapshot: Snapshot; asked: NeutralRequest },
): Target {
  if (!named) throw invalid(`The provider '${slug}' is not in use: it is switched off, or its files have problems.`)
  const identified = snapshot.catalog.identify(slug, model)
  if (!identified && named.unknownModels === 'refuse')
    throw invalid(`The provider '${slug}' has no model '${model.slice(0, 100)}'.`, 'model')
  const provider = servedBy(named, identified?.is ?? model, { request: requested, entry: identified?.entry })
  if (!provider.chat)
    throw invalid(`'${slug}/${model.slice(0, 100)}' is not a chat model: only those can be tried.`, 'model')
  if (!identified) return { provider, model }
  const { entry, is } = identified
  return { provider, model: identified.model, entry, ...(is !== identified.model && { is }) }
}

/** Returns the text of a manifest without any secret. Where the file has problems, secrets may be in the wrong place. */
async function manifestText({ file, provider, problems }: KnownProvider, { sources }: Snapshot): Promise<string> {
  const known = sources.get(file)?.text ?? ''
  const isBroken = problems.length > 0
  const text = isBroken ? await readText(file).catch(() => known) : known
  const served = provider ? [provider, ...(provider.variants ?? []).map((variant) => variant.provider)] : []
  const shown = (line: string) => served.reduce((left, one) => redact(one, left), line)
  return withoutLiterals(text)
    .split('\n')
    .map((line) => (isBroken ? withoutKeys(shown(line)) : shown(line)))
    .join('\n')
}

/** A provider of the files: the one in use, where there is one, and everything else that is known. */
type KnownProvider = {
  slug: string
  enabled: boolean
  provider?: Provider
  /** Path of its manifest. */
  file: string
  models: readonly CatalogedModel[]
  health: readonly TargetOutage[]
  /** Problems of its manifest and its catalog file, and that of another file without which it cannot be used. */
  problems: readonly Problem[]
}

/** Returns the providers that there are manifests of, by slug, and the problems of all other files. */
export function knownProviders(
  snapshot: Snapshot,
  problems: readonly Problem[],
  troubled: readonly TargetOutage[],
): { providers: KnownProvider[]; others: Problem[] } {
  const { config, providers, off, unavailable, sources, catalog } = snapshot
  const { folders } = config
  const slugOf = (file: string) =>
    pathsOf([...folders.providers, ...folders.catalog]).includes(dirname(file)) ? basename(file, '.yaml') : undefined
  const files = [...sources.keys(), ...problems.map(({ file }) => file)].filter((file) => file.endsWith('.yaml'))
  // Of several manifests of a provider the first folder's is used.
  const manifests = new Map(
    pathsOf(folders.providers)
      .toReversed()
      .flatMap((folder) => files.filter((file) => dirname(file) === folder))
      .map((file) => [basename(file, '.yaml'), file]),
  )
  const reasonsOf = (slug: string) => {
    const own = problemsOf.get(slug) ?? []
    const reason = unavailable.providers.get(slug)
    return reason && !own.some(({ file, line }) => file === reason.file && line === reason.line)
      ? [...own, reason]
      : own
  }
  const modelsOf = Map.groupBy(catalog.list(), ({ provider }) => provider)
  const problemsOf = Map.groupBy(problems, ({ file }) => slugOf(file))
  const known = [...manifests].sort().map(([slug, file]): KnownProvider => {
    const provider = providers.get(slug)
    return {
      slug,
      enabled: !off.has(slug),
      ...(provider && { provider }),
      file,
      models: modelsOf.get(slug) ?? [],
      health: troubled.filter(({ name }) => name === slug || name.startsWith(`${slug}/`)),
      problems: reasonsOf(slug),
    }
  })
  return { providers: known, others: problems.filter(({ file }) => !manifests.has(slugOf(file) ?? '')) }
}

/** Returns a provider in the API. One that is switched off, or was never without problems, has only the facts of its files. */
export function providerEntry(
  known: KnownProvider,
  { config, catalog }: Pick<Snapshot, 'config' | 'catalog'>,
): JsonObject {
  const { slug, enabled, provider, file, models, health, problems } = known
  const missing = provider?.missing ?? []
  return {
    slug,
    name: provider?.name ?? slug,
    enabled,
    loaded: provider !== undefined,
    configured: provider !== undefined && missing.length === 0,
    missing,
    models: models.length,
    operations: provider ? operationsOf(provider, models, catalog) : [],
    ...(provider?.dialect !== undefined && { dialect: provider.dialect }),
    health: health.map(outageEntry),
    problems: problems.map((problem) => problemEntry(problem, config.path)),
    origin: shortPath(file, config.path),
  }
}

/** Returns a problem as the API has it: `file:line:column`, its message, and the consequence. */
export function problemEntry(problem: Problem, config: string): JsonObject {
  const { file, line, column, message, severity } = problem
  const place = `${shortPath(file, config)}:${line}:${column}`
  return {
    place,
    line,
    message: withoutKeys(message),
    severity,
    ...(isFileProblem(problem) && { effect: problem.effect }),
  }
}

/** Names that providers can be asked for: those with their models, or any name where they take all. Found once for each generation. */
const askedFor = new WeakMap<Catalog, Map<Provider, string[]>>()

function operationsOf(provider: Provider, models: readonly CatalogedModel[], catalog: Catalog): string[] {
  const ofAll = askedFor.get(catalog) ?? new Map<Provider, string[]>()
  const known = ofAll.get(provider) ?? findOperations(provider, models)
  askedFor.set(catalog, ofAll.set(provider, known))
  return known
}

function findOperations(provider: Provider, models: readonly CatalogedModel[]): string[] {
  const names = Object.keys(operations) as Operation[]
  const found = models.flatMap(({ model, entry }) => {
    const served = servedBy(provider, entry.is ?? model)
    const isChat = served.chat !== undefined && [entry.api, ...(entry.also ?? [])].includes('chat')
    return [...(isChat ? ['chat'] : []), ...names.filter((name) => endpointFor(served, name, entry))]
  })
  const any = [...(provider.chat ? ['chat'] : []), ...Object.keys(provider.operations ?? {})]
  return [...new Set(provider.unknownModels === 'pass' ? any : found)].sort()
}

/** Serves `/v1/manage/health`: the addresses, credentials and targets of providers that take no calls, or only some. */
export function providerHealthRoutes({ degraded: troubled }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/health',
      handle({ organization }) {
        const degraded = concerning(organization, troubled()).map(outageEntry)
        // Under its former name as well, for one release.
        return json({ degraded, troubled: degraded })
      },
    },
  ]
}

/** Filters the circuits that concern the calls of an organization: failures that only another one has met do not. */
export function concerning(organization: string, troubled: readonly TargetOutage[]): TargetOutage[] {
  return troubled.filter((one) => one.organization === undefined || one.organization === organization)
}

/** Writes a circuit as the API has it: times as text, null where nothing is known. */
export function outageEntry({ since, until, reason, ...known }: TargetOutage): JsonObject {
  const timeOf = (at: number | undefined) => (at === undefined ? null : timeText(at))
  return { ...known, since: timeOf(since), until: timeOf(until), reason: reason ?? null }
}
