import { replyTo, type SimulatedReply } from './reply.ts'
import { readRequest, SimulatedError } from './request.ts'
import {
  bodyFor,
  hashOf,
  maxAnswers,
  otherModels as models,
  overlap,
  requireCount,
  tokensOf,
  wordsOf,
  wrong,
} from './words.ts'

/** Vectors of length 1, the sum of those of the words: texts with the same words are near. Throws SimulatedError. */
export function embeddingsOf(body: unknown): object {
  const { input, dimensions = usualDimensions, encoding_format: format } = bodyFor(models.embed, body)
  if (!Number.isInteger(dimensions) || Number(dimensions) < 1 || Number(dimensions) > maxDimensions)
    throw wrong('dimensions', `a whole number from 1 to ${maxDimensions}`)
  const texts = textsIn(input)
  const data = texts.map((text, index) => {
    const vector = vectorOf(wordsOf(text), Number(dimensions))
    return { object: 'embedding', index, embedding: format === 'base64' ? base64Of(vector) : vector }
  })
  const count = texts.reduce((sum, text) => sum + tokensOf(text).length, 0)
  return { object: 'list', data, model: models.embed, usage: { prompt_tokens: count, total_tokens: count } }
}

const usualDimensions = 256
const maxDimensions = 1_024

/** Returns each input as a text; ids of tokens are its words. */
function textsIn(input: unknown): string[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input) || input.length === 0) throw wrong('input', 'a string or an array that is not empty')
  if (typeof input[0] === 'number') return [input.join(' ')]
  requireCount(input.length, maxAnswers, 'input')
  return input.map((one) => (Array.isArray(one) ? one.join(' ') : String(one)))
}

function vectorOf(words: readonly string[], dimensions: number): number[] {
  const sum = new Array<number>(dimensions).fill(0)
  for (const word of words.length > 0 ? words : ['']) {
    let state = hashOf(word) || 1
    for (let at = 0; at < dimensions; at++) {
      state = next(state)
      sum[at] = (sum[at] ?? 0) + state / 2 ** 31 - 1
    }
  }
  const length = Math.hypot(...sum) || 1
  return sum.map((value) => Math.fround(value / length))
}

/** The next of a sequence of numbers (xorshift). */
function next(state: number): number {
  let mixed = state ^ (state << 13)
  mixed ^= mixed >>> 17
  return (mixed ^ (mixed << 5)) >>> 0
}

function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}

type Question = { [name: string]: unknown }
/** Input that is judged: its words, and a hash of its letters. */
type Judged = { words: ReadonlySet<string>; hash: number }

/** Answers with probabilities: what has words of the input is likelier, and the rest is as its letters are. Throws SimulatedError. */
export function decisionsOf(body: unknown): object {
  const { input, questions } = bodyFor(models.decide, body)
  if (input === undefined) throw wrong('input', 'something to judge')
  if (!Array.isArray(questions) || questions.length === 0) throw wrong('questions', 'an array that is not empty')
  const text = textOf(input)
  const judged = { words: new Set(wordsOf(text)), hash: hashOf(`${text} `) }
  const answers = questions.map((question, index) => answerTo(Object(question), judged, `questions[${index}]`))
  const read = tokensOf(text + textOf(questions)).length
  const usage = {
    input_tokens: read,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: answers.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: read + answers.length,
  }
  return { answers, model: models.decide, usage }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function answerTo(question: Question, judged: Judged, path: string): object {
  const { type, name = null, choices, levels } = question
  const asked = textOf(question.instructions ?? '')
  if (type === 'predicate') return { type, name, probability: likely([asked, ''], judged, asked)[0] }
  if (type === 'choice' && Array.isArray(choices)) {
    const values = choices.map((choice) => Object(choice).value)
    const found = likely(choices.map(textOf), judged, asked)
    const best = found.indexOf(Math.max(...found))
    const probabilities = values.map((value, index) => ({ value, probability: found[index] }))
    return { type, name, choice: values[best], confidence: found[best], probabilities }
  }
  if (type === 'score' && Array.isArray(levels)) {
    const found = likely(levels.map(textOf), judged, asked)
    const probabilities = levels.map((level, value) => ({
      label: Object(level).label,
      value,
      probability: found[value],
    }))
    const score = found.reduce((sum, probability, value) => sum + probability * value, 0)
    return { type, name, score: rounded(score), confidence: Math.max(...found), probabilities }
  }
  throw wrong(`${path}.type`, 'predicate, choice or score, with what can be answered')
}

/** The probabilities of several texts, which add up to 1. */
function likely(texts: readonly string[], { words, hash }: Judged, asked: string): number[] {
  const before = hashOf(`${asked} `, hash)
  const weights = texts.map((text) => {
    return Math.exp(4 * overlap(new Set(wordsOf(text)), words) + hashOf(text, before) / 2 ** 32)
  })
  const sum = weights.reduce((total, weight) => total + weight, 0)
  const found = weights.map((weight) => rounded(weight / sum))
  const others = found.slice(1).reduce((total, one) => total + one, 0)
  return [rounded(1 - others), ...found.slice(1)]
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}

/** Documents by the part of the query's words that they have, the best first. Throws SimulatedError. */
export function rankingOf(body: unknown): object {
  const { query, documents, top_n: most, return_documents: withText } = bodyFor(models.rerank, body)
  if (typeof query !== 'string' || query === '') throw wrong('query', 'a string that is not empty')
  if (!Array.isArray(documents) || documents.length === 0) throw wrong('documents', 'an array that is not empty')
  const texts = documents.map((one) =>
    typeof one === 'string' ? one : String(Object(one).text ?? JSON.stringify(one)),
  )
  requireCount(documents.length, maxAnswers, 'documents')
  const words = new Set(wordsOf(query))
  const found = texts.map((text, index) => ({
    index,
    relevance_score: overlap(words, new Set(wordsOf(text))),
    ...(withText === true && { document: { text } }),
  }))
  found.sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
  const count = [query, ...texts].reduce((sum, text) => sum + tokensOf(text).length, 0)
  const results = typeof most === 'number' ? found.slice(0, most) : found
  const id = `rerank-${hashOf(JSON.stringify([query, texts])).toString(16)}`
  return { id, model: models.rerank, results, usage: { prompt_tokens: count, total_tokens: count } }
}

/** The words that put a text into a category. */
const wordsByCategory: { readonly [category: string]: readonly string[] } = {
  harassment: ['idiot', 'loser'],
  'harassment/threatening': ['beware'],
  hate: ['hate'],
  'hate/threatening': [],
  illicit: ['steal', 'forge'],
  'illicit/violent': ['bomb'],
  'self-harm': ['suicide'],
  'self-harm/intent': [],
  'self-harm/instructions': [],
  sexual: ['porn'],
  'sexual/minors': [],
  violence: ['kill', 'murder'],
  'violence/graphic': ['gore'],
}

/** Answers moderations: an input is flagged by its words alone. Throws SimulatedError. */
export function moderationsOf(body: unknown): object {
  const { input } = bodyFor(models.moderate, body)
  const results = inputsIn(input).map((text) => resultFor(new Set(wordsOf(text))))
  return { id: `modr-${hashOf(JSON.stringify(input)).toString(16)}`, model: models.moderate, results }
}

/** Maximum number of texts: each has a verdict in every category. */
const maxTexts = 256

/** Texts are judged one by one, parts of one input together. */
function inputsIn(input: unknown): string[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input) || input.length === 0) throw wrong('input', 'a string or an array that is not empty')
  requireCount(input.length, maxTexts, 'input')
  if (input.every((one) => typeof one === 'string')) return input
  return [input.map((part) => String(Object(part).text ?? '')).join('\n')]
}

function resultFor(words: ReadonlySet<string>): object {
  const found = Object.entries(wordsByCategory).map(([category, bad]) => {
    return [category, bad.some((word) => words.has(word))] as const
  })
  return {
    flagged: found.some(([, isFound]) => isFound),
    categories: Object.fromEntries(found),
    category_scores: Object.fromEntries(found.map(([category, isFound]) => [category, isFound ? 0.98 : 0.0001])),
    category_applied_input_types: Object.fromEntries(found.map(([category]) => [category, ['text']])),
  }
}

/** Completes as the chat model `echo` replies: one body, or the chunks of a stream. `created` is Unix seconds. Throws SimulatedError. */
export function completionsOf(body: unknown, created: number): { whole: object } | { chunks: object[] } {
  const { model, prompt, stream, stream_options: options, n = 1 } = Object(body)
  if (model !== models.complete && model !== 'echo') {
    throw new SimulatedError(404, `The model \`${model}\` does not exist.`, { param: 'model', code: 'model_not_found' })
  }
  requireCount((Array.isArray(prompt) ? prompt.length : 1) * n, maxAnswers, 'n')
  const replies = repliesTo(Object(body))
  const choices = replies.flatMap(({ text, finish }, place) =>
    Array.from({ length: n }, (_, index) => ({ index: place * n + index, text, finish_reason: finish })),
  )
  const usage = usageOf(replies, n)
  const head = { id: replies[0]?.id.replace('chatcmpl', 'cmpl'), object: 'text_completion', created, model }
  if (stream !== true) {
    const whole = choices.map((choice) => ({ ...choice, text: choice.text.join(''), logprobs: null }))
    return { whole: { ...head, choices: whole, usage } }
  }
  const chunk = (...one: object[]) => ({ ...head, choices: one })
  const chunks = choices.flatMap(({ index, text, finish_reason }) => [
    ...text.map((piece) => chunk({ index, text: piece, logprobs: null, finish_reason: null })),
    chunk({ index, text: '', logprobs: null, finish_reason }),
  ])
  return { chunks: Object(options).include_usage === true ? [...chunks, { ...chunk(), usage }] : chunks }
}

/** A reply to each prompt, with the prompt before it where that is asked for. */
function repliesTo({ prompt, max_tokens = 16, stop, echo }: { [name: string]: unknown }): SimulatedReply[] {
  const prompts = Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt : [prompt]
  return prompts.map((one) => {
    if (typeof one !== 'string' && !Array.isArray(one))
      throw wrong('prompt', 'a string, or an array of strings or tokens')
    const messages = [{ role: 'user', content: String(one) }]
    const reply = replyTo(readRequest({ model: 'echo', messages, max_tokens, ...(stop !== null && { stop }) }))
    return echo === true ? { ...reply, text: [String(one), ...reply.text] } : reply
  })
}

function usageOf(replies: readonly SimulatedReply[], n: number): object {
  const prompted = replies.reduce((sum, { usage }) => sum + usage.prompt, 0)
  const written = replies.reduce((sum, { usage }) => sum + usage.completion * n, 0)
  return { prompt_tokens: prompted, completion_tokens: written, total_tokens: prompted + written }
}
