import { catalogue, type RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { type ReplyFacts, type StreamFacts, type StreamWriter, writeEvent } from '../client-api.ts'
import { eventsInClientForm } from '../client-form.ts'
import { heldIds } from './reply-members.ts'
import { EventEditor } from './stream-edit.ts'
import { ResponseWriter } from './stream-write.ts'
import { responseIdOf } from './write.ts'

/** Writes one streamed response: translated events, or the events of a provider of this format, edited. */
export function openStream(request: NeutralRequest, { model, id }: StreamFacts): StreamWriter {
  const writer = new ResponseWriter(request.origin.body, { model, id: responseIdOf(id) })
  const editor = new EventEditor(request.origin.body, model)
  const inClientForm = eventsInClientForm(request)
  let response: JsonObject | undefined
  /** Made once: the stored response and that of the last event are the same, down to the second. */
  const whole = (facts: ReplyFacts): JsonObject => {
    response ??= editor.response ? editor.whole(facts) : writer.whole(facts)
    return facts.router ? { ...response, router: facts.router } : response
  }
  return {
    events: (events) => writer.write(inClientForm(events)),
    edit: (payload) => editor.edit(payload),
    end: (facts) => (editor.response ? editor : writer).end(whole(facts)),
    heldIds: () => heldIds({ ...editor.response, output: editor.output }),
    fail(error) {
      const { response, output, sequence } = editor
      const { message, router } = error
      const members = { error: { code: codeOf(error), message }, ...(router && { router }) }
      if (!response) return writer.fail(members)
      const failed = { ...response, status: 'failed', output, ...members }
      return writeEvent({ type: 'response.failed', sequence_number: sequence, response: failed })
    },
    reply: whole,
  }
}

/** Clients act on these codes: the provider's own where this API defines it, else the one that fits the error. */
function codeOf({ code, providerCode }: RouterError): string {
  if (providerCode !== undefined && codes.has(providerCode)) return providerCode
  if (code === 'context_length') return 'context_length_exceeded'
  if (code === 'quota_exhausted' || code === 'budget_exhausted') return 'insufficient_quota'
  const { status } = catalogue[code]
  if (status === 429) return 'rate_limit_exceeded'
  return status === 400 ? 'invalid_prompt' : 'server_error'
}

/** The codes of failed responses that OpenAI documents, and others that it sends. */
const codes: ReadonlySet<string> = new Set([
  'server_error',
  'rate_limit_exceeded',
  'insufficient_quota',
  'context_length_exceeded',
  'invalid_prompt',
  'data_residency_mismatch',
  'bio_policy',
  'vector_store_timeout',
  'invalid_image',
  'invalid_image_format',
  'invalid_base64_image',
  'invalid_image_url',
  'image_too_large',
  'image_too_small',
  'image_parse_error',
  'image_content_policy_violation',
  'invalid_image_mode',
  'image_file_too_large',
  'unsupported_image_media_type',
  'empty_image_file',
  'failed_to_download_image',
  'image_file_not_found',
])
