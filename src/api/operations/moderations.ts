import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { type Check, filledText, list, refuse, required } from '../check.ts'
import type { OperationApi, OperationFacts } from '../operation-api.ts'
import { contentPart, imagesIn, maxTokensIn, textsIn, tokensIn } from './embedding-input.ts'
import { jsonOf, promptCounts, readFields, unreadableReply, usageBlock } from './shared.ts'

/** Moderations: texts or images in, categories of harm out. */
export const moderations: OperationApi = {
  operation: 'moderate',
  json: true,
  needs: ['input'],
  read(body) {
    const json = jsonOf(body)
    const input = required(json.input, 'input', 'a string, a list of strings, or a list of parts', readInput)
    return readFields('moderate', json, { fields: { input }, stream: false })
  },
  wants: () => 'json',
  maxUsage({ fields }, entry) {
    const contents = contentsOf(fields.input)
    return { input: maxTokensIn(contents) + imagesIn(contents) * (entry?.context_window ?? maxTokensOfImage) }
  },
  texts: ({ fields }) => textsIn(contentsOf(fields.input)),
  count: () => ({}),
  estimate: ({ fields }) => ({ input: tokensIn(contentsOf(fields.input)) }),
  check,
  write,
}

/** Limit for models that do not state how much they can read. */
const maxTokensOfImage = 32_768

const readInput: Check<Json> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  const items = list(value, path)
  if (items.length === 0) refuse(path, 'a list that is not empty', value)
  const isParts = isObject(items[0])
  return items.map((item, index) => (isParts ? contentPart : filledText)(item, `${path}[${index}]`))
}

/** Parts are one content. */
function contentsOf(input: Json | undefined): Json {
  return Array.isArray(input) && isObject(input[0]) ? [{ content: input }] : (input ?? [])
}

function check({ results }: JsonObject): void {
  if (!Array.isArray(results) || results.length === 0 || !results.every(isVerdict)) {
    throw unreadableReply('no list of results')
  }
}

function write(reply: JsonObject, facts: OperationFacts): JsonObject {
  check(reply)
  const { model: _, usage: __, ...others } = reply
  return { id: facts.id, ...others, model: facts.model, usage: usageBlock(facts, promptCounts) }
}

function isVerdict(result: Json): boolean {
  return isObject(result) && typeof result.flagged === 'boolean' && isObject(result.categories)
}
