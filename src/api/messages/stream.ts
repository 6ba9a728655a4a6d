import { type ErrorCode, errorBody, type RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { type StreamFacts, type StreamWriter, writeEvent } from '../client-api.ts'
import { heldIds } from './reply-members.ts'
import { EventEditor } from './stream-edit.ts'
import { BlockWriter } from './stream-write.ts'

/** Writes one streamed message: translated events, or the events of a provider of this format, edited. */
export function openStream(request: NeutralRequest, facts: StreamFacts): StreamWriter {
  const writer = new BlockWriter(facts.model)
  const editor = new EventEditor(facts)
  return {
    events: (events) => writer.write(events),
    edit: (payload) => editor.edit(payload),
    repeatsText: true,
    end: (reply) => (editor.hasBegun ? editor.end(reply) : writer.end(reply)) + writeEvent({ type: 'message_stop' }),
    heldIds: () => [...new Set([...heldIds(editor.message(), request), ...editor.held])],
    fail: (error) => writeEvent(writeError(error, facts.requestId ?? facts.id)),
  }
}

/** An error in the form of this API, beside the members that every error of this router has; `id` is the request's. */
export function writeError(error: RouterError, id?: string): JsonObject {
  const body = errorBody(error)
  const type = isOverload(error) ? overloaded : ownTypes[error.code]
  if (type !== undefined) Object.assign(body.error as JsonObject, { type })
  return { type: 'error', ...body, request_id: id ?? null }
}

/** Clients of this API know an overloaded provider by its own status. */
export function errorStatus(error: RouterError): number | undefined {
  return isOverload(error) ? 529 : undefined
}

function isOverload({ code, providerCode }: RouterError): boolean {
  return code === 'provider_overloaded' || providerCode === overloaded
}

const overloaded = 'overloaded_error'
/** Error types that only this API has. */
const ownTypes: { readonly [code in ErrorCode]?: string } = { provider_timeout: 'timeout_error', stopping: overloaded }
