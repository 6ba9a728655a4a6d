import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ModelEntry } from '../../core/models/model.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { type Check, fieldsOf, flag, integer, list, listOf, number, object, refuse, required, text } from '../check.ts'
import type { OperationApi, OperationFacts } from '../operation-api.ts'
import { choiceOf, completionEvents, completionUsage, requestedChoices, textsIn } from './completion-events.ts'
import { inputsIn, isTokens, maxTokensIn, textsIn as textsOf, tokensIn } from './embedding-input.ts'
import { jsonOf, readFields, tokensOfText, unreadableReply } from './shared.ts'

/** Legacy completions: a text goes on, or what is missing in its middle is filled in. */
export const completions: OperationApi = {
  operation: 'complete',
  json: true,
  needs: ['prompt'],
  read(body) {
    const json = jsonOf(body)
    const prompt = required(json.prompt, 'prompt', 'a string, or an array of strings or tokens', readPrompt)
    const fields: JsonObject = { prompt, ...fieldsOf<JsonObject>(json, optionalFields) }
    refuseContradictions(json, fields)
    return readFields('complete', json, { fields, stream: fields.stream === true })
  },
  wants: ({ stream }) => (stream ? 'events' : 'json'),
  maxUsage: (request, entry) => ({
    input: maxTokensIn(request.fields.prompt) + maxTokensIn(request.fields.suffix),
    output: lengthOf(request, entry) * choicesMade(request),
  }),
  texts: ({ fields }) => [...textsOf(fields.prompt), ...textsOf(fields.suffix)],
  count: () => ({}),
  estimate: ({ fields }, reply) => ({
    input: tokensIn(fields.prompt) + tokensIn(fields.suffix),
    output: tokensOfText(textsIn(reply)),
  }),
  check: (reply) => void choicesIn(reply),
  write,
  events: completionEvents,
}

const optionalFields = [
  ['suffix', text],
  ['echo', flag],
  ['n', integer(1, 128)],
  ['best_of', integer(1, 20)],
  ['logprobs', integer(0)],
  ['max_tokens', integer(0)],
  ['temperature', number(0)],
  ['top_p', number(0, 1)],
  ['frequency_penalty', number(-2, 2)],
  ['presence_penalty', number(-2, 2)],
  ['logit_bias', object],
  ['seed', integer()],
  ['stop', (value: Json, path: string) => (typeof value === 'string' ? value : listOf(text)(value, path))],
  ['stream', flag],
  ['stream_options', object],
] as const

/** The most prompts of one request. */
const maxPrompts = 2_048

const readPrompt: Check<Json> = (value, path) => {
  if (typeof value === 'string') return value
  const prompts = list(value, path)
  if (prompts.length === 0) return refuse(path, 'a list that is not empty', value)
  if (isTokens(prompts)) return prompts
  if (prompts.length > maxPrompts) refuse(path, `a list of at most ${maxPrompts} prompts`, value)
  return prompts.map((prompt, index) => {
    if (Array.isArray(prompt) && prompt.length > 0 && isTokens(prompt)) return prompt
    return text(prompt, `${path}[${index}]`)
  })
}

function refuseContradictions(body: JsonObject, { n = 1, best_of: best }: JsonObject): void {
  if (typeof best === 'number' && best < Number(n)) {
    throw new RouterError('invalid_request', `'best_of' must be at least 'n', not ${best}.`, { param: 'best_of' })
  }
  const other = ['max_completion_tokens', 'max_output_tokens'].find((name) => body[name] !== undefined)
  if (other === undefined) return
  const message = `'${other}' is not part of this API: limit the length with 'max_tokens'.`
  throw new RouterError('invalid_request', message, { param: other })
}

/** Returns the maximum number of tokens of each choice: models of this API stop after 16 where the request sets no limit. */
function lengthOf({ fields }: OperationRequest, entry: ModelEntry | undefined): number {
  if (typeof fields.max_tokens === 'number') return fields.max_tokens
  if (entry?.api === 'completion') return 16
  return entry?.max_output_tokens ?? entry?.context_window ?? unknownLength
}

const unknownLength = 16_384

/** Returns the number of choices that a provider generates, of which it may return only the best. */
function choicesMade(request: OperationRequest): number {
  const { best_of: best, prompt } = request.fields
  return Math.max(requestedChoices(request), typeof best === 'number' ? best * inputsIn(prompt) : 0)
}

function write(reply: JsonObject, facts: OperationFacts): JsonObject {
  const { choices: _, usage: __, model: ___, ...others } = reply
  return {
    id: `cmpl-${facts.id}`,
    created: facts.now,
    ...others,
    object: 'text_completion',
    model: facts.model,
    choices: choicesIn(reply).map((choice, index) => choiceOf(choice, index)),
    usage: completionUsage(facts),
  }
}

function choicesIn({ choices }: JsonObject): JsonObject[] {
  if (Array.isArray(choices) && choices.length > 0 && choices.every(isChoice)) return choices
  throw unreadableReply('no list of choices')
}

function isChoice(choice: Json): choice is JsonObject {
  return isObject(choice) && typeof choice.text === 'string'
}
