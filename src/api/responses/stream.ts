import { catalogue, type RouterError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { Finish } from '../../core/reply.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { ReplyFacts, StreamFacts, StreamWriter } from '../client-api.ts'
import { writeEvent } from '../sse.ts'
import { editReply } from './edit.ts'
import { endingOf } from './finish.ts'
import { writeUsage } from './output.ts'
import type { Emit } from './stream-message.ts'
import { ItemWriter } from './stream-write.ts'
import { responseIdOf, responseObject, wantsSources } from './write.ts'

/** Writes one streamed response: numbered, named events in this API's order, the whole response in the last one. */
export function openStream(request: NeutralRequest, { model, id }: StreamFacts): StreamWriter {
  const { body } = request.origin
  const responseId = responseIdOf(id)
  let sequence = 0
  let text = ''
  let finish: Finish = 'stop'
  let response: JsonObject | undefined
  let native: JsonObject | undefined
  const nativeItems: JsonObject[] = []
  const emit: Emit = (type, members) => {
    const rest = typeof members === 'string' ? members : JSON.stringify(members).slice(1, -1)
    text += `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},${rest}}\n\n`
  }
  const items = new ItemWriter(responseId, emit, wantsSources(body))
  const said = (): string => {
    const all = text
    text = ''
    return all
  }
  const begin = (created: number): JsonObject => {
    response = responseObject(body, { id: responseId, model, created })
    for (const stage of ['created', 'in_progress']) emit(`response.${stage}`, { response })
    return response
  }
  const whole = (facts: ReplyFacts): JsonObject => {
    if (native) return editReply(native.response as JsonObject, facts)
    const usage = writeUsage(facts.usage, facts.costUsd)
    return { ...(response ?? begin(now())), ...endingOf(finish), output: [...nativeItems, ...items.output], usage }
  }
  return {
    events(events) {
      for (const event of events) {
        if (event.type === 'start') begin(event.created)
        else if (event.type === 'finish') finish = event.finish
      }
      items.take(events)
      return said()
    },
    frame(payload) {
      const number = typeof payload.sequence_number === 'number' ? payload.sequence_number : sequence
      sequence = number + 1
      const numbered = { ...payload, sequence_number: number }
      if (payload.type === 'response.output_item.done' && isObject(payload.item)) nativeItems.push(payload.item)
      if (!isObject(payload.response)) return writeEvent(numbered)
      if (isTerminal(payload)) {
        native = numbered
        return ''
      }
      response = { ...payload.response, model }
      return writeEvent({ ...numbered, response })
    },
    end(facts) {
      const last = whole(facts)
      if (native) return writeEvent({ ...native, type: `response.${last.status}`, response: last })
      emit(`response.${last.status}`, { response: last })
      return said()
    },
    fail(error) {
      const begun = response ?? begin(now())
      emit('response.failed', { response: failed(begun, [...nativeItems, ...items.finished], error) })
      return said()
    },
    reply: whole,
  }
}

function isTerminal({ type }: JsonObject): boolean {
  return type === 'response.completed' || type === 'response.incomplete'
}

function now(): number {
  return Math.floor(Date.now() / 1_000)
}

function failed(response: JsonObject, output: JsonObject[], error: RouterError): JsonObject {
  return { ...response, status: 'failed', output, error: { code: codeOf(error), message: error.message } }
}

/** Clients act on these codes: the provider's own word where it is one of this API, else what it comes to. */
function codeOf({ code, providerCode }: RouterError): string {
  if (providerCode !== undefined && codes.has(providerCode)) return providerCode
  if (code === 'context_length') return 'context_length_exceeded'
  if (code === 'quota_exhausted' || code === 'budget_exhausted') return 'insufficient_quota'
  const { status } = catalogue[code]
  if (status === 429) return 'rate_limit_exceeded'
  return status === 400 ? 'invalid_prompt' : 'server_error'
}

/** The codes of failed responses: those that OpenAI publishes, and those that it sends. */
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
