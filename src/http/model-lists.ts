import { LRUCache } from 'lru-cache'
import type { Access } from '../access/keys.ts'
import { secretOf } from '../access/secrets.ts'
import { messages } from '../api/messages/api.ts'
import { type ListForm, listedIn, modelEntry, modelPage, pagedModel } from '../api/models/list.ts'
import { RouterError } from '../core/errors.ts'
import { isRetired, type ModelEntry, nextRetirement, retiredMessage } from '../core/models/model.ts'
import { type Period, pricePeriod } from '../core/models/price-times.ts'
import { policyPrefix, splitModel } from '../core/names.ts'
import { entryOfListed, type Listable, type Listed, listedModels, listedPolicies } from '../routing/names/listed.ts'
import { suggestedFor, unprefixedIds } from '../routing/names/resolve.ts'
import type { Scope } from '../routing/names/scope.ts'
import { yieldBetween } from '../runtime/event-loop.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { tagged } from './respond.ts'
import type { JsonAnswer, JsonRequest, JsonRoute } from './types.ts'

/** Services of the model lists; `directory` is called for every request and returns another one after a reload. */
export type ModelListServices = {
  access: Access
  directory(): Listable
  rulesOf(organization: string): MaybePromise<OrganizationRules>
  /** Returns the time in Unix milliseconds: lists show the prices of this moment. */
  now?(): number
}

/**
 * Serves the model lists and single models: without authentication, but a key that is sent must be valid, and sees only what it may call.
 */
export function modelRoutes({ access, directory, rulesOf, now = Date.now }: ModelListServices): JsonRoute[] {
  const lists = openLists(directory, now)
  const scopeOf = async ({ headers }: JsonRequest): Promise<Scope | undefined> => {
    const secret = secretOf(headers)
    if (secret === undefined) return undefined
    const { organization, accessList } = await access.identify(secret)
    return { rules: await rulesOf(organization), accessList }
  }
  const list = (path: string, form: ListForm): JsonRoute => ({
    path,
    clientApiOf,
    answer: async (request) => await lists.answer(await scopeOf(request), form),
  })
  return [
    {
      path: '/v1/models',
      clientApiOf,
      answer: async (request) => {
        const scope = await scopeOf(request)
        if (!speaksMessages(request)) return await lists.answer(scope, { api: 'chat' })
        return tagged(JSON.stringify(modelPage(await lists.models(scope), request.query)))
      },
    },
    list('/v1/models/chat', { api: 'chat' }),
    list('/v1/models/all', { flatPrices: true }),
    list('/v1/models/decision', { api: 'decision', names: false }),
    ...modalities.map((api) => list(`/v1/models/${api}`, { api, flatPrices: 'billed' })),
    { path: '/v1/models/managed', answer: () => lists.managed() },
    {
      path: '/v1/models/*id',
      clientApiOf,
      answer: async (request) => {
        const id = [request.params.id].flat().join('/')
        const scope = await scopeOf(request)
        const models = await lists.callable(scope)
        const found = models.find((model) => isCalled(model, id)) ?? findByAlias(models, id, directory())
        if (!found || isRefused(found, directory(), now())) throw noModel(id, directory(), scope)
        const write = speaksMessages(request) ? pagedModel : modelEntry
        return tagged(JSON.stringify(write(found.id, entryOfListed(found, now()))))
      },
    },
  ]
}

/** The APIs, besides chat and decisions, whose models have a list. */
const modalities = ['embedding', 'image', 'transcription', 'speech', 'rerank', 'moderation', 'completion']

/** Checks whether calls of a model are refused because it is retired. */
function isRefused({ id, entry }: Listed, { providers, refuseRetired }: Listable, at: number): boolean {
  const provider = providers.get(splitModel(id)?.provider ?? '')
  return (provider?.refuseRetired ?? refuseRetired ?? false) && isRetired(entry, at)
}

/** Checks whether a model has this id. Aliases and policies may be written with their prefix. */
function isCalled(model: Listed, id: string): boolean {
  return model.id === id || (model.isName === true && id === policyPrefix + model.id)
}

/** Returns the model that has this id as an alias in the catalog, or that calls without a provider in the name go to. */
function findByAlias(models: readonly Listed[], id: string, directory: Listable): Listed | undefined {
  for (const each of [id, ...unprefixedIds(id, directory)]) {
    const { provider, model = '' } = splitModel(each) ?? {}
    const entry = provider === undefined ? undefined : directory.findModel(provider, model)
    const found = models.find((one) => one.entry === entry && !one.isName && splitModel(one.id)?.provider === provider)
    if (found) return found
  }
  return undefined
}

function noModel(id: string, directory: Listable, scope: Scope | undefined): RouterError {
  const { provider, model = '' } = splitModel(id) ?? {}
  const known = provider === undefined ? undefined : directory.findModel(provider, model)
  const message = known?.shutdown
    ? retiredMessage(id, known)
    : `There is no model '${id.slice(0, 100)}'. GET /v1/models lists them.${suggestedFor(id, directory, scope)}`
  return new RouterError('model_not_found', message, { param: 'id' })
}

/**
 * Caches lists and their JSON texts by directory, rules, access list and form. A text expires when a price in it changes.
 */
function openLists(directory: () => Listable, now: () => number) {
  const known = new LRUCache<string, Promise<readonly Listed[]>>({ max: maxLists })
  const writing = new Map<string, Promise<Written>>()
  const answers = new LRUCache<string, Written>({
    maxSize: maxBytes,
    // One that is larger than all of them may be is kept alone: it takes seconds to write.
    sizeCalculation: ({ answer }) => Math.min(answer.text.length + 1, maxBytes),
  })
  const numberOf = objectNumbers()
  const keyOf = (scope: Scope | undefined) =>
    scope
      ? `${numberOf(directory())} ${numberOf(scope.rules)} ${accessText(scope.accessList)}`
      : `${numberOf(directory())}`
  const callable = async (scope: Scope | undefined): Promise<readonly Listed[]> => {
    const key = keyOf(scope)
    const listing = known.get(key) ?? listedModels(directory(), scope)
    known.set(key, listing)
    return await listing.catch((thrown: unknown) => {
      known.delete(key)
      throw thrown
    })
  }
  // Lists are what people choose from: a retired model can be called, but is not offered.
  const models = async (scope: Scope | undefined): Promise<readonly Listed[]> =>
    (await callable(scope)).filter(({ entry }) => !isRetired(entry, now()))
  const cached = async (
    key: string,
    make: () => Promise<readonly Listed[]> | readonly Listed[],
    form: ListForm,
  ): Promise<JsonAnswer> => {
    const at = now()
    const known = answers.get(key)
    if (known && known.from <= at && at < known.until) return known.answer
    // Whoever asks meanwhile waits for the same text.
    const written = writing.get(key) ?? Promise.resolve(make()).then((models) => writtenList(models, form, at))
    writing.set(key, written)
    try {
      const made = await written
      answers.set(key, made)
      return made.answer
    } finally {
      writing.delete(key)
    }
  }
  return {
    callable,
    models,
    answer: (scope: Scope | undefined, form: ListForm): Promise<JsonAnswer> =>
      cached(`${JSON.stringify(form)} ${keyOf(scope)}`, () => models(scope), form),
    managed: (): Promise<JsonAnswer> =>
      cached(`managed ${numberOf(directory())}`, () => listedPolicies(directory()), { flatPrices: true }),
  }
}

/** A list as it is answered while its prices hold. */
type Written = Period & { answer: { text: Buffer; etag: string } }

/** Writes a list at a moment, in steps between which it yields to the event loop: a list has megabytes. */
async function writtenList(models: readonly Listed[], form: ListForm, at: number): Promise<Written> {
  const yieldToOthers = yieldBetween()
  const common = new Map<readonly ModelEntry[], ModelEntry>()
  const texts: string[] = []
  for (const model of listedIn(models, form)) {
    await yieldToOthers()
    texts.push(JSON.stringify(modelEntry(model.id, entryOfListed(model, at, common), form.flatPrices)))
  }
  const { text, etag } = tagged(`{"object":"list","data":[${texts.join(',')}]}`)
  await yieldToOthers()
  // As bytes it need not be encoded for every answer.
  const answer = { text: Buffer.from(text), etag }
  const entries = [...new Set([...new Set(models.map(({ entry, targets }) => targets ?? entry))].flat())]
  const { from, until } = pricePeriod(entries, at)
  return { answer, from, until: Math.min(until, nextRetirement(entries, at)) }
}

/** Numbers objects by identity: rules and snapshots are replaced, never changed. */
function objectNumbers(): (object: object) => number {
  const numbers = new WeakMap<object, number>()
  let next = 0
  return (object) => {
    const number = numbers.get(object) ?? next++
    numbers.set(object, number)
    return number
  }
}

/** Returns a list of models as text: keys with the same list see the same models. */
function accessText(list: readonly string[] | null): string {
  if (list === null) return ''
  const text = accessTexts.get(list) ?? JSON.stringify(list)
  accessTexts.set(list, text)
  return text
}

const accessTexts = new WeakMap<readonly string[], string>()

/** Maximum number of lists, each of which is an array of references to catalog entries. */
const maxLists = 200
/** Bytes of all texts together. */
const maxBytes = 64 * 1024 * 1024

function clientApiOf(request: Pick<JsonRequest, 'headers'>): typeof messages | undefined {
  return speaksMessages(request) ? messages : undefined
}

/** Checks for a client of the Messages API: clients of the Messages API send its version with every request. */
function speaksMessages({ headers }: Pick<JsonRequest, 'headers'>): boolean {
  return headers['anthropic-version'] !== undefined
}
