import { tokensOf } from './tokens.ts'
import { bodyFor, hashOf, otherModels as models, overlap, wordsOf, wrong } from './words.ts'

type Question = { [name: string]: unknown }
/** What is judged: its words, and the number of its letters. */
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
