import { catalogue, type RouterError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { Finish } from '../../core/reply.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { ReplyFacts, StreamWriter } from '../face.ts'
import { writeUsage } from './output.ts'
import { Items } from './stream-items.ts'
import { editReply, endingOf, responseIdOf, responseObject } from './write.ts'

/** Writes one streamed response: numbered, named events in this API's order, the whole response in the last one. */
export function openStream(request: NeutralRequest, { model, id }: { model: string; id: string }): StreamWriter {
  const responseId = responseIdOf(id)
  let sequence = 0
  let text = ''
  let finish: Finish = 'stop'
  let response: JsonObject = {}
  let native: JsonObject | undefined
  const emit = (type: string, members: JsonObject): void => {
    text += `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...members })}\n\n`
  }
  const items = new Items(responseId, emit)
  const said = (): string => {
    const all = text
    text = ''
    return all
  }
  return {
    events(events) {
      for (const event of events) {
        if (event.type === 'start') {
          response = responseObject(request.origin.body, { id: responseId, model, created: event.created })
          for (const stage of ['created', 'in_progress']) emit(`response.${stage}`, { response })
        } else if (event.type === 'finish') finish = event.finish
        items.take(event)
      }
      return said()
    },
    frame(payload) {
      sequence = typeof payload.sequence_number === 'number' ? payload.sequence_number + 1 : sequence
      if (isTerminal(payload)) {
        native = payload
        return ''
      }
      return named(isObject(payload.response) ? { ...payload, response: { ...payload.response, model } } : payload)
    },
    end(facts) {
      if (native) return named({ ...native, response: editReply(native.response as JsonObject, facts) })
      const ending = endingOf(finish)
      const whole = { ...response, ...ending, output: items.output, usage: writeUsage(facts.usage, facts.costUsd) }
      emit(`response.${ending.status}`, { response: whole })
      return said()
    },
    fail(error) {
      emit('response.failed', { response: failed(response, items.output, responseId, model, error) })
      return said()
    },
    reply: (facts) => writtenReply(native, response, finish, items.output, facts),
  }
}

function isTerminal({ type, response }: JsonObject): boolean {
  return (type === 'response.completed' || type === 'response.incomplete') && isObject(response)
}

function named(payload: JsonObject): string {
  return `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`
}

function failed(response: JsonObject, output: JsonObject[], id: string, model: string, error: RouterError): JsonObject {
  const known =
    response.id === undefined ? responseObject({}, { id, model, created: Math.floor(Date.now() / 1_000) }) : response
  const code = catalogue[error.code].status === 429 ? 'rate_limit_exceeded' : 'server_error'
  return { ...known, status: 'failed', output: output.filter(Boolean), error: { code, message: error.message } }
}

/** The response as the last event told it, for keeping. */
function writtenReply(
  native: JsonObject | undefined,
  response: JsonObject,
  finish: Finish,
  output: JsonObject[],
  facts: ReplyFacts,
): JsonObject {
  if (native) return editReply(native.response as JsonObject, facts)
  return { ...response, ...endingOf(finish), output, usage: writeUsage(facts.usage, facts.costUsd) }
}
