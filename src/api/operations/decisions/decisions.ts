import type { JsonObject } from '../../../core/json.ts'
import { cachedTokens } from '../../../core/usage.ts'
import { fieldsOf, filledText, object, required } from '../../check.ts'
import type { OperationApi, OperationFacts } from '../../operation-api.ts'
import { jsonOf, readFields, tokensOfText, unreadableReply, usageBlock } from '../shared.ts'
import { byChat } from './by-chat.ts'
import {
  answersIn,
  decisionInput,
  hasState,
  imageParts,
  labelsOf,
  namedAnswers,
  type Question,
  questionList,
  questionsOf,
  readState,
} from './input.ts'

/**
 * Decisions: something to judge and typed questions in, typed answers with their probabilities out. Bodies have one of two forms:
 * `input` and a list of questions, or `state` and questions by name; the reply has the form of the body.
 */
export const decisions: OperationApi = {
  operation: 'decide',
  json: true,
  read(body) {
    const json = jsonOf(body)
    const { state: _, ...rest } = json
    const others = fieldsOf<JsonObject>(json, optionalFields)
    if (hasState(json)) {
      const request = readFields('decide', rest, { fields: { ...readState(json), ...others }, stream: false })
      return { ...request, isNamed: true }
    }
    const input = required(json.input, 'input', 'a string, or an array of messages', decisionInput)
    const questions = required(json.questions, 'questions', 'an array of questions', questionList)
    return readFields('decide', json, { fields: { input, questions, ...others }, stream: false })
  },
  wants: () => 'json',
  maxUsage: ({ fields }, entry) => ({
    input: bytesOf(fields) + imagesIn(fields) * Math.min(entry?.context_window ?? maxTokensOfImage, maxTokensOfImage),
    output: maxOutput(questionsOf(fields)),
  }),
  texts: ({ fields }) => [textOf(fields)],
  count: () => ({}),
  estimate: ({ fields }, reply) => ({
    input: tokensOfText(textOf(fields)) + imagesIn(fields) * usualTokensOfImage,
    ...(reply && { output: tokensOfText(JSON.stringify(reply.answers ?? [])) }),
  }),
  check: (reply, { fields }) => void checkedAnswers(reply, questionsOf(fields)),
  write,
  byChat,
}

const optionalFields = [
  ['prompt_cache_key', filledText],
  ['prompt_cache_options', object],
  ['safety_identifier', filledText],
] as const

/** Tokens of an image: the most of any model, and those of a usual one. */
const maxTokensOfImage = 49_152
const usualTokensOfImage = 1_024

/** Bounds the tokens of the text, with what providers put around a question. */
function bytesOf(fields: JsonObject): number {
  return Buffer.byteLength(textOf(fields)) + (1 + questionsOf(fields).length) * bytesOfTemplate
}

const bytesOfTemplate = 512

/** Answers are numbers, one for each value. */
function maxOutput(questions: readonly Question[]): number {
  return questions.reduce((sum, question) => sum + tokensOfAnswer + labelsOf(question).length * tokensOfValue, 0)
}

const tokensOfAnswer = 64
const tokensOfValue = 32

/** Returns what is read as text: without the images, which are counted on their own. */
function textOf(fields: JsonObject): string {
  const images = new Set<unknown>(imageParts(fields))
  return JSON.stringify([fields.input, fields.questions], (_, value) => (images.has(value) ? null : value))
}

function imagesIn(fields: JsonObject): number {
  return imageParts(fields).length
}

function write(reply: JsonObject, facts: OperationFacts): JsonObject {
  const { request } = facts
  const questions = questionsOf(request.fields)
  const answers = checkedAnswers(reply, questions)
  const { answers: _, model: __, usage: ___, ...others } = reply
  return {
    model: facts.model,
    answers: request.isNamed ? namedAnswers(answers, questions) : answers,
    ...others,
    usage: usageBlock(facts, (prompt, completion) => tokenCounts(facts, prompt, completion)),
  }
}

function tokenCounts({ usage, reported }: OperationFacts, input: number, counted: number): JsonObject {
  const output = counted || writtenTokens(reported)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: cachedTokens(usage),
      cache_write_tokens: (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  }
}

/** Returns the output tokens where they are reported but not billed. */
function writtenTokens(reported: OperationFacts['reported']): number {
  const output = (reported as JsonObject | undefined)?.output_tokens
  return typeof output === 'number' ? output : 0
}

/** The answers in the order of the questions, each of the type that was asked for or a refusal. */
function checkedAnswers(reply: JsonObject, questions: readonly Question[]): JsonObject[] {
  const answers = answersIn(reply)
  if (answers?.length !== questions.length)
    throw unreadableReply(`${answers?.length ?? 'no list of'} answers for ${questions.length} questions`)
  const isEmulated = reply.emulated === true
  return questions.map((question, index) => {
    const answer = answers[index] as JsonObject
    const name = question.name ?? null
    if (answer.type === 'refusal') return { ...answer, type: 'refusal', name }
    if (!isAnswer(answer, question, isEmulated)) throw unreadableReply(`no answer to question ${index + 1}`)
    return { ...answer, name }
  })
}

/** Checks whether an answer contains what was asked for: emulated ones have no probabilities. */
function isAnswer(answer: JsonObject, question: Question, isEmulated: boolean): boolean {
  if (answer.type !== question.type) return false
  if (question.type === 'predicate') return isEmulated || isProbability(answer.probability)
  if (question.type === 'choice') {
    const isOne = question.choices.some(({ value }) => value === answer.choice)
    return isOne && (isEmulated || isProbability(answer.confidence))
  }
  return Number.isFinite(answer.score) && (isEmulated || isProbability(answer.confidence))
}

function isProbability(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= 1
}
