import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import { filledText, list, object, oneOf, optional, refuse, required } from '../../check.ts'
import { type Choice, type Level, mostChoices, mostQuestions, type Question } from './questions.ts'

/** Whether a body is of the form with a `state` and named questions. */
export function hasState(body: JsonObject): boolean {
  if (body.input !== undefined && body.state !== undefined)
    refuse('state', 'missing beside `input`: they are two forms of the same', body.state)
  return body.state !== undefined || (body.input === undefined && isObject(body.questions))
}

/** The state and the named questions of a body in the words of the other form. Throws RouterError 400. */
export function readState({ state, questions }: JsonObject): { input: Json; questions: JsonObject[] } {
  const expected = 'an object of questions by their names beside `state`'
  const named = Object.entries(required(questions, 'questions', expected, object))
  if (named.length === 0 || named.length > mostQuestions)
    refuse('questions', `an object of 1 to ${mostQuestions} questions`, questions)
  return {
    input: inputOf(required(state, 'state', 'what is to be judged: a string, an object or an array', content)),
    questions: named.map(([name, question]) => readQuestion(name, object(question as Json, `questions.${name}`))),
  }
}

/** A text that is not empty, an object or an array. */
function content(value: Json, path: string): Json {
  if (typeof value === 'string') return filledText(value, path)
  return isObject(value) || Array.isArray(value) ? value : refuse(path, 'a string, an object or an array', value)
}

function inputOf(state: Json): Json {
  return typeof state === 'string' ? state : [{ role: 'user', content: [partOf(state)] }]
}

/** Anything as a part: the other form knows objects and lists of them. */
function partOf(value: Json): JsonObject {
  if (typeof value === 'string') return { type: 'input_text', text: value }
  const isData = isObject(value) || (Array.isArray(value) && value.length > 0 && value.every(isObject))
  return isData ? { type: 'input_json', data: value } : { type: 'input_text', text: JSON.stringify(value) }
}

function readQuestion(name: string, question: JsonObject): JsonObject {
  const path = `questions.${name}`
  const types = ['noul', 'choice', 'score'] as const
  const type = required(question.type, `${path}.type`, "'noul', 'choice' or 'score'", oneOf(types))
  const asked = required(question.instructions, `${path}.instructions`, 'what is asked', content)
  const at = `${path}.criteria`
  const instructions = typeof asked === 'string' ? asked : [partOf(asked)]
  if (type === 'choice') return { type, name, instructions, choices: readChoices(question.criteria, at) }
  if (type === 'score') return { type, name, instructions, levels: readLevels(question.criteria, at) }
  const criteria = optional(question.criteria, at, object)
  if (!criteria) return { type: 'predicate', name, instructions }
  return { type: 'predicate', name, instructions: [partOf(asked), { type: 'input_json', data: { criteria } }] }
}

function readChoices(value: Json | undefined, path: string): Choice[] {
  const criteria = Object.entries(required(value, path, 'an object of the options, each with what it means', object))
  if (criteria.length < 2 || criteria.length > mostChoices)
    refuse(path, `an object of 2 to ${mostChoices} options`, value)
  return criteria.map(([option, meaning]) => {
    return { value: filledText(option, path), ...(meaning !== null && { description: textOf(meaning as Json) }) }
  })
}

function readLevels(value: Json | undefined, path: string): Level[] {
  const levels = required(value, path, 'a list of levels, the lowest first', list)
  if (levels.length < 2 || levels.length > mostLevels) refuse(path, `a list of 2 to ${mostLevels} levels`, value)
  const labels = levels.map((level, index) => textOf(content(level, `${path}[${index}]`)))
  const repeated = labels.findIndex((label, index) => labels.indexOf(label) < index)
  if (repeated >= 0) refuse(`${path}[${repeated}]`, 'different from the others', levels[repeated])
  return labels.map((label) => ({ label }))
}

const mostLevels = 10

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The answers in the form of the named questions, by their names. */
export function namedAnswers(answers: readonly JsonObject[], questions: readonly Question[]): JsonObject {
  const named = answers.map((answer, index) => {
    const question = questions[index] as Question
    return [
      question.name ?? '',
      answer.type === 'refusal' ? { type: 'refusal' } : namedAnswer(answer, question),
    ] as const
  })
  return Object.fromEntries(named)
}

function namedAnswer(answer: JsonObject, question: Question): JsonObject {
  const { name: _, probability, probabilities, ...others } = answer
  if (question.type === 'predicate') return { ...others, type: 'noul', noul: probability }
  const rows = Array.isArray(probabilities) ? probabilities.filter(isObject) : []
  if (question.type === 'choice') {
    return { ...others, probabilities: Object.fromEntries(rows.map((row) => [String(row.value), row.probability])) }
  }
  return {
    ...others,
    score: positionOf(answer.score, rows),
    legend: Object.fromEntries(question.levels.map(({ label }, index) => [index, label])),
    probabilities: Object.fromEntries(rows.map((row, index) => [index, row.probability])),
  }
}

/** A score on the scale of the levels' places, from 0; a provider may number the levels in another way. */
function positionOf(score: Json | undefined, rows: readonly JsonObject[]): Json | undefined {
  if (rows.every(({ value }, index) => value === index)) return score
  return rows.reduce((sum, { probability }, index) => sum + Number(probability) * index, 0)
}
