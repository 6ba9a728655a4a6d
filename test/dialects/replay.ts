import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import type { ProviderEvent, ProviderFailure, StreamEvent } from '../../src/core/events.ts'
import { Fold, type FoldFacts } from '../../src/core/fold.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Reply } from '../../src/core/reply.ts'
import { eventsOf } from '../../src/core/reply-events.ts'
import type { NeutralRequest, TargetFacts } from '../../src/core/request.ts'
import type { ChatEndpoint, Provider } from '../../src/manifest/provider.ts'
import { bareProvider, loadDialect } from '../../src/manifest/read/dialect.ts'
import type { Example } from '../../src/manifest/read/layer.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { readReply } from '../../src/manifest/run/read-reply.ts'
import type { HistoryRules } from '../../src/manifest/run/repair-history.ts'
import { type ProviderRequest, readEvent, writeFor } from '../../src/manifest/run/translate.ts'

export type { Example }

/** The result of reading a provider's reply: the folded reply, whether it came whole, and the failure it reported. */
export type Replayed = { reply: Reply; complete: boolean; error?: ProviderFailure; emitted: StreamEvent[] }

/** A dialect without a manifest or a network. */
export type Bench = {
  provider: Provider
  chat: ChatEndpoint
  history: HistoryRules
  errors: { [name: string]: string }
  examples: readonly Example[]
  /** The provider JSON for a neutral request, and its losses. `target` fills in the facts about the model. */
  written(request: NeutralRequest, target?: Partial<TargetFacts>): Promise<ProviderRequest>
  /** The body of `written`. */
  body(request: NeutralRequest, target?: Partial<TargetFacts>): Promise<JsonObject>
  /** A whole answer. */
  reply(answer: unknown): Promise<Replayed>
  /** A streamed answer, frame by frame; `event` is the name on the wire, needed only without an `event_field`. */
  stream(frames: readonly Frame[]): Promise<Replayed>
}

/** One frame of a stream: its JSON text or value, and the event name when the wire had one. */
export type Frame = { event?: string; data: string | JsonObject }

/** Facts for folding that make replies comparable. */
export const foldFacts: FoldFacts = { signer: 'maker', newId: () => 'made-up-id', now: () => 1 }

/** Loads `providers/dialects/<name>.yaml`. Throws when something is wrong with it. */
export function benchDialect(name: string): Bench {
  const file = `providers/dialects/${name}.yaml`
  const { dialect, problems } = loadDialect(readSource(file, readFileSync(pathOf(file), 'utf8')))
  if (!dialect) throw new Error(problems.map(({ line, message }) => `${file}:${line}: ${message}`).join('\n'))
  const provider = bareProvider(dialect)
  const chat = provider.chat as ChatEndpoint
  const written: Bench['written'] = (request, target) =>
    writeFor(provider, request, { model: request.model }, factsOf(target))
  return {
    provider,
    chat,
    history: chat.history,
    errors: provider.errors,
    examples: dialect.layer.examples,
    written,
    body: async (request, target) => (await written(request, target)).body,
    reply: (answer) => readWhole(provider, answer as JsonObject),
    stream: (frames) => readFrames(provider, chat, frames),
  }
}

type Traits = readonly { match: string; facts: TargetFacts['traits'] }[]

/** By provider, read once. */
const declaredTraits = new Map<string, Traits>()

function readTraits(slug: string): Traits {
  const manifest = load(readFileSync(pathOf(`providers/${slug}.yaml`), 'utf8')) as { traits?: Traits }
  return manifest.traits ?? []
}

/** The facts a provider manifest declares for a model id: later matches win field by field. */
export function traitsOf(slug: string, model: string): TargetFacts['traits'] {
  const traits = declaredTraits.get(slug) ?? readTraits(slug)
  declaredTraits.set(slug, traits)
  const matching = traits.filter(({ match }) => new RegExp(match).test(model))
  return Object.assign({}, ...matching.map(({ facts }) => facts))
}

function pathOf(file: string): string {
  return join(import.meta.dirname, '../..', file)
}

function factsOf(target: Partial<TargetFacts> = {}): TargetFacts {
  return { signer: foldFacts.signer, ...target, traits: target.traits ?? {} }
}

async function readWhole(provider: Provider, answer: JsonObject): Promise<Replayed> {
  const { reply, error } = await readReply(provider, answer, foldFacts, factsOf())
  const { emitted } = folded(eventsOf(reply), error)
  // A reply without a finish reason gets one, but no raw reason.
  const complete = reply.finish !== 'error' || reply.finish_raw !== undefined
  return { reply, complete, emitted, ...(error && { error }) }
}

async function readFrames(provider: Provider, chat: ChatEndpoint, frames: readonly Frame[]): Promise<Replayed> {
  const { done, data: form, eventField } = chat.stream
  const events: ProviderEvent[] = []
  for (const { event, data } of frames) {
    if (data === done) break
    const payload = typeof data === 'string' && form === 'json' ? (JSON.parse(data) as JsonObject) : data
    const named = eventField !== undefined && typeof payload === 'object' ? payload[eventField] : event
    events.push(...(await readEvent(provider, named === undefined ? undefined : String(named), payload, factsOf())))
  }
  return folded(events, events.find(({ error }) => error)?.error)
}

function folded(events: ProviderEvent[], error: ProviderFailure | undefined): Replayed {
  const folding = new Fold(foldFacts)
  const emitted = events.flatMap((event) => folding.take(event))
  emitted.push(...folding.end())
  return { reply: folding.reply(), complete: folding.complete, emitted, ...(error && { error }) }
}
