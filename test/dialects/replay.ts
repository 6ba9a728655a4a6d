import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { ProviderEvent, ProviderFailure, StreamEvent } from '../../src/core/events.ts'
import { Fold, type FoldFacts } from '../../src/core/fold.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { type HistoryRules, repairHistory } from '../../src/core/repair-history.ts'
import type { Reply } from '../../src/core/reply.ts'
import { eventsOf, type MappedReply } from '../../src/core/reply-events.ts'
import type { NeutralRequest, TargetFacts } from '../../src/core/request.ts'
import { type Mapping, readMapping } from '../../src/mapping/mapping.ts'

/** An example as manifests and dialect files write it: neutral request → provider JSON → provider JSON → neutral reply. */
export type Example = {
  name: string
  request?: Omit<NeutralRequest, 'origin'>
  target?: Partial<TargetFacts>
  sends?: JsonObject
  answers?: JsonObject
  events?: JsonObject[]
  means?: JsonObject
}

/** What came of a provider's answer: the folded reply, whether it came whole, and the failure it reported. */
export type Replayed = { reply: Reply; complete: boolean; error?: ProviderFailure; told: StreamEvent[] }

/** A dialect's chat endpoint on the bench: no network, no manifest loader, mappings run as they stand in the file. */
export type Bench = {
  request: Mapping
  losses: { field: string; when?: Mapping }[]
  history: HistoryRules
  errors: { [name: string]: string }
  examples: Example[]
  /** The provider JSON for a neutral request, history repaired first. `target` fills in the facts of the model. */
  body(request: NeutralRequest, target?: Partial<TargetFacts>): Promise<JsonObject>
  /** A whole answer. */
  reply(answer: unknown): Promise<Replayed>
  /** A streamed answer, frame by frame; `event` is the name on the wire, needed only without an `event_field`. */
  stream(frames: readonly Frame[]): Promise<Replayed>
}

/** One frame of a stream: its JSON text or value, and the event name when the wire had one. */
export type Frame = { event?: string; data: string | JsonObject }

/** Facts for folding that make replies comparable. */
export const foldFacts: FoldFacts = { maker: 'maker', newId: () => 'made-up-id', now: () => 1 }

/** Puts `providers/dialects/<name>.yaml` on the bench. Throws when a mapping cannot be read. */
export function benchDialect(name: string): Bench {
  const file = readYaml(`providers/dialects/${name}.yaml`)
  const { chat } = file.endpoints
  const request = readMapping(chat.request)
  const reply = readMapping(chat.reply)
  const events = new Map(
    Object.entries(chat.events as { [name: string]: string }).map(([on, text]) => [on, text && readMapping(text)]),
  )
  const patch: { [name: string]: string } = chat.patch ?? {}
  const patched = async (side: string, value: unknown) => (patch[side] ? readMapping(patch[side]).run(value) : value)
  const history: HistoryRules = chat.history ?? {}
  return {
    request,
    losses: (chat.losses ?? []).map((loss: string | { field: string; when: string }) =>
      typeof loss === 'string' ? { field: loss } : { field: loss.field, when: readMapping(loss.when) },
    ),
    history,
    errors: file.errors ?? {},
    examples: file.examples ?? [],
    async body(neutral, target = {}) {
      const facts: TargetFacts = { maker: foldFacts.maker, ...target, traits: target.traits ?? {} }
      const input = { ...repairHistory(neutral, history), target: facts }
      return (await patched('request', await request.run(input))) as JsonObject
    },
    async reply(answer) {
      const mapped = ((await reply.run(await patched('reply', answer))) ?? {}) as MappedReply
      return folded(eventsOf(mapped), mapped.error)
    },
    async stream(frames) {
      const told: ProviderEvent[] = []
      for (const { event, data } of frames) {
        if (data === chat.stream?.done) break
        const payload = (await patched('event', typeof data === 'string' ? JSON.parse(data) : data)) as JsonObject
        const on = chat.stream?.event_field ? String(payload[chat.stream.event_field]) : (event ?? '*')
        const mapping = events.get(on) ?? events.get('*')
        if (!mapping) continue
        const said = await mapping.run(payload)
        told.push(...([said ?? []].flat() as ProviderEvent[]))
      }
      return folded(told, told.find(({ error }) => error)?.error)
    },
  }
}

/** The facts a provider manifest declares for a model id: later matches win field by field. */
export function traitsOf(slug: string, model: string): TargetFacts['traits'] {
  const traits: { match: string; facts: TargetFacts['traits'] }[] = readYaml(`providers/${slug}.yaml`).traits ?? []
  const matching = traits.filter(({ match }) => new RegExp(match).test(model))
  return Object.assign({}, ...matching.map(({ facts }) => facts))
}

// biome-ignore lint/suspicious/noExplicitAny: the file's shape is what the manifest loader checks.
function readYaml(path: string): any {
  return parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8'))
}

function folded(events: ProviderEvent[], error: ProviderFailure | undefined): Replayed {
  const folding = new Fold(foldFacts)
  const told = events.flatMap((event) => folding.take(event))
  told.push(...folding.end())
  return { reply: folding.reply(), complete: folding.complete, told, ...(error && { error }) }
}
