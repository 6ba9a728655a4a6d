import { setImmediate } from 'node:timers/promises'
import type { ProviderEvent } from '../../core/events.ts'
import { Fold, type FoldFacts } from '../../core/fold.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { NeutralRequest, TargetFacts } from '../../core/request.ts'
import { mergeUsage, type Usage } from '../../core/usage.ts'
import { MappingError } from '../../mapping/mapping.ts'
import { neutralFields } from '../fields.ts'
import type { Provider } from '../provider.ts'
import type { Example, Layer } from '../read/layer.ts'
import type { Path } from '../read/position.ts'
import { problemAt } from '../read/program.ts'
import { readReply } from '../run/read-reply.ts'
import { failedMapping } from '../run/run-mapping.ts'
import { Snapshots } from '../run/snapshots.ts'
import { readEvent, readFailure, writeFor } from '../run/translate.ts'
import {
  type OperationContext,
  readOperationEvent,
  readOperationReply,
  writeOperation,
} from '../run/translate-operation.ts'
import { targetFacts, variantOf } from '../target.ts'
import { didYouMean } from './did-you-mean.ts'
import { type Difference, difference, partialDifference } from './difference.ts'
import { named, type Problem } from './problem.ts'

/**
 * Compiles the mappings and runs the examples of a provider's last layer: each must send and mean what it states. Returns the
 * differences.
 */
export async function proveExamples(provider: Provider, layers: readonly Layer[]): Promise<Problem[]> {
  const layer = layers.at(-1)
  if (!layer) return []
  const problems = uncompilable(layer)
  for (const [index, example] of layer.examples.entries()) {
    // Running streams get their turn between two examples.
    await setImmediate()
    const chosen = variantFor(provider, layers, example)
    problems.push(...(await proveExample({ ...chosen, layer, example, at: ['examples', index] })))
  }
  for (const [index, variant] of layer.variants.entries()) {
    const served = provider.variants?.[index]?.provider
    if (served) problems.push(...(await proveExamples(served, variant.layers)))
  }
  return problems
}

/** Mappings that are JSONata, but that no run of them may have: each is compiled when it is first asked for. */
function uncompilable({ pieces }: Layer): Problem[] {
  return [...pieces].flatMap(([mapping, texts]) => {
    try {
      mapping.explain()
      return []
    } catch (error) {
      if (!(error instanceof MappingError)) throw error
      return [problemAt(texts, error.position, `no mapping: ${error.message}`)]
    }
  })
}

/** An example about a model, or with a request, of a variant is about that variant. */
function variantFor(
  provider: Provider,
  layers: readonly Layer[],
  { request, operation }: Example,
): Pick<Run, 'provider' | 'layers'> {
  const isChat = request && !operation && shapeFaults(request).length === 0
  const index = variantOf(provider, request?.model ?? '', isChat ? { request: neutral(request) } : undefined)
  const variant = provider.variants?.[index]
  return { provider: variant?.provider ?? provider, layers: layers.at(-1)?.variants[index]?.layers ?? layers }
}

/** A streamed answer put together: what it means, whether it came whole, and the failure the provider reported. */
export async function readStream(
  provider: Provider,
  frames: readonly (JsonObject | string)[],
  facts: FoldFacts,
  target: TargetFacts,
): Promise<JsonObject & { complete: boolean; events: JsonObject[][] }> {
  const fold = new Fold(facts)
  const snapshots = provider.chat?.stream.cumulative && new Snapshots(provider.slug, Number.POSITIVE_INFINITY)
  const all: ProviderEvent[][] = []
  for (const frame of frames) {
    const { name, data } = frameOf(provider, frame)
    if (data === undefined) {
      fold.take({ done: true })
      break
    }
    const read = await readEvent(provider, name, data, target)
    const events = snapshots ? snapshots.take(read) : read
    all.push(events)
    for (const event of events) fold.take(event)
  }
  fold.end()
  const error = all.flat().find((event) => event.error)?.error
  const said = { ...fold.reply(), ...(error && { error }), complete: fold.complete, events: all }
  return said as unknown as JsonObject & { complete: boolean; events: JsonObject[][] }
}

type Run = { provider: Provider; layers: readonly Layer[]; layer: Layer; example: Example; at: Path }

async function proveExample(run: Run): Promise<Problem[]> {
  const { example } = run
  const { request, sends, dropped, answers, events, fails, means } = example
  const problems = formProblems(run)
  if (problems.length > 0) return problems
  if (example.operation) return await proveOfOperation(run)
  if (request && sends) problems.push(...(await attempt(run, 'sends', () => proveRequest(run, request, sends))))
  if (request && dropped) problems.push(...(await attempt(run, 'dropped', () => proveDropped(run, request, dropped))))
  if (answers && means) problems.push(...(await attempt(run, 'answers', () => proveReply(run, answers, means))))
  if (events && means) problems.push(...(await attempt(run, 'events', () => proveEvents(run, events, means))))
  if (fails && means) problems.push(...(await attempt(run, 'fails', () => proveFailure(run, fails, means))))
  return problems
}

async function proveOfOperation(run: Run): Promise<Problem[]> {
  const { provider, example } = run
  const trial = { provider, example, facts: factsOf(provider, example) }
  const members = (['sends', 'dropped', 'answers', 'events'] as const).filter((name) => example[name] !== undefined)
  const problems: Problem[] = []
  for (const member of members) problems.push(...(await attempt(run, member, () => proveOperation(trial, member))))
  const { fails, means } = example
  if (fails && means) problems.push(...(await attempt(run, 'fails', () => proveFailure(run, fails, means))))
  return problems
}

/** Finds problems of form: an example that proves nothing is a mistake as well. */
function formProblems({ layer: { source }, example, at }: Run): Problem[] {
  const { request, sends, dropped, answers, events, fails, means } = example
  const say = (message: string, path: Path = []) =>
    source.problem([...at, ...path], `example '${example.name}': ${message}`)
  const problems: Problem[] = []
  if (!request !== !sends) problems.push(say('`request` and `sends` belong together'))
  if (dropped && !request) problems.push(say('`dropped` needs a `request`', ['dropped']))
  if (!means !== !(answers || events || fails)) {
    problems.push(say('`means` and `answers`, `events` or `fails` belong together'))
  }
  for (const name of example.operation ? [] : Object.keys(request ?? {})) {
    if (Object.hasOwn(neutralFields, name)) continue
    const hint = didYouMean(name, Object.keys(neutralFields))
    problems.push(say(`\`${name}\` is not a field of the neutral request${hint}`, ['request', name]))
  }
  if (request && !example.operation) problems.push(...shapeFaults(request).map((message) => say(message, ['request'])))
  return problems
}

/** Finds the faults that keep the request of an example from being a neutral one. */
function shapeFaults({ messages, system = [], tools = [] }: Partial<NeutralRequest>): string[] {
  if (!Array.isArray(messages)) return ['`request` needs a list of `messages`']
  const hasParts = (message: unknown) => isObject(message) && areParts(message.parts)
  return [
    ...(messages.every(hasParts) ? [] : ['each of `messages` needs a `role` and a list of `parts` with a `type`']),
    ...(areParts(system) ? [] : ['`system` must be a list of parts with a `type`']),
    ...(Array.isArray(tools) && tools.every(isObject) ? [] : ['`tools` must be a list of objects']),
  ]
}

function areParts(parts: unknown): boolean {
  return Array.isArray(parts) && parts.every((part) => isObject(part) && typeof part.type === 'string')
}

async function proveRequest({ provider, example }: Run, given: Partial<NeutralRequest>, sends: JsonObject) {
  return difference(sends, (await written({ provider, example }, given)).body)
}

async function proveDropped(run: Run, given: Partial<NeutralRequest>, expected: readonly string[]) {
  const { dropped } = await written(run, given)
  const lost = dropped.find((name) => !expected.includes(name))
  if (lost !== undefined) return { path: [], message: `\`${lost}\` is dropped too` }
  const index = expected.findIndex((name) => !dropped.includes(name))
  return index < 0 ? undefined : { path: [index], message: `\`${expected[index]}\` is not dropped` }
}

async function written({ provider, example }: Pick<Run, 'provider' | 'example'>, given: Partial<NeutralRequest>) {
  const request = neutral(given)
  return await writeFor(provider, request, { model: request.model }, factsOf(provider, example))
}

function neutral(given: Partial<NeutralRequest>): NeutralRequest {
  return { model: 'model', ...given, origin: { api: 'chat', body: {} } } as NeutralRequest
}

/** Returns the facts about the model that an example refers to, overridden by those that the example itself states. */
function factsOf(provider: Provider, { request, target }: Example): TargetFacts {
  const model = request?.model ?? 'model'
  const entry = provider.models[model]
  const known = targetFacts(provider, { model, ...(entry && { entry }) })
  const signer = target?.signer ?? known.signer
  return { ...known, ...target, signer, maker: signer, traits: { ...known.traits, ...target?.traits } }
}

async function proveReply({ provider, example }: Run, answers: JsonObject, means: JsonObject) {
  const { reply, error } = await readReply(provider, answers, foldFacts(provider, example), factsOf(provider, example))
  return meaningDifference(means, { ...reply, ...(error && { error }) } as unknown as JsonObject)
}

async function proveEvents({ provider, example }: Run, frames: NonNullable<Example['events']>, means: JsonObject) {
  const facts = foldFacts(provider, example)
  const { events, complete, ...reply } = await readStream(provider, frames, facts, factsOf(provider, example))
  if (!complete && means.finish !== undefined)
    return { path: [], message: 'the events never say that the reply is finished' }
  return meaningDifference(means, reply)
}

async function proveFailure({ provider }: Run, body: JsonObject, means: JsonObject) {
  return partialDifference(means, { error: await readFailure(provider, body) })
}

/** Compares like `partialDifference`, and adds the reason for an unexpected failure. */
function meaningDifference(means: JsonObject, reply: JsonObject): Difference | undefined {
  const found = partialDifference(means, reply)
  const unlisted = found?.path[0] === 'finish' && reply.finish === 'error' && reply.finish_raw !== undefined
  return found && unlisted
    ? { ...found, message: `${found.message}; the table \`finish\` does not list \`${reply.finish_raw}\`` }
    : found
}

/** Facts that make replies comparable. */
function foldFacts(provider: Provider, { target }: Example): FoldFacts {
  return { signer: target?.signer ?? provider.signer, newId: () => 'made-up-id', now: () => 0 }
}

/** Runs one check of an example: a difference is reported at the expectation, a failure at its mapping. */
async function attempt(
  { layer: { source }, layers, example, at }: Run,
  member: 'sends' | 'dropped' | 'answers' | 'events' | 'fails',
  prove: () => Promise<Difference | undefined>,
): Promise<Problem[]> {
  const about = member === 'sends' || member === 'dropped' ? member : 'means'
  try {
    const found = await prove()
    if (!found) return []
    const where = found.path.length > 0 ? ` at ${named(found.path)}` : ''
    const by = about === member ? '' : ` (from ${member})`
    const message = `example '${example.name}': ${about}${by} differs${where}: ${found.message}`
    return [source.problem([...at, about, ...found.path], message)]
  } catch (error) {
    const message = `example '${example.name}': ${(error as Error).message}`
    return [failedProblem(layers, error, message) ?? source.problem([...at, member], message)]
  }
}

function failedProblem(layers: readonly Layer[], error: unknown, message: string): Problem | undefined {
  const failed = failedMapping(error)
  const texts = failed && layers.map(({ pieces }) => pieces.get(failed.mapping)).find((found) => found)
  return texts && problemAt(texts, failed.position, message)
}

/** Reads one event of an example: its JSON, or `{event, data}` where the wire names events, or the text that ends the stream. */
function frameOf(provider: Provider, frame: JsonObject | string): { name?: string; data?: JsonObject | string } {
  const { eventField, done, data: form } = provider.chat?.stream ?? {}
  if (frame === done) return {}
  if (form === 'text') return textFrameOf(frame)
  if (typeof frame === 'string') return { data: parseData(frame) }
  const { event, data: inner } = frame
  if (typeof event === 'string' && typeof inner === 'string') return { name: event, data: parseData(inner, event) }
  const isNamed = typeof event === 'string' && isObject(inner)
  const data = isNamed ? inner : frame
  const name = eventField === undefined ? isNamed && event : data[eventField]
  return typeof name === 'string' ? { name, data } : { data }
}

/** The data of an event are a text where the manifest declares it. */
function textFrameOf(frame: JsonObject | string): { name?: string; data: string } {
  const { event, data } = typeof frame === 'string' ? { event: undefined, data: frame } : frame
  if (typeof data !== 'string') throw new Error('with `stream.data: text` the data of an event is text: write "42"')
  return typeof event === 'string' ? { name: event, data } : { data }
}

function parseData(text: string, event?: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject
  } catch {
    const which = event === undefined ? 'an event' : `the event \`${event}\``
    throw new Error(`the data of ${which} is not JSON: plain text needs \`stream.data: text\``)
  }
}

/** An example of an endpoint besides chat, run with a provider that has it. */
type OperationTrial = { provider: Provider; example: Example; facts: TargetFacts }

/** Translates the request of an example: returns the body, the query of the URL, and the names of the dropped fields. */
export async function triedRequest(trial: OperationTrial) {
  return await writeOperation(contextOf(trial), requestOf(trial.example).model)
}

/** Translates an answer of an example: returns the client's reply, and its usage in our classes. */
export async function triedReply(trial: OperationTrial, answers: JsonObject): Promise<JsonObject> {
  const { reply, usage } = await readOperationReply(contextOf(trial), answers, {})
  return { ...reply, usage: usage as JsonObject }
}

/** Translates the events of an example: returns the client's, without their usage, and the usage of all in our classes. */
export async function triedEvents(
  trial: OperationTrial,
  frames: readonly (JsonObject | string)[],
): Promise<JsonObject> {
  const context = contextOf(trial)
  const { eventField, done } = context.endpoint.stream ?? {}
  const events: JsonObject[] = []
  let usage: Usage = {}
  for (const frame of frames) {
    if (frame === done) break
    const data = typeof frame === 'string' ? (JSON.parse(frame) as JsonObject) : frame
    const name = eventField === undefined ? undefined : data[eventField]
    const read = await readOperationEvent(context, typeof name === 'string' ? name : undefined, data)
    if (read.failure) return { events, usage: usage as JsonObject, error: read.failure as unknown as JsonObject }
    for (const { event, usage: counted } of read.events) {
      if (event) events.push(event)
      if (counted) usage = mergeUsage(usage, counted)
    }
  }
  return { events, usage: usage as JsonObject }
}

/** Returns the first difference between what an example expects and its result, for the member that states it. */
async function proveOperation(
  trial: OperationTrial,
  member: 'sends' | 'dropped' | 'answers' | 'events',
): Promise<Difference | undefined> {
  const { sends, query, dropped = [], answers = {}, events = [], means } = trial.example
  if (member === 'answers') return partialDifference(means, await triedReply(trial, answers))
  if (member === 'events') return partialDifference(means, await triedEvents(trial, events))
  const written = await triedRequest(trial)
  if (member === 'dropped') return difference([...dropped].sort(), [...written.dropped].sort())
  return difference(sends, written.body) ?? (query ? difference(query, written.query) : undefined)
}

function contextOf({ provider, example, facts }: OperationTrial): OperationContext {
  const request = requestOf(example)
  const endpoint = provider.operations?.[request.operation]
  if (!endpoint) throw new Error(`there is no \`endpoints.${request.operation}\``)
  return { provider, endpoint, request, facts }
}

function requestOf({ operation, request = {} }: Example): OperationRequest {
  const { model = 'model', ...fields } = request as JsonObject & { model?: string }
  return { operation: operation ?? 'embed', model, fields, files: [], stream: fields.stream === true, unread: {} }
}
