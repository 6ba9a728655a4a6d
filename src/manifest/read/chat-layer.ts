import type { MediaPart } from '../../core/parts.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { StreamFormat } from '../../wire/frames.ts'
import { didYouMean } from '../check/did-you-mean.ts'
import { nameProblems, targetProblems } from '../check/request-names.ts'
import type { Job } from '../operation.ts'
import type { ChatEndpoint, RequestMapping, StreamForm, Support } from '../provider.ts'
import { supportOf } from '../run/inferred-support.ts'
import type { HistoryRules } from '../run/repair-history.ts'
import type { UnsupportedField } from '../types.ts'
import { readJob } from './job.ts'
import type { MappingReader } from './mapping-reader.ts'
import { readPattern } from './pattern.ts'
import type { Path } from './position.ts'
import type { Fragment } from './program.ts'
import type { JobFile } from './types.ts'

/** `endpoints.chat` as far as one file describes it. */
export type PartialChat = Partial<Pick<ChatEndpoint, 'path' | 'request' | 'reply' | 'outputLimits'>> &
  Pick<ChatEndpoint, 'events' | 'patch' | 'history'> & {
    stream: Partial<Omit<StreamForm, 'address'>> & { address?: Partial<NonNullable<StreamForm['address']>> }
    job?: Partial<Job>
    unsupported: UnsupportedField[]
    /** Mappings that the file has, but with problems. */
    broken: readonly string[]
  }

/** `endpoints.chat` as files write it. */
export type ChatFile = {
  path?: string
  stream?: StreamFile | boolean
  job?: JobFile
  request?: { [section: string]: string }
  output_limit?: string | string[]
  reply?: string
  events?: { [name: string]: string }
  patch?: { base?: string; request?: string; reply?: string; event?: string }
  unsupported?: (string | { field: string; when?: string })[]
  history?: HistoryFile
}

type StreamFile = {
  path?: string
  format?: StreamFormat
  data?: StreamForm['data']
  event_field?: string
  done?: string
  text?: string
  cumulative?: boolean
  url?: string
  hosts?: string[]
}

/** Rules of a file, whose patterns are texts. */
export type HistoryFile = Omit<HistoryRules, 'tool_id' | 'inline_media'> & {
  tool_id?: { pattern?: string; length?: number; max_length?: number }
  inline_media?: boolean | { kinds?: MediaPart['type'][]; except?: string }
}

const at = ['endpoints', 'chat']

export function readChat(reader: MappingReader, chat: ChatFile): PartialChat {
  const request = chat.request && readRequest(reader, chat.request)
  const reply = reader.read([...at, 'reply'], chat.reply)
  const events = readEvents(reader, chat.events ?? {})
  checkPaths(reader, chat)
  return {
    ...(chat.path !== undefined && { path: chat.path }),
    ...(request && { request }),
    ...(chat.output_limit !== undefined && { outputLimits: [chat.output_limit].flat().map((path) => path.split('.')) }),
    ...(reply && { reply }),
    ...(chat.job && { job: readJob(reader, [...at, 'job'], chat.job) }),
    stream: readStream(reader, chat.stream),
    events,
    patch: readPatch(reader, chat.patch ?? {}),
    unsupported: readUnsupported(reader, chat.unsupported ?? []),
    history: readHistory(reader, [...at, 'history'], chat.history ?? {}),
    broken: Object.entries({ request, reply, events: events.size > 0 || undefined }).flatMap(([name, made]) =>
      Object.keys(chat[name as 'request' | 'reply' | 'events'] ?? {}).length > 0 && made === undefined ? [name] : [],
    ),
  }
}

/** Reads all sections as one program: an object with the result of each, in the scope of `let`. */
function readRequest(reader: MappingReader, sections: { [name: string]: string }): RequestMapping | undefined {
  const path = [...at, 'request']
  const { let: shared, ...results } = sections
  for (const name of Object.keys(results)) checkSection(reader, [...path, name], name)
  if (!Object.keys(results).some(isSection)) {
    reader.problems.push(reader.source.problem(path, 'a request needs a section besides `let` and `dropped`', 'name'))
    return undefined
  }
  const members = Object.entries(results).flatMap(([name, text], index): Fragment[] => [
    `${index === 0 ? '{' : ','} ${JSON.stringify(name)}: (`,
    { source: reader.source, path: [...path, name], text },
    '\n)',
  ])
  const own = shared === undefined ? undefined : { path: [...path, 'let'], text: shared }
  const mapping = reader.readBlock(path, own, [...members, '}'])
  if (!mapping) return undefined
  reader.problems.push(...nameProblems(mapping, reader.source, path))
  let support: Support | undefined
  return {
    mapping,
    sections: Object.keys(results).filter(isSection),
    get support() {
      support ??= supportOf(mapping)
      return support
    },
  }
}

/** Sections have any names, but one that looks like `dropped` would be sent. */
function checkSection({ source, problems }: MappingReader, path: Path, name: string): void {
  const hint = isSection(name) ? didYouMean(name, ['dropped']) : ''
  if (hint) problems.push(source.problem(path, `the section \`${name}\` would be part of the body${hint}`, 'name'))
}

/** Checks for a section: `dropped` is listed among them, but is not a part of the body. */
function isSection(name: string): boolean {
  return name !== 'dropped'
}

function readEvents(reader: MappingReader, events: NonNullable<ChatFile['events']>): Map<string, Mapping> {
  const mappings = new Map<string, Mapping>()
  for (const [name, text] of Object.entries(events)) {
    const mapping = text.trim() === '' ? ignored : reader.read([...at, 'events', name], text)
    if (mapping) mappings.set(name, mapping)
  }
  return mappings
}

function readPatch(reader: MappingReader, patch: NonNullable<ChatFile['patch']>): ChatEndpoint['patch'] {
  const mappings: ChatEndpoint['patch'] = {}
  for (const name of ['base', 'request', 'reply', 'event'] as const) {
    const mapping = reader.read([...at, 'patch', name], patch[name], ['target'])
    if (mapping) reader.problems.push(...targetProblems(mapping, reader.source, [...at, 'patch', name]))
    if (mapping) mappings[name] = mapping
  }
  return mappings
}

/** The mapping of an event that means nothing. */
const ignored: Mapping = {
  text: '',
  tree: undefined,
  unbound: [],
  compiled: true,
  run: () => undefined,
  explain: () => '',
}

function readStream(reader: MappingReader, file: ChatFile['stream']): PartialChat['stream'] {
  if (file === undefined) return {}
  if (typeof file === 'boolean') return { whole: !file }
  const { event_field, text, url, hosts, ...stream } = file
  const mapping = reader.read([...at, 'stream', 'url'], url)
  return {
    whole: false,
    ...stream,
    ...((mapping || hosts) && { address: { ...(mapping && { url: mapping }), ...(hosts && { hosts }) } }),
    ...(event_field !== undefined && { eventField: event_field }),
    ...(text !== undefined && { text: text.split('.') }),
  }
}

function readUnsupported(reader: MappingReader, losses: NonNullable<ChatFile['unsupported']>): UnsupportedField[] {
  return losses.map((loss, index) => {
    const path: Path = [...at, 'unsupported', index]
    const { field, when } = typeof loss === 'string' ? { field: loss } : loss
    const mapping = reader.read([...path, 'when'], when)
    if (mapping) reader.problems.push(...targetProblems(mapping, reader.source, [...path, 'when']))
    return { field, path: typeof loss === 'string' ? path : [...path, 'field'], ...(mapping && { when: mapping }) }
  })
}

/** Places in a path that nothing is put into, and members of a stream that exclude each other. */
function checkPaths({ source, problems }: MappingReader, { path, stream: form, patch, job = {} }: ChatFile): void {
  const stream = typeof form === 'boolean' ? undefined : form
  for (const name of ['poll', 'cancel'] as const) {
    const unknown = job[name]?.match(/\{[^}]*\}/g)?.find((place) => !['{id}', '{model}', '{+model}'].includes(place))
    const message = `\`${unknown}\` is not a placeholder: the placeholders are {id}, {model} and {+model}`
    if (unknown) problems.push(source.problem([...at, 'job', name], message))
  }
  for (const [at_, text] of [
    [[...at, 'path'], path],
    [[...at, 'stream', 'path'], stream?.path],
  ] as const) {
    const unknown = text?.match(/\{[^}]*\}/g)?.find((place) => place !== '{model}' && place !== '{+model}')
    if (unknown)
      problems.push(
        source.problem(at_, `\`${unknown}\` is not a placeholder: the placeholders are {model} and {+model}`),
      )
  }
  if (stream?.data !== 'text') return
  const { event_field, text } = stream
  const members = { event_field, 'stream.text': text, 'patch.event': patch?.event }
  const useless = Object.entries(members).find(([, member]) => member !== undefined)?.[0]
  if (useless)
    problems.push(source.problem([...at, 'stream', 'data'], `\`${useless}\` does not apply where the data is text`))
}

/** Reads the rules at a path with their patterns ready to run; one that cannot be used is left out, with a problem. */
export function readHistory(
  reading: Reading,
  path: Path,
  { tool_id, inline_media, ...rules }: HistoryFile,
): HistoryRules {
  return {
    ...rules,
    ...(tool_id && readToolId(reading, [...path, 'tool_id', 'pattern'], tool_id)),
    ...(inline_media !== undefined && { inline_media: readInlineMedia(reading, path, inline_media) }),
  }
}

type Reading = Pick<MappingReader, 'source' | 'problems'>

function readToolId(
  reading: Reading,
  path: Path,
  rule: NonNullable<HistoryFile['tool_id']>,
): Pick<HistoryRules, 'tool_id'> {
  const { pattern: text, ...lengths } = rule
  if (text === undefined) return { tool_id: lengths }
  const pattern = readPattern(reading, path, text, { whole: true })
  return pattern ? { tool_id: { ...lengths, pattern } } : {}
}

function readInlineMedia(
  reading: Reading,
  path: Path,
  rule: NonNullable<HistoryFile['inline_media']>,
): NonNullable<HistoryRules['inline_media']> {
  if (typeof rule === 'boolean' || rule.except === undefined) return rule as boolean
  const { except, ...others } = rule
  const pattern = readPattern(reading, [...path, 'inline_media', 'except'], except, { anyCase: true })
  return { ...others, ...(pattern && { except: pattern }) }
}
