import type { Json } from '../../src/core/json.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

// A small reader of the published service model: shapes, required members, enumerations, unions, lengths and patterns.

type Shape = {
  type: 'structure' | 'list' | 'map' | 'string' | 'blob' | 'boolean' | 'integer' | 'long' | 'float' | 'double'
  members?: { [name: string]: { shape: string; location?: string } }
  member?: { shape: string }
  key?: { shape: string }
  value?: { shape: string }
  required?: string[]
  enum?: string[]
  pattern?: string
  min?: number
  max?: number
  union?: boolean
  document?: boolean
}

const document = 'bedrock-runtime.service-2.json'

/** Why the published service model cannot be read here; undefined when it can. */
export const serviceModelMissing = specMissing(document)

const shapes = (publishedSpec(document)?.shapes ?? {}) as { [name: string]: Shape }

/** The violations of the published shape of this name in a value, with their paths. */
export function violations(value: Json | undefined, name: string, at = ''): string[] {
  const shape = shapes[name]
  if (!shape) return serviceModelMissing ? [] : [`${at}: no shape ${name}`]
  if (value === undefined || value === null) return [`${at}: is missing`]
  if (shape.document) return []
  return checks[shape.type](value, shape, at)
}

type Check = (value: Json, shape: Shape, at: string) => string[]

const checks: { [type in Shape['type']]: Check } = {
  structure(value, { members = {}, required = [], union }, at) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at}: is no object`]
    const names = Object.keys(value)
    const needed = required.filter((name) => members[name]?.location !== 'uri' && value[name] === undefined)
    return [
      ...needed.map((name) => `${at}: lacks ${name}`),
      ...(union && names.length !== 1 ? [`${at}: has ${names.join(' and ') || 'nothing'} where one must be`] : []),
      ...names.flatMap((name) => {
        const member = members[name]
        return member ? violations(value[name], member.shape, `${at}.${name}`) : [`${at}: does not know ${name}`]
      }),
    ]
  },
  list(value, shape, at) {
    if (!Array.isArray(value)) return [`${at}: is no list`]
    const items = value.flatMap((item, index) => violations(item, shape.member?.shape ?? '', `${at}[${index}]`))
    return [...bounds(value.length, shape, at), ...items]
  },
  map(value, shape, at) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at}: is no map`]
    const entries = Object.entries(value)
    return [
      ...bounds(entries.length, shape, at),
      ...entries.flatMap(([name, member]) => [
        ...violations(name, shape.key?.shape ?? '', `${at} key`),
        ...violations(member, shape.value?.shape ?? '', `${at}.${name}`),
      ]),
    ]
  },
  string(value, shape, at) {
    if (typeof value !== 'string') return [`${at}: is no text`]
    const { enum: words, pattern } = shape
    return [
      ...bounds(value.length, shape, at),
      ...(words && !words.includes(value) ? [`${at}: ${value} is none of ${words.join(', ')}`] : []),
      ...(pattern && !new RegExp(`^(?:${pattern})$`).test(value) ? [`${at}: ${value} is not ${pattern}`] : []),
    ]
  },
  blob: (value, _, at) =>
    typeof value === 'string' && /^[A-Za-z0-9+/]+=*$/.test(value) ? [] : [`${at}: is no base64`],
  boolean: (value, _, at) => (typeof value === 'boolean' ? [] : [`${at}: is no boolean`]),
  integer: whole,
  long: whole,
  float: number,
  double: number,
}

function whole(value: Json, shape: Shape, at: string): string[] {
  return Number.isInteger(value) ? bounds(value as number, shape, at) : [`${at}: is no whole number`]
}

function number(value: Json, shape: Shape, at: string): string[] {
  return typeof value === 'number' ? bounds(value, shape, at) : [`${at}: is no number`]
}

function bounds(size: number, { min = size, max = size }: Shape, at: string): string[] {
  return size < min || size > max ? [`${at}: ${size} is not between ${min} and ${max}`] : []
}
