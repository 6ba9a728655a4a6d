import type { NeutralRequest } from '../../core/request.ts'
import { type StreamFacts, type StreamWriter, writeEvent } from '../client-api.ts'
import { eventsInClientForm } from '../client-form.ts'
import { writeError } from './errors.ts'
import { heldIds } from './reply-members.ts'
import { EventEditor } from './stream-edit.ts'
import { BlockWriter } from './stream-write.ts'

/** Writes one streamed message: translated events, or the events of a provider of this format, edited. */
export function openStream(request: NeutralRequest, facts: StreamFacts): StreamWriter {
  const writer = new BlockWriter(facts.model)
  const editor = new EventEditor(facts)
  const inClientForm = eventsInClientForm(request)
  return {
    events: (events) => writer.write(inClientForm(events)),
    edit: (payload) => editor.edit(payload),
    repeatsText: true,
    end: (reply) => (editor.hasBegun ? editor.end(reply) : writer.end(reply)) + writeEvent({ type: 'message_stop' }),
    heldIds: () => [...new Set([...heldIds(editor.message(), request), ...editor.held])],
    fail: (error) => writeEvent(writeError(error, facts.requestId ?? facts.id, facts.client)),
  }
}
