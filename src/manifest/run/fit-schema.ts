import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { jsonLength } from '../../core/json-pieces.ts'

/** The subset of JSON Schema that a provider takes. */
export type SchemaLimit = {
  /** True where every function has parameters, if only none. */
  always?: true
  /** False where the schema itself must be a plain object: no `anyOf`, `oneOf` or `allOf` at the top. */
  root_union?: false
  /** False where nothing may stand beside `$ref`: the definition is put in its place. */
  ref_siblings?: false
  /** False where no `allOf` is taken: its schemas become one. */
  all_of?: false
  /** True where every schema has a type, and none beside alternatives. */
  typed?: true
  /** False where all items of a list have one schema. */
  tuples?: false
  /** False where `const` is unknown: an `enum` of one value says the same. */
  consts?: false
  /** True where every list needs `items`. */
  array_items?: true
  /** True where the values of an `enum` are texts, none of them empty. */
  enum_texts?: true
  /** Keywords that are refused: the description states their rules instead. */
  refused?: readonly string[]
  /** Values of `format` that are taken. */
  formats?: readonly string[]
  /** Requirements for a strict schema; false where no schema is strict. Other schemas are sent without `strict`. */
  strict?:
    | false
    | {
        all_required?: true
        closed?: true
        refused?: readonly string[]
        max_depth?: number
        max_properties?: number
        /** True where all tools of a request are strict, or none. */
        uniform?: true
      }
}

/** A schema that the provider takes; `lost` where it is less strict than the given one. */
export type Fitted = { schema: JsonObject; lost: boolean }

/** Bound of the work for one schema: clients write them. */
const maxDepth = 100
/** Characters that definitions in the places of references may add to a request. Prompts are bounded with room for as much. */
export const maxInlined = 16_384

type Work = {
  limit: SchemaLimit
  root: JsonObject
  lost: boolean
  headroom: Headroom
  lengths: Map<JsonObject, number>
}

/** Characters that definitions may still add: all schemas of a request share them. */
export type Headroom = { left: number }

/** Returns a schema as a provider takes it; the same object when nothing has to change. */
export function fitSchema(schema: JsonObject, limit: SchemaLimit, headroom: Headroom = { left: maxInlined }): Fitted {
  const work: Work = { limit, root: schema, lost: false, headroom, lengths: new Map() }
  const plain = limit.root_union === false ? withoutRootUnion(schema, work) : schema
  return { schema: fitNode(plain, work, top), lost: work.lost }
}

/** Checks whether a schema can be strict at a provider. */
export function canBeStrict(schema: JsonObject, { strict = {} }: SchemaLimit): boolean {
  if (strict === false) return false
  const { all_required, closed, refused = [], max_depth = maxDepth, max_properties = Infinity } = strict
  let count = 0
  // Only objects with properties are levels: lists, alternatives and definitions are not.
  const holds = (node: Json | undefined, level: number, depth: number): boolean => {
    if (!isObject(node)) return true
    if (depth > maxDepth || refused.some((keyword) => Object.hasOwn(node, keyword))) return false
    const { properties, required, additionalProperties } = node
    const below = isObject(properties) ? level + 1 : level
    if (below > max_depth) return false
    if (isObject(properties)) {
      const names = Object.keys(properties)
      count += names.length
      if (count > max_properties) return false
      const needed = new Set(Array.isArray(required) ? required : [])
      if (all_required && !names.every((name) => needed.has(name))) return false
      if (closed && additionalProperties !== false) return false
    } else if (closed && node.type === 'object' && additionalProperties !== false) return false
    return childrenOf(node).every((child) => holds(child, below, depth + 1))
  }
  return holds(schema, 0, 0)
}

const namedSchemas = ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']
const listedSchemas = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const singleSchemas = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames']

function childrenOf(node: JsonObject): (Json | undefined)[] {
  const named = namedSchemas.flatMap((name) => (isObject(node[name]) ? Object.values(node[name]) : []))
  const listed = [...listedSchemas, 'items'].flatMap((name) =>
    Array.isArray(node[name]) ? (node[name] as Json[]) : [],
  )
  const single = singleSchemas.flatMap((name) => (isObject(node[name]) ? [node[name]] : []))
  return [...named, ...listed, ...single]
}

/** The place of a node: its depth, and the definitions that it is inside of. */
type Place = { depth: number; refs: readonly string[] }

const top: Place = { depth: 0, refs: [] }

function fitNode(node: JsonObject, work: Work, { depth, refs }: Place): JsonObject {
  if (depth > maxDepth) return node
  const inlined = withoutRefSiblings(node, work, refs)
  if (inlined) return fitNode(inlined.schema, work, { depth: depth + 1, refs: [...refs, inlined.ref] })
  if (work.limit.all_of === false && Array.isArray(node.allOf)) {
    const { schema, added } = withoutAllOf(node, work, refs)
    return fitNode(schema, work, { depth: depth + 1, refs: [...refs, ...added] })
  }
  const own = withinKeywords(withTextEnum(withItems(withoutConst(withoutTuple(node, work), work), work), work), work)
  const typed = work.limit.typed ? withType(own) : own
  return withFittedChildren(typed, work, { depth: depth + 1, refs })
}

function withFittedChildren(node: JsonObject, work: Work, place: Place): JsonObject {
  let changed = node
  const put = (name: string, value: Json) => {
    if (value !== node[name]) changed = { ...changed, [name]: value }
  }
  const fitted = (child: Json) => (isObject(child) ? fitNode(child, work, place) : child)
  for (const name of namedSchemas) {
    const schemas = node[name]
    if (!isObject(schemas)) continue
    const made = Object.keys(schemas).map((key) => [key, fitted(schemas[key] as Json)] as const)
    if (made.some(([key, child]) => child !== schemas[key])) put(name, Object.fromEntries(made))
  }
  for (const name of [...listedSchemas, 'items']) {
    const schemas = node[name]
    if (!Array.isArray(schemas)) continue
    const made = schemas.map(fitted)
    if (made.some((child, index) => child !== schemas[index])) put(name, made)
  }
  for (const name of singleSchemas) if (isObject(node[name])) put(name, fitted(node[name]))
  return changed
}

/** Returns the node with its definition in the place of `$ref`, where something stands beside that. */
function withoutRefSiblings(
  node: JsonObject,
  work: Work,
  refs: readonly string[],
): { schema: JsonObject; ref: string } | undefined {
  const { $ref: ref, ...others } = node
  if (work.limit.ref_siblings !== false || typeof ref !== 'string' || Object.keys(others).length === 0) return undefined
  const definition = definitionOf(ref, work.root)
  // A definition that contains itself can only be referred to.
  const isBare = !definition || refs.includes(ref) || !hasRoom(definition, work)
  return { schema: isBare ? { $ref: ref } : { ...definition, ...others }, ref }
}

/** Takes the room for one more copy of a definition; returns false where there is none left. */
function hasRoom(definition: JsonObject, work: Work): boolean {
  const length = work.lengths.get(definition) ?? jsonLength(definition)
  work.lengths.set(definition, length)
  if (length > work.headroom.left) return false
  work.headroom.left -= length
  return true
}

function definitionOf(ref: string, root: JsonObject): JsonObject | undefined {
  if (!ref.startsWith('#/')) return undefined
  let at: Json | undefined = root
  for (const step of ref.slice(2).split('/')) {
    const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return isObject(at) ? at : undefined
}

/** A step of a pointer; one that is no encoding stands for itself. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

/** The schemas of `allOf` and what stands beside it as one; of two values for a keyword the description states the other. */
function withoutAllOf(
  { allOf, ...own }: JsonObject,
  work: Work,
  refs: readonly string[],
): { schema: JsonObject; added: string[] } {
  const added: string[] = []
  const members = (allOf as Json[]).filter(isObject).map((member) => {
    const { $ref: ref, ...others } = member
    if (typeof ref !== 'string') return member
    const found = refs.includes(ref) ? undefined : definitionOf(ref, work.root)
    const definition = found && hasRoom(found, work) ? found : undefined
    if (!definition) work.lost = true
    added.push(ref)
    return { ...definition, ...others }
  })
  const merged: JsonObject = Object.create(null)
  const properties: JsonObject = Object.create(null)
  const required = new Set<Json>()
  const others: string[] = []
  for (const member of [...members, own]) {
    for (const [name, value] of Object.entries(member)) {
      const known = merged[name]
      if (name === 'properties' && isObject(value)) Object.assign(properties, value)
      else if (name === 'required' && Array.isArray(value)) for (const one of value) required.add(one)
      else {
        const isOther = known !== undefined && name !== 'description' && JSON.stringify(known) !== JSON.stringify(value)
        if (isOther) others.push(`${name}: ${ruleText(known)}`)
        merged[name] = value as Json
      }
    }
  }
  if (Object.keys(properties).length > 0) merged.properties = properties
  if (required.size > 0) merged.required = [...required]
  if (others.length === 0) return { schema: merged, added }
  work.lost = true
  return { schema: { ...merged, description: described(merged, others.join(', ')) }, added }
}

/** Alternatives at the top become one object with the members of all; the description states what is no longer binding. */
function withoutRootUnion(schema: JsonObject, work: Work): JsonObject {
  const unions = ['anyOf', 'oneOf', 'allOf'].filter((name) => Array.isArray(schema[name]))
  if (unions.length === 0) return schema
  work.lost = true
  const left: JsonObject = { ...schema }
  const properties: JsonObject = Object.create(null)
  const required = new Set(Array.isArray(schema.required) ? schema.required : [])
  for (const name of unions) {
    const branches = (schema[name] as Json[]).filter(isObject).map((branch) => resolved(branch, schema))
    delete left[name]
    for (const branch of branches) if (isObject(branch.properties)) Object.assign(properties, branch.properties)
    const demanded = branches.map(({ required: list }) => new Set(Array.isArray(list) ? list : []))
    const [first = new Set<Json>(), ...others] = demanded
    const common =
      name === 'allOf'
        ? demanded.flatMap((names) => [...names])
        : [...first].filter((one) => others.every((names) => names.has(one)))
    for (const one of common) required.add(one)
  }
  const rules = unions.map((name) => `${name}: ${ruleText(schema[name])}`).join(', ')
  return {
    ...left,
    type: 'object',
    properties: { ...properties, ...(isObject(schema.properties) && schema.properties) },
    ...(required.size > 0 && { required: [...required] }),
    description: described(schema, rules),
  }
}

function resolved(branch: JsonObject, root: JsonObject): JsonObject {
  const definition = typeof branch.$ref === 'string' ? definitionOf(branch.$ref, root) : undefined
  return definition ? { ...definition, ...branch } : branch
}

/** Characters of rules that a description states. */
const maxRules = 2_000

/** A rule as a text; one that is too long for a description is only hinted at. */
function ruleText(rule: Json | undefined): string {
  return jsonLength(rule) > maxRules ? '…' : JSON.stringify(rule)
}

function described({ description }: JsonObject, rules: string): string {
  const before = typeof description === 'string' && description !== '' ? `${description} ` : ''
  return `${before}(${rules.length > maxRules ? `${rules.slice(0, maxRules)}…` : rules})`
}

/** Refused keywords and formats are stated in the description. */
function withinKeywords(node: JsonObject, work: Work): JsonObject {
  const { refused, formats } = work.limit
  if (!refused && !formats) return node
  const isRefused = (name: string) =>
    refused?.includes(name) || (name === 'format' && formats !== undefined && !formats.includes(String(node.format)))
  const gone = Object.keys(node).filter(isRefused)
  if (gone.length === 0) return node
  work.lost = true
  const left = Object.fromEntries(Object.entries(node).filter(([name]) => !gone.includes(name))) as JsonObject
  return {
    ...left,
    description: described(node, gone.map((name) => `${name}: ${ruleText(node[name])}`).join(', ')),
  }
}

/** A list whose items have schemas by position gets one schema for all: any of them. */
function withoutTuple(node: JsonObject, work: Work): JsonObject {
  if (work.limit.tuples !== false) return node
  const positions = Array.isArray(node.prefixItems)
    ? node.prefixItems
    : Array.isArray(node.items)
      ? node.items
      : undefined
  if (!positions) return node
  work.lost = true
  const { prefixItems: _positions, items: _items, ...others } = node
  return { ...others, items: positions.length === 1 ? (positions[0] as Json) : { anyOf: positions } }
}

function withoutConst(node: JsonObject, { limit }: Work): JsonObject {
  if (limit.consts !== false || node.const === undefined) return node
  const { const: value, ...others } = node
  return { ...others, enum: [value] }
}

function withItems(node: JsonObject, { limit }: Work): JsonObject {
  return limit.array_items && node.type === 'array' && node.items === undefined ? { ...node, items: {} } : node
}

/** An `enum` of texts, or the description states its values. */
function withTextEnum(node: JsonObject, work: Work): JsonObject {
  const { enum: values, ...others } = node
  if (!work.limit.enum_texts || !Array.isArray(values)) return node
  const isFilled = (value: Json) => typeof value === 'string' && value !== ''
  if (values.every(isFilled)) return node
  work.lost = true
  if (values.every((value) => typeof value === 'string')) return { ...others, enum: values.filter(isFilled) }
  return { ...others, description: described(node, `enum: ${ruleText(values)}`) }
}

/** A node with a type, or with alternatives that have one each. */
function withType(node: JsonObject): JsonObject {
  if (node.$ref !== undefined) return node
  const union = ['anyOf', 'oneOf'].find((name) => Array.isArray(node[name]))
  if (union === undefined) return node.type === undefined ? { ...node, type: typeOf(node) } : node
  if (node.type === undefined) return node
  const { type, ...others } = node
  const branches = (node[union] as Json[]).map((branch) => {
    return isObject(branch) && branch.type === undefined && branch.$ref === undefined ? { type, ...branch } : branch
  })
  return { ...others, [union]: branches }
}

function typeOf({ properties, items, enum: values, const: constant, additionalProperties }: JsonObject): string {
  if (properties !== undefined || additionalProperties !== undefined) return 'object'
  if (items !== undefined) return 'array'
  const sample = constant ?? (Array.isArray(values) ? values[0] : undefined)
  if (typeof sample === 'number' || typeof sample === 'boolean') return typeof sample
  return 'string'
}
