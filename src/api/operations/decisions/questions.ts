import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import { type Check, filledText, list, object, oneOf, optional, refuse, required, text } from '../../check.ts'
import { instructions } from './input.ts'

/** A question in the words of this API; a predicate asks how likely a statement is true. */
export type Question = { name?: string; instructions: Json } & (
  | { type: 'predicate' }
  | { type: 'choice'; choices: Choice[] }
  | { type: 'score'; levels: Level[] }
)

/** One of the values that can be chosen: a text and a flag of the same letters are two. */
export type Choice = { value: string | boolean; description?: string }

/** One of the ordered levels of a score. */
export type Level = { label: string; description?: string }

/** The most questions of one request. */
export const mostQuestions = 400
/** The most choices of one question. */
export const mostChoices = 255

/** The questions of a request, checked. */
export const questionList: Check<Json> = (value, path) => {
  if (!Array.isArray(value)) refuse(path, 'an array of questions beside `input`', value)
  const questions = list(value, path)
  if (questions.length === 0 || questions.length > mostQuestions)
    refuse(path, `a list of 1 to ${mostQuestions} questions`, value)
  for (const [index, question] of questions.entries()) checkQuestion(question, `${path}[${index}]`)
  return questions
}

/** The questions of a request that has been read. */
export function questionsOf({ questions }: JsonObject): readonly Question[] {
  return questions as unknown as Question[]
}

function checkQuestion(value: Json, path: string): void {
  const question = object(value, path)
  const types = ['predicate', 'choice', 'score'] as const
  const type = required(question.type, `${path}.type`, "'predicate', 'choice' or 'score'", oneOf(types))
  optional(question.name, `${path}.name`, text)
  required(question.instructions, `${path}.instructions`, 'what is asked', instructions)
  if (type === 'choice') checkAnswers(question.choices, `${path}.choices`, { name: 'value', most: mostChoices })
  if (type === 'score') checkAnswers(question.levels, `${path}.levels`, { name: 'label', most: mostChoices })
}

/** What can be answered: at least two, each with a `name` of its own. */
function checkAnswers(value: Json | undefined, path: string, { name, most }: { name: string; most: number }): void {
  const answers = required(value, path, `a list of 2 to ${most}`, list)
  if (answers.length < 2 || answers.length > most) refuse(path, `a list of 2 to ${most}`, value)
  const seen = new Set<Json>()
  for (const [index, answer] of answers.entries()) {
    const at = `${path}[${index}].${name}`
    const given = required(object(answer, `${path}[${index}]`)[name], at, 'what can be answered', (one) =>
      name === 'value' && typeof one === 'boolean' ? one : filledText(one, at),
    )
    if (seen.has(given)) refuse(at, 'different from the others', given)
    seen.add(given)
    optional((answer as JsonObject).description, `${path}[${index}].description`, text)
  }
}

/** The words of what can be answered, all different: of a text and a flag of the same letters the flag says what it is. */
export function labelsOf(question: Question): string[] {
  if (question.type === 'predicate') return ['true', 'false']
  if (question.type === 'score') return question.levels.map(({ label }) => label)
  const texts = new Set(question.choices.flatMap(({ value }) => (typeof value === 'string' ? [value] : [])))
  return question.choices.map(({ value }) => {
    if (typeof value === 'string') return value
    let label = String(value)
    while (texts.has(label)) label += ' (boolean)'
    return label
  })
}

/** The answers of a reply, one for each question. */
export function answersIn({ answers }: JsonObject): JsonObject[] | undefined {
  return Array.isArray(answers) && answers.every(isObject) ? answers : undefined
}
