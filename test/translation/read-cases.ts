import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'

/** One translation: what a client asks for, what the provider is sent, how it replies, and what the client gets. See README.md. */
export type Case = {
  name: string
  client: 'chat' | 'messages' | 'responses'
  model: string
  request: JsonObject
  path?: string
  sent?: JsonObject
  sent_exactly?: JsonObject
  not_sent: readonly string[]
  sent_headers?: { readonly [name: string]: string }
  dropped: readonly string[]
  reply?: JsonObject
  events?: readonly Json[]
  answer?: JsonObject
}

/** The cases of a file, and catalog entries that it replaces, by the full names of their models. */
export type CaseFile = { file: string; models: { readonly [id: string]: JsonObject }; cases: readonly Case[] }

const folder = join(import.meta.dirname, 'cases')

/** Reads all case files. A mistake throws an error that names the file and the case. */
export function readCaseFiles(): CaseFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
  return names.sort().map((name) => readCases(name, readFileSync(join(folder, name), 'utf8')))
}

/** Reads the text of a case file. */
export function readCases(file: string, text: string): CaseFile {
  const content = parsed(file, text)
  if (!isObject(content)) throw new Error(`${file}: must be a mapping with 'cases'`)
  checkMembers(file, content, { shared: isAny, models: isMapping, cases: isList }, ['cases'])
  const { models = {}, cases } = content as { models?: CaseFile['models']; cases: unknown[] }
  const names = new Set<string>()
  const read = cases.map((one, index) => readCase(file, one, index))
  for (const { name } of read) {
    if (names.has(name)) throw new Error(`${file}, case "${name}": there are two cases of this name`)
    names.add(name)
  }
  return { file, models, cases: read }
}

function parsed(file: string, text: string): unknown {
  try {
    return parse(text, { merge: true })
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`)
  }
}

type Check = { (value: unknown): boolean; form?: string }

function check(form: string, holds: (value: unknown) => boolean): Check {
  return Object.assign(holds, { form })
}

const isAny = check('anything', () => true)
const isText = check('a text', (value) => typeof value === 'string' && value !== '')
const isMapping = check('a mapping', isObject)
const isList = check('a list', (value) => Array.isArray(value) && value.length > 0)
const isTexts = check(
  'a list of texts',
  (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
)
const isClient = check('chat, messages or responses', (value) =>
  ['chat', 'messages', 'responses'].includes(String(value)),
)

const members: { readonly [member in keyof Required<Case>]: Check } = {
  name: isText,
  client: isClient,
  model: check('provider/model', (value) => typeof value === 'string' && /^[^/]+\/./.test(value)),
  request: isMapping,
  path: isText,
  sent: isMapping,
  sent_exactly: isMapping,
  not_sent: isTexts,
  sent_headers: isMapping,
  dropped: isTexts,
  reply: isMapping,
  events: isList,
  answer: isMapping,
}

function readCase(file: string, value: unknown, index: number): Case {
  const name = isObject(value) && typeof value.name === 'string' ? `"${value.name}"` : `number ${index + 1}`
  const where = `${file}, case ${name}`
  if (!isObject(value)) throw new Error(`${where}: must be a mapping`)
  checkMembers(where, value, members, ['name', 'client', 'model', 'request'])
  const isAnswered = 'reply' in value || 'events' in value
  if ('answer' in value !== isAnswered) throw new Error(`${where}: 'answer' goes with 'reply' or 'events'`)
  const expectations = ['path', 'sent', 'sent_exactly', 'not_sent', 'sent_headers', 'dropped', 'answer']
  if (!expectations.some((member) => member in value)) throw new Error(`${where}: expects nothing`)
  return { not_sent: [], dropped: [], ...value } as unknown as Case
}

function checkMembers(where: string, value: JsonObject, checks: { [member: string]: Check }, required: string[]): void {
  for (const member of required) if (!(member in value)) throw new Error(`${where}: '${member}' is missing`)
  for (const [member, content] of Object.entries(value)) {
    const check = Object.hasOwn(checks, member) ? checks[member] : undefined
    if (!check) throw new Error(`${where}: there is no member '${member}', only ${Object.keys(checks).join(', ')}`)
    if (!check(content)) throw new Error(`${where}: '${member}' must be ${check.form}`)
  }
}
