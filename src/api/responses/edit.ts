import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ClientApi, ReplyFacts } from '../client-api.ts'
import { withEditedNodes } from '../edit-nodes.ts'
import { isForeignSignature, lossWith } from '../foreign-signature.ts'
import { withoutNulls } from '../nulls.ts'
import { bodyWithoutFields } from '../remove-fields.ts'
import { withoutRouterFields } from '../router-fields.ts'
import { ownMembers } from './fields.ts'
import { editEnding } from './finish.ts'
import { standardPart } from './part-names.ts'
import { removals } from './removals.ts'
import { writeUsage } from './usage.ts'
import { completeResponse } from './write.ts'

/**
 * The client's body for a provider of this format: its model id, without dropped fields, and without items that this
 * router wrote into it for other providers. Everything else, known or not, stays unchanged.
 */
export const editRequest: ClientApi['editRequest'] = (body, { model, stream, dropped, files, length }) => {
  const standard = withEditedNodes(withoutNulls(withoutRouterFields(body), ownMembers), removals.lists, (node) => {
    return standardPart(node, files)
  })
  const edited: JsonObject = { ...bodyWithoutFields(standard, dropped, removals), model }
  const limit = length ?? edited.max_output_tokens
  if (typeof limit === 'number') edited.max_output_tokens = Math.max(limit, leastLimit)
  if (stream) edited.stream = true
  if (Array.isArray(edited.input)) edited.input = edited.input.filter((item) => !isForeign(item))
  return edited
}

/** The provider's response, complete, with the model that served, the cost, and an ending that the API defines. */
export function editReply(body: JsonObject, { model, usage, costUsd, finishOf, request }: ReplyFacts): JsonObject {
  const ended: JsonObject = { status: 'completed', ...body, ...editEnding(body, finishOf) }
  const edited: JsonObject = { ...completeResponse(ended, request?.origin.body ?? {}), model }
  if (usage.corrected) return { ...edited, usage: writeUsage(usage, costUsd) }
  return isObject(body.usage) && costUsd !== undefined ? { ...edited, usage: { ...body.usage, cost: costUsd } } : edited
}

/** What no server of this format makes shorter, although the API counts from one. */
const leastLimit = 16

/** Reasoning and blocks of other providers, and a limit that is raised. */
export function editLosses({ input, max_output_tokens: limit }: JsonObject): string[] {
  const foreign = (Array.isArray(input) ? input : []).filter(isForeign)
  return [
    ...foreign.flatMap((item) => lossWith(item.encrypted_content)),
    ...(typeof limit === 'number' && limit < leastLimit ? ['max_output_tokens'] : []),
  ]
}

function isForeign(item: Json): item is JsonObject {
  return isObject(item) && isForeignSignature(item.encrypted_content)
}
