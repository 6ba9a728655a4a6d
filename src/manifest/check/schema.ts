import type { ErrorObject } from 'ajv'
import { isObject } from '../../core/json.ts'
import type { Path } from '../read/position.ts'
import type { Source } from '../read/source.ts'
import { didYouMean } from './did-you-mean.ts'
import { named } from './named.ts'
import type { Problem } from './problem.ts'
import { type FileKind, validatorOf } from './validators.ts'

/** What a file's schema has against its value, each at the place in the file that has to be changed. */
export function checkSchema(source: Source, kind: FileKind, value: unknown = source.value): Problem[] {
  if (source.sound !== undefined && value === source.value) return []
  const accepts = validatorOf(kind)
  if (accepts(value)) return []
  return schemaProblems(source, accepts.errors, 'the file')
}

/** Each error of a schema at the place in the file that has to be changed; `whole` is the value that was checked. */
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

/** What to say about each kind of mistake; `member` is the name in the object that is wrong. */
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
    const expected = error.parentSchema?.patternErrorMessage ?? `a text that matches ${error.params.pattern}`
    return { message: `${name} must be ${expected}${butIs(error)}` }
  },
  minimum: (name, error) => ({ message: `${name} must be at least ${error.params.limit}${butIs(error)}` }),
  maximum: (name, error) => ({ message: `${name} must be at most ${error.params.limit}${butIs(error)}` }),
  minProperties: (name) => ({ message: `${name} must not be empty` }),
  minItems: (name) => ({ message: `${name} must not be empty` }),
  minLength: (name) => ({ message: `${name} must not be empty` }),
  maxProperties: (name) => ({ message: `${name} must be empty: this version of the router does not have it yet` }),
  maxItems: (name) => ({ message: `${name} must be empty: this version of the router does not have it yet` }),
}

const typeNames: { [type: string]: string } = {
  string: 'a text',
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
 * What stands there instead, unless it may be a secret: problems go to logs and to `/ready`. Nor is a whole file shown, which may be a
 * link to any other, nor what an address contains besides a host.
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

/** Authentication, headers, and what stands over them in the settings. */
const secretPlace = /(?:^|\/)(?:auth|headers|secret)(?:\/|$)/

/** Characters of a wrong value that a message repeats. */
const longestShown = 60

function shown(data: unknown): string {
  if (data === null || data === undefined) return 'nothing'
  if (Array.isArray(data)) return 'a list'
  if (typeof data === 'object') return 'an object'
  const text = JSON.stringify(data)
  return text.length > longestShown ? `${text.slice(0, longestShown)}…"` : text
}

function pathOf(pointer: string): Path {
  const steps = pointer.split('/').slice(1)
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
