import { errorBody } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { defined } from '../check.ts'
import type { ReplyFacts, StreamFacts, StreamWriter } from '../client-api.ts'
import { eventsInClientForm } from '../client-form.ts'
import { choosesFreely, readsReasoning, shownUsage, writeUsage } from './reply-members.ts'
import { ChunkEditor } from './stream-edit.ts'
import { ChunkWriter } from './stream-write.ts'
import { wantsLegacyCall } from './write.ts'

/** Writes one streamed reply as chat completion chunks; usage comes last, and only to a client that asked for it. */
export function openStream(request: NeutralRequest, { model, finishOf }: StreamFacts): StreamWriter {
  const { stream_options: options, usage } = request.origin.body
  const includeUsage =
    (isObject(options) && options.include_usage === true) || (isObject(usage) && usage.include === true)
  const reads = { readsReasoning: readsReasoning(request) }
  const chunks = new ChunkWriter({ model, legacy: wantsLegacyCall(request), ...reads })
  const inClientForm = eventsInClientForm(request)
  const editor = new ChunkEditor({ model, ending: { finishOf, free: choosesFreely(request) }, ...reads })
  return {
    events: (events) => chunks.write(inClientForm(events)),
    edit: (payload) => editor.edit(payload),
    repeatsText: true,
    heldIds: () => [...editor.held],
    end: (facts) => {
      const last = includeUsage || facts.router ? usageChunk(editor.last ?? chunks.base, editor.usage, facts) : ''
      return `${editor.end()}${last}data: [DONE]\n\n`
    },
    fail: (error) => `data: ${JSON.stringify(errorBody(error))}\n\n`,
  }
}

/** The provider's own usage where it reported any, else usage computed from the counts. */
function usageChunk(
  base: JsonObject,
  counted: JsonObject | undefined,
  { usage, costUsd, model, router }: ReplyFacts,
): string {
  const totals = counted ? shownUsage(counted, usage) : writeUsage(usage, undefined)
  const chunk = {
    ...base,
    model,
    choices: [],
    usage: { ...totals, ...defined({ cost: costUsd }) },
    ...defined({ router }),
  }
  return `data: ${JSON.stringify(chunk)}\n\n`
}
