import type { ProviderEvent } from '../../core/events.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { Reply } from '../../core/reply.ts'
import type { ClientNames } from '../../manifest/run/fit-names.ts'
import type { ProviderAnswer } from '../../upstream/provider-answer.ts'
import type { StreamFrame } from '../../upstream/stream-frames.ts'

/** An answer in which tools have the client's names again, before anything reads it. */
export function withClientNames(answer: ProviderAnswer, names: ClientNames | undefined): ProviderAnswer {
  if (!names) return answer
  if (answer.kind === 'stream') return { ...answer, batches: renamedBatches(answer.batches, names) }
  const { reply, whole } = answer
  return {
    ...answer,
    reply: renamedReply(reply, names),
    ...(whole && { whole: () => renamedReply(whole(), names) }),
  }
}

/** A body of the Responses API in whose calls tools have the client's names again. */
export function withClientNamesIn(body: JsonObject, names: ClientNames | undefined): JsonObject {
  if (!names || !Array.isArray(body.output)) return body
  const output = body.output.map((item) => {
    const name = isObject(item) && typeof item.name === 'string' ? names.get(item.name) : undefined
    return isObject(item) && name !== undefined ? { ...item, name } : item
  })
  return { ...body, output }
}

function renamedReply(reply: Reply, names: ClientNames): Reply {
  return { ...reply, parts: reply.parts.map((part) => renamedPart(part, names)) }
}

function renamedPart(part: Part, names: ClientNames): Part {
  if (part.type !== 'tool_call') return part
  const name = names.get(part.name)
  return name === undefined ? part : { ...part, name }
}

async function* renamedBatches(
  batches: AsyncIterable<StreamFrame[]>,
  names: ClientNames,
): AsyncGenerator<StreamFrame[], void, undefined> {
  for await (const batch of batches)
    yield batch.map((frame) => ({ ...frame, events: frame.events.map((event) => renamedEvent(event, names)) }))
}

function renamedEvent(event: ProviderEvent, names: ClientNames): ProviderEvent {
  const { tool, whole } = event
  const name = tool?.name === undefined ? undefined : names.get(tool.name)
  const part = whole && renamedPart(whole, names)
  if (name === undefined && part === whole) return event
  return { ...event, ...(name !== undefined && { tool: { ...tool, name } }), ...(part && { whole: part }) }
}
