import { type Operation, operations } from '../../core/operation.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { membersOf, mentionsOf } from '../../mapping/mentions.ts'
import { operationNameProblems, targetProblems } from '../check/request-names.ts'
import type { Job, OperationEndpoint, OperationRequestMapping, OperationStream, Upload } from '../operation.ts'
import type { UnsupportedField } from '../types.ts'
import { readJob } from './job.ts'
import type { MappingReader } from './mapping-reader.ts'
import type { Path } from './position.ts'
import type { Fragment } from './program.ts'
import type { OperationFile } from './types.ts'

/** An endpoint as far as one file describes it. */
export type PartialOperation = Partial<
  Omit<OperationEndpoint, 'offered' | 'stream' | 'unsupported' | 'patch' | 'job'>
> & {
  patch: OperationEndpoint['patch']
  unsupported: readonly UnsupportedField[]
  stream?: Partial<OperationStream>
  job?: Partial<Job>
}

/** The endpoints for operations that a file describes. */
export function readOperations(
  reader: MappingReader,
  endpoints: { [name: string]: unknown },
): { [operation in Operation]?: PartialOperation } {
  const names = Object.keys(operations) as Operation[]
  const named = names.filter((name) => endpoints[name] !== undefined && endpoints[name] !== false)
  reader.problems.push(...named.flatMap((name) => operationNameProblems(reader.source, name, fileOf(endpoints[name]))))
  return Object.fromEntries(
    named.map((name) => [name, readOperation(reader, ['endpoints', name], fileOf(endpoints[name]))]),
  )
}

/** Returns the form of an endpoint: `true` means the same as an empty object. */
function fileOf(endpoint: unknown): OperationFile {
  return endpoint === true ? {} : (endpoint as OperationFile)
}

/** Returns the operations that a file declares its provider not to have. */
export function withheldIn(endpoints: { [name: string]: unknown }): Operation[] {
  return (Object.keys(operations) as Operation[]).filter((name) => endpoints[name] === false)
}

/** The variables that mappings of answers see beside their input: the client's fields, facts about the model, response headers. */
export const answerVariables = ['request', 'target', 'headers'] as const

function readOperation(reader: MappingReader, at: Path, file: OperationFile): PartialOperation {
  const { path, body, takes, answer, batch } = file
  const request = file.request && readRequest(reader, [...at, 'request'], file.request)
  const query = reader.read([...at, 'query'], file.query)
  const reply = reader.read([...at, 'reply'], file.reply, answerVariables)
  const usage = reader.read([...at, 'usage'], file.usage, answerVariables)
  const upload = file.upload && readUpload(reader, [...at, 'upload'], file.upload)
  return {
    ...(path !== undefined && { path }),
    ...(body && { body }),
    ...(takes && { takes }),
    ...(request && { request }),
    ...(query && { query }),
    ...(answer && { answer }),
    ...(reply && { reply }),
    ...(usage && { usage }),
    patch: readPatch(reader, [...at, 'patch'], file.patch ?? {}),
    ...(file.stream && { stream: readStream(reader, [...at, 'stream'], file.stream) }),
    unsupported: readUnsupported(reader, [...at, 'unsupported'], file.unsupported ?? []),
    ...(batch && { batch }),
    ...(file.job && { job: readJob(reader, [...at, 'job'], file.job) }),
    ...(upload && { upload }),
  }
}

/** Reads all sections as one program, in the scope of `let`. */
function readRequest(
  reader: MappingReader,
  path: Path,
  { let: shared, ...results }: { [section: string]: string },
): OperationRequestMapping | undefined {
  const sections = Object.keys(results).filter((name) => name !== 'dropped')
  if (sections.length === 0) {
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
  reader.problems.push(...targetProblems(mapping, reader.source, path))
  let names: ReadonlySet<string> | undefined
  return {
    mapping,
    sections,
    get names() {
      names ??= sentNames(mapping)
      return names
    },
  }
}

/** Returns the names that a request mapping reads for what it sends: fields read only for `dropped` are dropped. */
function sentNames({ tree }: Mapping): ReadonlySet<string> {
  return mentionsOf(tree, (last) =>
    [...membersOf(last)].filter(([name]) => name !== 'dropped').map(([, section]) => section),
  ).names
}

function readPatch(
  reader: MappingReader,
  at: Path,
  patch: NonNullable<OperationFile['patch']>,
): PartialOperation['patch'] {
  const mappings: PartialOperation['patch'] = {}
  for (const name of ['request', 'reply', 'event'] as const) {
    const mapping = reader.read([...at, name], patch[name], answerVariables)
    if (mapping) mappings[name] = mapping
  }
  return mappings
}

function readStream(
  reader: MappingReader,
  at: Path,
  { event_field, events, ...stream }: NonNullable<OperationFile['stream']>,
): Partial<OperationStream> {
  const mappings = Object.entries(events ?? {}).flatMap(([name, text]) => {
    const mapping = reader.read([...at, 'events', name], text.trim() === '' ? '[]' : text, answerVariables)
    return mapping ? [[name, mapping] as const] : []
  })
  return {
    ...stream,
    ...(event_field !== undefined && { eventField: event_field }),
    ...(mappings.length > 0 && { events: new Map(mappings) }),
  }
}

function readUnsupported(
  reader: MappingReader,
  at: Path,
  losses: NonNullable<OperationFile['unsupported']>,
): UnsupportedField[] {
  return losses.map((loss, index) => {
    const path = [...at, index]
    const { field, when } = typeof loss === 'string' ? { field: loss } : loss
    const mapping = reader.read([...path, 'when'], when)
    return { field, path, ...(mapping && { when: mapping }) }
  })
}

function readUpload(
  reader: MappingReader,
  at: Path,
  { reference, ...file }: NonNullable<OperationFile['upload']>,
): Upload | undefined {
  const mapping = reader.read([...at, 'reference'], reference)
  return mapping && { body: 'bytes', field: 'file', fields: {}, ...file, reference: mapping }
}
