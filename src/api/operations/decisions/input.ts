import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import { type Check, filledText, list, object, oneOf, optional, refuse, required, text } from '../../check.ts'
import { dataOf, isAddress } from '../../media-address.ts'

/** The input of decisions: a text, or messages, calls and their outputs. */
export const decisionInput: Check<Json> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  if (!Array.isArray(value)) return refuse(path, 'a string, or an array of messages, calls and their outputs', value)
  if (value.length === 0) return refuse(path, 'a list that is not empty', value)
  const calls = new Set<string>()
  for (const [index, item] of value.entries()) checkItem(object(item, `${path}[${index}]`), `${path}[${index}]`, calls)
  return value
}

/** Checks the instructions of a question: a text, or parts. */
const instructions: Check<Json> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  return filledParts(value, path, ['input_text', 'input_image', 'input_json'])
}

const itemTypes = [
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
] as const

/** An output must follow the call that it answers, which has the same kind. */
function checkItem(item: JsonObject, path: string, calls: Set<string>): void {
  const type = optional(item.type, `${path}.type`, oneOf(itemTypes)) ?? 'message'
  if (type === 'message') {
    checkMessage(item, path)
    return
  }
  const id = required(item.call_id, `${path}.call_id`, 'the id of the call', filledText)
  if (type === 'function_call' || type === 'custom_tool_call') {
    calls.add(`${type} ${id}`)
    required(item.name, `${path}.name`, 'the name of the tool', filledText)
    const name = type === 'function_call' ? 'arguments' : 'input'
    required(item[name], `${path}.${name}`, 'a string', text)
    return
  }
  if (!calls.has(`${type.replace(/_output$/, '')} ${id}`)) refuse(`${path}.call_id`, 'the id of a call before it', id)
  checkContent(item.output, `${path}.output`, ['input_text', 'input_image'])
}

const partsByRole: { readonly [role: string]: readonly string[] } = {
  user: ['input_text', 'input_image', 'input_json'],
  developer: ['input_text'],
  system: ['input_text'],
  assistant: ['output_text', 'refusal'],
}

function checkMessage(item: JsonObject, path: string): void {
  const roles = ['user', 'developer', 'system', 'assistant'] as const
  const role = required(item.role, `${path}.role`, "'user', 'developer', 'system' or 'assistant'", oneOf(roles))
  checkContent(item.content, `${path}.content`, partsByRole[role] ?? [])
}

function checkContent(value: Json | undefined, path: string, types: readonly string[]): void {
  required(value, path, 'a string or an array of parts', (given) =>
    typeof given === 'string' ? given : filledParts(given, path, types),
  )
}

function filledParts(value: Json, path: string, types: readonly string[]): Json[] {
  const parts = list(value, path)
  if (parts.length === 0) refuse(path, 'a list that is not empty', value)
  for (const [index, part] of parts.entries()) checkPart(part, `${path}[${index}]`, types)
  return parts
}

function checkPart(part: Json, path: string, types: readonly string[]): void {
  const { type: given, ...members } = object(part, path)
  const type = required(given, `${path}.type`, `one of ${types.join(', ')}`, oneOf(types))
  const [name = 'text', check] = memberOf[type] ?? []
  required(members[name], `${path}.${name}`, 'what the part is', check ?? text)
}

/** The member that a part consists of. */
const memberOf: { readonly [type: string]: readonly [name: string, check: Check<unknown>] } = {
  input_text: ['text', text],
  output_text: ['text', text],
  refusal: ['refusal', text],
  input_json: ['data', jsonData],
  input_image: ['image_url', imageAddress],
}

function jsonData(value: Json, path: string): Json {
  const fits = isObject(value) || (Array.isArray(value) && value.every(isObject))
  return fits ? value : refuse(path, 'an object or an array of objects', value)
}

function imageAddress(value: Json, path: string): Json {
  const url = filledText(value, path)
  if (url.slice(0, 5).toLowerCase() === 'data:') dataOf(url, path)
  else if (!isAddress(url)) refuse(path, 'a data URL or an http(s) URL', value)
  return url
}

/** Finds the images in an input and its questions. */
export function imageParts({ input, questions }: JsonObject): JsonObject[] {
  const items = [input, questions].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []))
  const parts = items.flatMap(({ content, output, instructions }) => [content, output, instructions].flat())
  return parts.filter((part) => isObject(part) && part.type === 'input_image') as JsonObject[]
}

/** Checks whether a body is of the form with a `state` and named questions. */
export function hasState(body: JsonObject): boolean {
  if (body.input !== undefined && body.state !== undefined)
    refuse('state', 'absent when `input` is given: they are two forms of the same thing', body.state)
  return body.state !== undefined || (body.input === undefined && isObject(body.questions))
}

/** The state and the named questions of a body in the words of the other form. Throws RouterError 400. */
export function readState({ state, questions }: JsonObject): { input: Json; questions: JsonObject[] } {
  const expected = 'an object of questions by name when `state` is given'
  const named = Object.entries(required(questions, 'questions', expected, object))
  if (named.length === 0 || named.length > maxQuestions)
    refuse('questions', `an object of 1 to ${maxQuestions} questions`, questions)
  return {
    input: inputOf(required(state, 'state', 'the state to judge: a string, an object or an array', content)),
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

/** Returns any value as a part: the other form knows objects and lists of them. */
function partOf(value: Json): JsonObject {
  if (typeof value === 'string') return { type: 'input_text', text: value }
  const isData = isObject(value) || (Array.isArray(value) && value.length > 0 && value.every(isObject))
  return isData ? { type: 'input_json', data: value } : { type: 'input_text', text: JSON.stringify(value) }
}

function readQuestion(name: string, question: JsonObject): JsonObject {
  const path = `questions.${name}`
  const types = ['noul', 'choice', 'score'] as const
  const type = required(question.type, `${path}.type`, "'noul', 'choice' or 'score'", oneOf(types))
  const asked = required(question.instructions, `${path}.instructions`, 'the question', content)
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
  if (criteria.length < 2 || criteria.length > maxChoices)
    refuse(path, `an object of 2 to ${maxChoices} options`, value)
  return criteria.map(([option, meaning]) => {
    return { value: filledText(option, path), ...(meaning !== null && { description: textOf(meaning as Json) }) }
  })
}

function readLevels(value: Json | undefined, path: string): Level[] {
  const levels = required(value, path, 'a list of levels, the lowest first', list)
  if (levels.length < 2 || levels.length > maxLevels) refuse(path, `a list of 2 to ${maxLevels} levels`, value)
  const labels = levels.map((level, index) => textOf(content(level, `${path}[${index}]`)))
  const repeated = labels.findIndex((label, index) => labels.indexOf(label) < index)
  if (repeated >= 0) refuse(`${path}[${repeated}]`, 'different from the others', levels[repeated])
  return labels.map((label) => ({ label }))
}

const maxLevels = 10

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

/** A question in the words of this API; a predicate asks how likely a statement is true. */
export type Question = { name?: string; instructions: Json } & (
  | { type: 'predicate' }
  | { type: 'choice'; choices: Choice[] }
  | { type: 'score'; levels: Level[] }
)

/** One of the values that can be chosen: a text and a flag of the same letters are two. */
type Choice = { value: string | boolean; description?: string }

/** One of the ordered levels of a score. */
type Level = { label: string; description?: string }

/** The most questions of one request. */
const maxQuestions = 400
/** The most choices of one question. */
const maxChoices = 255

/** The questions of a request, checked. */
export const questionList: Check<Json> = (value, path) => {
  if (!Array.isArray(value)) refuse(path, 'an array of questions when `input` is given', value)
  const questions = list(value, path)
  if (questions.length === 0 || questions.length > maxQuestions)
    refuse(path, `a list of 1 to ${maxQuestions} questions`, value)
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
  required(question.instructions, `${path}.instructions`, 'the question', instructions)
  if (type === 'choice') checkAnswers(question.choices, `${path}.choices`, { name: 'value', most: maxChoices })
  if (type === 'score') checkAnswers(question.levels, `${path}.levels`, { name: 'label', most: maxChoices })
}

/** Checks the possible answers: at least two, each with a `name` of its own. */
function checkAnswers(
  value: Json | undefined,
  path: string,
  { name, most: max }: { name: string; most: number },
): void {
  const answers = required(value, path, `a list of 2 to ${max}`, list)
  if (answers.length < 2 || answers.length > max) refuse(path, `a list of 2 to ${max}`, value)
  const seen = new Set<Json>()
  for (const [index, answer] of answers.entries()) {
    const at = `${path}[${index}].${name}`
    const given = required(object(answer, `${path}[${index}]`)[name], at, 'the possible answers', (one) =>
      name === 'value' && typeof one === 'boolean' ? one : filledText(one, at),
    )
    if (seen.has(given)) refuse(at, 'different from the others', given)
    seen.add(given)
    optional((answer as JsonObject).description, `${path}[${index}].description`, text)
  }
}

/** Returns the labels of the possible answers, all different: of a text and a flag with the same letters, the flag's states what it is. */
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
