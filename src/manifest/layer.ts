import type { ErrorCode } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { HistoryRules } from '../core/repair-history.ts'
import type { Api, NeutralRequest, TargetFacts } from '../core/request.ts'
import { functionNames, type Mapping, MappingError, readMapping } from '../mapping/mapping.ts'
import type { StreamFormat } from '../wire/frames.ts'
import { didYouMean } from './did-you-mean.ts'
import { unknownLoss } from './fields.ts'
import type { Path } from './position.ts'
import type { Problem } from './problem.ts'
import type { ChatEndpoint, Loss, StreamForm, Trait } from './provider.ts'
import { checkSchema } from './schema.ts'
import type { Source } from './source.ts'

/** What one file, a dialect or a manifest, says about its provider: checked and with its mappings ready to run. */
export type Layer = {
  source: Source
  sameAs?: Api
  headers: { [name: string]: string }
  chat?: PartialChat
  count?: { path: string }
  errors: { [name: string]: ErrorCode }
  traits: Trait[]
  examples: Example[]
  /** Where each mapping stands in the file. */
  places: Map<Mapping, Path>
  /** What a manifest says about models that are served differently, in its order. */
  variants: VariantLayers[]
}

/** The models of a variant, and the layers it is made of, its own the last. */
export type VariantLayers = { match: RegExp; layers: Layer[] }

/** An endpoint as far as one file describes it. */
export type PartialChat = Partial<Pick<ChatEndpoint, 'path' | 'request' | 'reply'>> &
  Pick<ChatEndpoint, 'events' | 'patch' | 'losses' | 'history'> & { stream: Partial<StreamForm> }

/** A proof that a mapping does what it should: neutral request → provider JSON, provider JSON → neutral reply. */
export type Example = {
  name: string
  request?: Partial<NeutralRequest>
  target?: Partial<TargetFacts>
  sends?: JsonObject
  answers?: JsonObject
  events?: (JsonObject | string)[]
  means?: JsonObject
}

/** A file's form after its schema has accepted it, as far as dialects and manifests have it in common. */
export type LayerFile = {
  same_as?: Api
  headers?: { [name: string]: string }
  endpoints?: { chat?: ChatFile; count?: { path: string } }
  errors?: { [name: string]: ErrorCode }
  traits?: { match: string; facts: Trait['facts'] }[]
  examples?: Example[]
}

type ChatFile = {
  path?: string
  stream?: { path?: string; format?: StreamFormat; event_field?: string; done?: string }
  request?: string
  reply?: string
  events?: { [name: string]: string }
  patch?: { request?: string; reply?: string; event?: string }
  losses?: (string | { field: string; when?: string })[]
  history?: HistoryRules
}

/** Reads what a file that its schema has accepted says. The layer is whole only when there are no problems. */
export function readLayer(source: Source): { layer: Layer; problems: Problem[] } {
  const problems: Problem[] = []
  const places: Layer['places'] = new Map()
  const file = source.value as LayerFile
  const desk: Desk = { source, problems, places }
  const { chat, count } = file.endpoints ?? {}
  const layer: Layer = {
    source,
    headers: file.headers ?? {},
    errors: file.errors ?? {},
    traits: readTraits(desk, file.traits ?? []),
    examples: file.examples ?? [],
    places,
    variants: [],
    ...(file.same_as !== undefined && { sameAs: file.same_as }),
    ...(chat && { chat: readChat(desk, chat) }),
    ...(count && { count }),
  }
  return { layer, problems }
}

/** The facts about models that another provider's manifest declares; what is wrong with them is told in that file. */
export function sharedTraits(source: Source): Layer {
  const desk: Desk = { source, problems: [], places: new Map() }
  const file = checkSchema(source, 'provider').length === 0 ? (source.value as LayerFile) : {}
  const traits = readTraits(desk, file.traits ?? [])
  return { source, headers: {}, errors: {}, traits, examples: [], places: desk.places, variants: [] }
}

/** The files that layers come from, those of variants included. */
export function filesOf(layers: readonly Layer[]): Source[] {
  return layers.flatMap(({ source, variants }) => [source, ...variants.flatMap((variant) => filesOf(variant.layers))])
}

/** How many examples stand in a file. */
export function countExamples({ examples, variants }: Layer): number {
  const own = variants.map(({ layers }) => layers.at(-1)?.examples.length ?? 0)
  return own.reduce((sum, count) => sum + count, examples.length)
}

/** The file that is being read, and what came of it so far. */
type Desk = { source: Source; problems: Problem[]; places: Layer['places'] }

function readTraits(desk: Desk, traits: NonNullable<LayerFile['traits']>): Trait[] {
  return traits.flatMap(({ match, facts }, index) => {
    const pattern = readPattern(desk, ['traits', index, 'match'], match)
    return pattern ? [{ match: pattern, facts }] : []
  })
}

/** A regular expression of a file; undefined, with a problem, when it is none. */
export function readPattern(
  { source, problems }: Pick<Desk, 'source' | 'problems'>,
  path: Path,
  pattern: string,
): RegExp | undefined {
  try {
    return new RegExp(pattern)
  } catch (error) {
    problems.push(source.problem(path, `not a regular expression: ${(error as Error).message}`))
    return undefined
  }
}

function readChat(desk: Desk, chat: ChatFile): PartialChat {
  const at = ['endpoints', 'chat']
  const read = (path: Path, text: string | undefined) =>
    text === undefined ? undefined : compile(desk, [...at, ...path], text)
  const request = read(['request'], chat.request)
  const reply = read(['reply'], chat.reply)
  const events = new Map<string, Mapping>()
  for (const [name, text] of Object.entries(chat.events ?? {})) {
    const mapping = text.trim() === '' ? ignored : read(['events', name], text)
    if (mapping) events.set(name, mapping)
  }
  const patch: ChatEndpoint['patch'] = {}
  for (const name of ['request', 'reply', 'event'] as const) {
    const mapping = read(['patch', name], chat.patch?.[name])
    if (mapping) patch[name] = mapping
  }
  const { tool_id, inline_media } = chat.history ?? {}
  if (tool_id) readPattern(desk, [...at, 'history', 'tool_id', 'pattern'], tool_id.pattern)
  const except = typeof inline_media === 'object' ? inline_media.except : undefined
  if (except !== undefined) readPattern(desk, [...at, 'history', 'inline_media', 'except'], except)
  return {
    ...(chat.path !== undefined && { path: chat.path }),
    ...(request && { request }),
    ...(reply && { reply }),
    stream: streamOf(chat.stream ?? {}),
    events,
    patch,
    losses: readLosses(desk, [...at, 'losses'], chat.losses ?? []),
    history: chat.history ?? {},
  }
}

/** Stands where a manifest says that an event means nothing. */
const ignored: Mapping = {
  text: '',
  reads: new Set(),
  unbound: [],
  compiled: true,
  run: () => undefined,
  explain: () => '',
}

function streamOf({ path, format, event_field, done }: NonNullable<ChatFile['stream']>): Partial<StreamForm> {
  return {
    ...(path !== undefined && { path }),
    ...(format !== undefined && { format }),
    ...(event_field !== undefined && { eventField: event_field }),
    ...(done !== undefined && { done }),
  }
}

function readLosses(desk: Desk, path: Path, losses: NonNullable<ChatFile['losses']>): Loss[] {
  return losses.map((loss, index) => {
    const { field, when } = typeof loss === 'string' ? { field: loss } : loss
    const at = typeof loss === 'string' ? [...path, index] : [...path, index, 'field']
    const wrong = unknownLoss(field)
    if (wrong) desk.problems.push(desk.source.problem(at, wrong))
    const mapping = when === undefined ? undefined : compile(desk, [...path, index, 'when'], when)
    return { field, ...(mapping && { when: mapping }) }
  })
}

function compile({ source, problems, places }: Desk, path: Path, text: string): Mapping | undefined {
  try {
    const mapping = readMapping(text)
    for (const { name, position } of mapping.unbound) {
      const hint = didYouMean(name, functionNames).replace('`', '`$')
      const message = `there is no variable or function \`$${name}\`${hint}`
      problems.push({ file: source.file, ...source.inText(path, position), message, severity: 'error' })
    }
    places.set(mapping, path)
    return mapping
  } catch (error) {
    if (!(error instanceof MappingError)) throw error
    // JSONata names the end of what it stumbled over.
    const place = source.inText(path, Math.max(0, (error.position ?? 1) - 1))
    problems.push({ file: source.file, ...place, message: `not JSONata: ${error.message}`, severity: 'error' })
    return undefined
  }
}
