import { docUrl, type ErrorCode, type RouterError, writtenMessage } from '../../core/errors.ts'
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
    more: () => editor.more(),
    end: (facts) => (editor.response ? editor : writer).end(whole(facts)),
    heldIds: () => heldIds({ ...editor.response, output: editor.output }),
    fail(error) {
      const { response, output, sequence } = editor
      const { router } = error
      const described = { code: codeOf(error), message: messageOf(error), doc_url: docUrl(error.code) }
      const members = { error: described, ...(router && { router }) }
      if (!response) return writer.fail(members)
      const failed = { ...response, status: 'failed', output, ...members }
      return writeEvent({ type: 'response.failed', sequence_number: sequence, response: failed })
    },
    reply: whole,
  }
}

/** Clients act on these codes: those of errors that they know, the provider's own where this API defines it, else one by the status. */
function codeOf({ code, providerCode, pluginRefusal, status }: RouterError): string {
  if (pluginRefusal?.code !== undefined) return pluginRefusal.code
  const word = words[code]
  if (word !== undefined) return word
  if (providerCode !== undefined && codes.has(providerCode)) return providerCode
  return status >= 400 && status < 500 ? 'invalid_prompt' : 'server_error'
}

/** Returns the message of an error; clients read from it how long to wait, as a stream has no header for that. */
function messageOf(error: RouterError): string {
  const message = writtenMessage(error)
  const { code, retryAfterMs } = error
  if (code !== 'rate_limited' || retryAfterMs === undefined || /try again in/i.test(message)) return message
  return `${message} Please try again in ${Math.ceil(retryAfterMs / 100) / 10}s.`
}

/** The codes on which clients compact a conversation, wait or stop. */
const words: { readonly [code in ErrorCode]?: string } = {
  context_length: 'context_length_exceeded',
  rate_limited: 'rate_limit_exceeded',
  quota_exhausted: 'insufficient_quota',
  budget_exhausted: 'insufficient_quota',
}

/** The codes of failed responses that OpenAI documents, and others that it sends. */
const codes: ReadonlySet<string> = new Set([
  'server_error',
  'rate_limit_exceeded',
  'insufficient_quota',
  'server_is_overloaded',
  'slow_down',
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
