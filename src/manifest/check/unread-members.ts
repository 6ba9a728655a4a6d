import { type Operation, operations } from '../../core/operation.ts'
import type { OperationEndpoint, OperationEndpoints } from '../operation.ts'
import type { ChatEndpoint } from '../provider.ts'
import type { ChatFile } from '../read/chat-layer.ts'
import type { Layer } from '../read/layer.ts'
import type { Path } from '../read/position.ts'
import type { OperationFile } from '../read/types.ts'
import { named, type Problem } from './problem.ts'

/** A member that has no effect, and why. */
type Unread = { path: Path; reason: string }

/** Endpoints as a manifest or a variant has them, all its layers together. */
type Endpoints = { chat: ChatEndpoint | undefined; operations: OperationEndpoints }

/** Finds the members of a manifest or a variant that its schema accepts, but that nothing reads. */
export function unreadMembers(layer: Layer, made: Endpoints, { isForRequests = false } = {}): Problem[] {
  const { source } = layer
  if (source.sound !== undefined) return []
  const file = source.value as { endpoints?: { chat?: ChatFile } & { [name in Operation]?: OperationFile | boolean } }
  const { chat } = file.endpoints ?? {}
  const found = [
    ...(made.chat ? [] : unreadWithoutChat(layer)),
    ...(chat && made.chat ? unreadInChat(chat, made.chat).map((one) => within(['endpoints', 'chat'], one)) : []),
    ...(!layer.usage || isUsed(layer, made) ? [] : [unread(['usage'], 'each endpoint has a `usage` of its own')]),
    ...(Object.keys(operations) as Operation[]).flatMap((name) => {
      const written = file.endpoints?.[name]
      const endpoint = made.operations[name]
      if (!written || !endpoint) return []
      const at: Path = ['endpoints', name]
      if (isForRequests) return [unread(at, 'only conversations are served by a variant with `when`')]
      return written === true ? [] : unreadInOperation(name, written, endpoint).map((one) => within(at, one))
    }),
    ...layer.examples.flatMap(({ operation, query }, index) =>
      query && !operation ? [unread(['examples', index, 'query'], 'conversations have no query')] : [],
    ),
  ]
  return found.map(({ path, reason }) => {
    const message = `\`${named(path)}\` has no effect: ${reason}`
    return { ...source.problem(path, message, 'name'), severity: 'warning' }
  })
}

function unread(path: Path, reason: string): Unread {
  return { path, reason }
}

function within(at: Path, { path, reason }: Unread): Unread {
  return { path: [...at, ...path], reason }
}

function isUsed({ usage }: Layer, { chat, operations: endpoints }: Endpoints): boolean {
  return chat !== undefined || Object.values(endpoints).some((endpoint) => endpoint.usage === usage)
}

/** Finds the members that describe conversations, of a provider that has none. */
function unreadWithoutChat({ finish, groups, traits }: Layer): Unread[] {
  const reason = 'it is for conversations, and there is no `endpoints.chat`'
  return [
    ...(finish ? [unread(['finish'], reason)] : []),
    ...(Object.keys(groups).length > 0 ? [unread(['groups'], reason)] : []),
    ...traits.flatMap((trait, index) =>
      (['limits', 'history'] as const).flatMap((name) =>
        trait[name] ? [unread(['traits', index, name], reason)] : [],
      ),
    ),
  ]
}

/** Finds the members about streams that nothing reads because the provider is not asked for any, or because of another one. */
function unreadInChat({ stream, events, patch }: ChatFile, { stream: form }: ChatEndpoint): Unread[] {
  if (!form.whole) {
    const hasText = typeof stream === 'object' && stream.text !== undefined && form.cumulative
    return hasText ? [unread(['stream', 'text'], 'each event of a `cumulative` stream is mapped')] : []
  }
  const reason = 'the provider is not asked for a stream'
  return [
    ...(typeof stream === 'object' ? [unread(['stream'], reason)] : []),
    ...(events ? [unread(['events'], reason)] : []),
    ...(patch?.event === undefined ? [] : [unread(['patch', 'event'], reason)]),
  ]
}

function unreadInOperation(name: Operation, file: OperationFile, endpoint: OperationEndpoint): Unread[] {
  const found: (Unread | undefined)[] = [
    file.takes && name !== 'image_edit' ? unread(['takes'], 'it is about the images of `image_edit`') : undefined,
    file.batch && !joined.has(name) ? unread(['batch'], 'answers of this endpoint cannot be joined') : undefined,
    file.stream && !streamed.has(name) ? unread(['stream'], 'no client can ask this endpoint for a stream') : undefined,
    file.stream?.event_field !== undefined && !endpoint.stream?.events
      ? unread(['stream', 'event_field'], 'without `stream.events` no event is read by its name')
      : undefined,
    file.patch?.event !== undefined && !endpoint.stream
      ? unread(['patch', 'event'], 'there is no `stream`')
      : undefined,
    file.job && endpoint.answer !== 'json' ? unread(['job'], `its answers are ${endpoint.answer}`) : undefined,
  ]
  return found.filter((one) => one !== undefined)
}

/** Operations whose requests can be sent in pieces. */
const joined: ReadonlySet<Operation> = new Set<Operation>(['embed', 'image', 'image_edit'])

/** Operations that clients can ask for as a stream. */
const streamed: ReadonlySet<Operation> = new Set<Operation>(['image', 'image_edit', 'speech', 'transcribe', 'complete'])
