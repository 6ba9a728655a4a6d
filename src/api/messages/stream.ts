import { type ErrorCode, errorBody, type RouterError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { StreamFacts, StreamWriter } from '../client-api.ts'
import { writeEvent } from '../sse.ts'
import { editStop, isCall } from './finish.ts'
import { BlockWriter } from './stream-write.ts'
import { deltaUsage } from './write.ts'

/** Writes one streamed message: named events in this API's order, one block open at a time. */
export function openStream(_request: NeutralRequest, { model, id, finishOf }: StreamFacts): StreamWriter {
  const blocks = new BlockWriter(model)
  let lastDelta: JsonObject | undefined
  let native = false
  let called = false
  return {
    events: (events) => blocks.write(events),
    frame(payload) {
      native = true
      // The last counts wait for the cost, and the terminator for both.
      if (payload.type === 'message_delta') lastDelta = payload
      if (payload.type === 'content_block_start') called ||= isCall(payload.content_block)
      if (payload.type === 'message_delta' || payload.type === 'message_stop') return ''
      if (payload.type !== 'message_start' || !isObject(payload.message)) return writeEvent(payload)
      return writeEvent({ ...payload, message: { ...payload.message, model } })
    },
    end({ usage, costUsd }) {
      const cost = costUsd === undefined ? {} : { cost: costUsd }
      const { delta, ...given }: JsonObject = lastDelta ?? { type: 'message_delta' }
      const translated = { container: null, ...blocks.ending }
      const ending: JsonObject = native ? { ...(isObject(delta) && delta) } : translated
      const counted = isObject(given.usage) ? given.usage : deltaUsage(usage, undefined)
      const last = {
        ...given,
        delta: { ...ending, ...editStop(ending.stop_reason, called, finishOf) },
        usage: { ...counted, ...cost },
      }
      return writeEvent(last) + writeEvent({ type: 'message_stop' })
    },
    fail: (error) => writeEvent(writeError(error, id)),
  }
}

/** An error in this API's shape, with what every error of this router says beside it; `id` names the request. */
export function writeError(error: RouterError, id?: string): JsonObject {
  const body = errorBody(error)
  const type = error.providerCode === overloaded ? overloaded : ownTypes[error.code]
  if (type !== undefined) Object.assign(body.error as JsonObject, { type })
  return { type: 'error', ...body, request_id: id ?? null }
}

const overloaded = 'overloaded_error'
/** Types that only this API has. */
const ownTypes: { readonly [code in ErrorCode]?: string } = { provider_timeout: 'timeout_error', stopping: overloaded }
