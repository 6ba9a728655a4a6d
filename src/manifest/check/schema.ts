import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { compileFunction } from 'node:vm'
import type { ErrorObject } from 'ajv'
import type { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject, type JsonObject } from '../../core/json.ts'
import { type FileCache, noCache } from '../read/file-cache.ts'
import type { Path } from '../read/position.ts'
import type { Source } from '../read/source.ts'
import { didYouMean } from './did-you-mean.ts'
import { named, type Problem } from './problem.ts'

/** Checks a value against its file's schema, and returns each problem at the place in the file that has to be changed. */
export function checkSchema(source: Source, kind: FileKind, value: unknown = source.value): Problem[] {
  if (source.sound !== undefined && value === source.value) return []
  const accepts = validatorOf(kind)
  if (accepts(value)) return []
  return schemaProblems(source, accepts.errors, 'the file')
}

/** Returns each error of a schema at the place in the file that has to be changed; `whole` is the value that was checked. */
export function schemaProblems(
  source: Source,
  errors: readonly ErrorObject[] | null | undefined,
  whole: string,
): Problem[] {
  return (errors ?? [])
    .filter(({ keyword }) => keyword !== 'if')
    .map((error) =>
      problemOf(source, isFromEnvironment(source, error) ? { ...error, data: hiddenValue } : error, whole),
    )
}

type Saying = { message: string; member?: string }

function problemOf(source: Source, error: ErrorObject, whole: string): Problem {
  const path = pathOf(error.instancePath)
  const name = path.length > 0 ? `\`${named(path)}\`` : whole
  const said: Saying = sayings[error.keyword]?.(name, error) ?? { message: `${name} ${error.message}` }
  const at = said.member === undefined ? path : [...path, said.member]
  return source.problem(at, said.message, said.member === undefined ? 'value' : 'name')
}

/** Messages for each kind of mistake; `member` is the name in the object that is wrong. */
const sayings: { [keyword: string]: (name: string, error: ErrorObject) => Saying } = {
  additionalProperties: (_, { params, parentSchema }) => {
    const member = params.additionalProperty as string
    const known = isObject(parentSchema?.properties) ? Object.keys(parentSchema.properties) : []
    const choice = didYouMean(member, known) || `; known here: ${known.join(', ')}`
    return { message: `unknown field \`${member}\`${choice}`, member }
  },
  required: (name, { params }) => ({ message: `${name} needs \`${params.missingProperty}\`` }),
  type: (name, error) => {
    const expected = error.parentSchema?.patternErrorMessage ?? types(error.params.type)
    return { message: `${name} must be ${expected}${butIs(error)}` }
  },
  enum: (name, error) => {
    const { params, data } = error
    const allowed = (params.allowedValues as unknown[]).map(String)
    const hint = typeof data === 'string' ? didYouMean(data, allowed) : ''
    if (!hint) return { message: `${name} must be one of ${allowed.join(', ')}${butIs(error)}` }
    return { message: `${name} must not be ${shown(data)}${hint}` }
  },
  pattern: (name, error) => {
    const expected = error.parentSchema?.patternErrorMessage ?? `a string that matches ${error.params.pattern}`
    return { message: `${name} must be ${expected}${butIs(error)}` }
  },
  minimum: (name, error) => ({ message: `${name} must be at least ${error.params.limit}${butIs(error)}` }),
  maximum: (name, error) => ({ message: `${name} must be at most ${error.params.limit}${butIs(error)}` }),
  minProperties: (name) => ({ message: `${name} must not be empty` }),
  minItems: (name) => ({ message: `${name} must not be empty` }),
  minLength: (name) => ({ message: `${name} must not be empty` }),
  maxProperties: (name) => ({ message: `${name} must be empty: this version of the router does not support it yet` }),
  maxItems: (name) => ({ message: `${name} must be empty: this version of the router does not support it yet` }),
}

const typeNames: { [type: string]: string } = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'null',
}

function types(type: string | string[]): string {
  return [type]
    .flat()
    .map((name) => typeNames[name] ?? name)
    .join(' or ')
}

/**
 * Describes the value found instead, unless it may be a secret: problems go to logs and to `/ready`. Nor is a whole file shown, which may
 * be a link to any other, nor what an address contains besides a host.
 */
function butIs({ data, parentSchema, instancePath }: ErrorObject): string {
  const isSecret = parentSchema?.['x-secret'] || secretPlace.test(instancePath)
  const isHidden = isSecret || instancePath === '' || data === hiddenValue
  if (isHidden || (typeof data === 'string' && /[@?]/.test(data))) return ''
  return `, not ${shown(data)}`
}

/** A value that the environment gave: the file has only its name. */
const hiddenValue = Symbol('hidden')

function isFromEnvironment(source: Source, { instancePath }: ErrorObject): boolean {
  const written = pathOf(instancePath).reduce<unknown>(
    (at, step) => (at as { [step: string]: unknown } | undefined)?.[step],
    source.value,
  )
  return typeof written === 'string' && written.includes('${')
}

/** Authentication, headers, and the settings that override them. */
const secretPlace = /(?:^|\/)(?:auth|headers|secret)(?:\/|$)/

/** Characters of a wrong value that a message repeats. */
const maxShownLength = 60

function shown(data: unknown): string {
  if (data === null || data === undefined) return 'nothing'
  if (Array.isArray(data)) return 'a list'
  if (typeof data === 'object') return 'an object'
  const text = JSON.stringify(data)
  return text.length > maxShownLength ? `${text.slice(0, maxShownLength)}…"` : text
}

function pathOf(pointer: string): Path {
  const steps = pointer.split('/').slice(1)
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The kinds of files, each with its published JSON schema in `schemas/`. */
export type FileKind = 'provider' | 'dialect' | 'catalog' | 'config'

/** Validator that checks whether a value has the form of its kind; if it has not, `errors` contains the reasons. */
type Validator = { (value: unknown): unknown; errors?: ErrorObject[] | null }

/** A published schema as JSON. */
export function readSchema(kind: FileKind): JsonObject {
  return JSON.parse(readFileSync(join(import.meta.dirname, `../../../schemas/${kind}.schema.json`), 'utf8'))
}

/**
 * Validators by kind, whose compiled schemas are kept in the cache. Schemas are compiled when a file of their kind is first checked,
 * unless an earlier process has done so: at most starts no file has changed.
 */
export function createValidators(cache: FileCache): (kind: FileKind) => Validator {
  const made = new Map<FileKind, Validator>()
  return (kind) => {
    const validator = made.get(kind) ?? keptValidator(kind, cache) ?? compiledValidator(kind, cache)
    made.set(kind, validator)
    return validator
  }
}

const require = createRequire(import.meta.url)

let ajv: Ajv2020 | undefined

let ofProcess = { cache: noCache, validatorOf: createValidators(noCache) }

/** The validator of a kind. */
function validatorOf(kind: FileKind): Validator {
  return ofProcess.validatorOf(kind)
}

/** Sets the cache in which this process keeps compiled schemas for the next one. */
export function keepValidatorsIn(cache: FileCache): void {
  if (cache !== ofProcess.cache) ofProcess = { cache, validatorOf: createValidators(cache) }
}

function keptValidator(kind: FileKind, cache: FileCache): Validator | undefined {
  const code = cache.read(aboutOf(kind))
  if (typeof code !== 'string') return undefined
  const module: { exports: unknown } = { exports: {} }
  compileFunction(code, ['module', 'exports', 'require'])(module, module.exports, require)
  return module.exports as Validator
}

function compiledValidator(kind: FileKind, cache: FileCache): Validator {
  ajv ??= compiler()
  const compiled = ajv.getSchema(`${kind}.schema.json`)
  if (!compiled) throw new Error(`there is no schema for ${kind} files`)
  if (cache !== noCache) {
    const { default: codeOf } = require('ajv/dist/standalone') as typeof import('ajv/dist/standalone/index.js')
    cache.write(aboutOf(kind), codeOf(ajv, compiled))
  }
  return compiled
}

function compiler(): Ajv2020 {
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  // The schemas are our own, and a test holds them against the meta-schema: no need to do so at every start.
  const checks = { allErrors: true, verbose: true, allowUnionTypes: true, meta: false, validateSchema: false }
  // Compiling costs more than checking all files: the code is made once, in its simplest form.
  const made = new Ajv2020({ ...checks, inlineRefs: false, code: { source: true, optimize: false } })
  made.addVocabulary(['patternErrorMessage', 'x-restart', 'x-secret'])
  for (const name of ['catalog', 'provider', 'dialect', 'config'] as const) made.addSchema(readSchema(name))
  return made
}

function aboutOf(kind: FileKind): string[] {
  return ['validator', kind]
}
