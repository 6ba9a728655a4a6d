import { isObject, type Json, type JsonObject } from '../../core/json.ts'

type DroppedMember = 'tools.strict' | 'tools.parameters'

/**
 * The schema of a tool's parameters, whether it binds, and the name of the member that is dropped from the tool. `lost` is the former
 * name of `dropped`, for mappings that still read it.
 */
type ToolSchema = { schema: unknown; strict?: true; dropped?: DroppedMember; lost?: DroppedMember }

/**
 * The parameters of a tool as the schema of an object. Those of a strict tool are narrowed to a schema that binds, where
 * the provider takes such schemas and no object is open.
 */
export function toolSchema(tool?: Json, takesStrict = false): ToolSchema | undefined {
  if (!isObject(tool)) return undefined
  const schema: JsonObject = { properties: {}, ...(isObject(tool.parameters) && tool.parameters), type: 'object' }
  if (!tool.strict) return { schema }
  const narrow = takesStrict ? narrowSchema(schema) : undefined
  if (narrow === undefined || narrow.open) return { schema, ...dropping('tools.strict') }
  return { schema: narrow.schema, strict: true, ...(narrow.narrowed && dropping('tools.parameters')) }
}

function dropping(name: DroppedMember): Pick<ToolSchema, 'dropped' | 'lost'> {
  return { dropped: name, lost: name }
}

/** The subset of JSON Schema that a provider accepts. */
type NarrowOptions = {
  /** Keywords that are refused: their rules are stated in the description instead. */
  refused?: readonly string[]
  /** Values of `format` that are taken. */
  formats?: readonly string[]
  /** The largest `minItems` that is taken. */
  min_items?: number
}

type Narrowed = {
  schema: unknown
  /** True if a rule of the schema is no longer binding and is only stated in a description. */
  narrowed: boolean
  /** True if the schema has objects with members of any name, which cannot be closed. */
  open: boolean
}

/**
 * A JSON schema as structured outputs take it: refused keywords are stated in the description, alternatives are `anyOf`,
 * and objects are closed by `additionalProperties: false`.
 */
export function narrowSchema(schema?: unknown, options: NarrowOptions = {}): Narrowed | undefined {
  if (schema === undefined) return undefined
  const refused = new Set(options.refused ?? defaults.refused)
  const formats = new Set(options.formats ?? defaults.formats)
  const minItems = options.min_items ?? 1
  const refuses = (keyword: string, value: unknown): boolean =>
    refused.has(keyword) ||
    (keyword === 'minItems' && typeof value === 'number' && value > minItems) ||
    (keyword === 'format' && !formats.has(String(value)))
  const found: Findings = { refuses, narrowed: false, open: false }
  return { schema: narrow(schema, found), narrowed: found.narrowed, open: found.open }
}

type Findings = { refuses: (keyword: string, value: unknown) => boolean; narrowed: boolean; open: boolean }

type Schema = Readonly<Record<string, unknown>>

const defaults = {
  refused: [
    ...[
      'minimum',
      'maximum',
      'exclusiveMinimum',
      'exclusiveMaximum',
      'multipleOf',
      'minLength',
      'maxLength',
      'pattern',
    ],
    ...['maxItems', 'uniqueItems', 'contains', 'minContains', 'maxContains', 'unevaluatedItems'],
    ...['minProperties', 'maxProperties', 'propertyNames', 'unevaluatedProperties'],
    ...['dependentRequired', 'dependentSchemas', 'dependencies', 'not', 'if', 'then', 'else'],
  ],
  formats: ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
}

const schemasByName = new Set(['properties', '$defs', 'definitions'])

const listsOfSchemas = new Set(['anyOf', 'allOf', 'prefixItems'])

function narrow(schema: unknown, found: Findings): unknown {
  if (!isSchema(schema)) return schema
  if (isOpen(schema)) found.open = true
  const members: [string, unknown][] = []
  const rules: string[] = []
  for (const [keyword, value] of Object.entries(withoutOneOf(schema))) {
    if (found.refuses(keyword, value)) rules.push(`${keyword}: ${JSON.stringify(value)}`)
    else members.push([keyword, narrowKeyword(keyword, value, found)])
  }
  const narrowed = Object.fromEntries(members)
  if (rules.length > 0) {
    found.narrowed = true
    const description = typeof schema.description === 'string' && schema.description ? `${schema.description} ` : ''
    narrowed.description = `${description}(${rules.join(', ')})`
  }
  if (isObjectSchema(schema) && !isOpen(schema)) narrowed.additionalProperties = false
  return narrowed
}

function narrowKeyword(keyword: string, value: unknown, found: Findings): unknown {
  if (schemasByName.has(keyword) && isSchema(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, narrow(schema, found)]))
  }
  if (Array.isArray(value) && (keyword === 'items' || listsOfSchemas.has(keyword))) {
    return value.map((schema) => narrow(schema, found))
  }
  return keyword === 'items' ? narrow(value, found) : value
}

/** Moves alternatives under `oneOf` to `anyOf`, in addition to those that are already there. */
function withoutOneOf(schema: Schema): Schema {
  if (!Array.isArray(schema.oneOf)) return schema
  const { oneOf, ...rest } = schema
  if (rest.anyOf === undefined) return { ...rest, anyOf: oneOf }
  return { ...rest, allOf: [...(Array.isArray(rest.allOf) ? rest.allOf : []), { anyOf: oneOf }] }
}

function isObjectSchema({ type, properties }: Schema): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || properties !== undefined
}

function isOpen({ additionalProperties, patternProperties }: Schema): boolean {
  return additionalProperties === true || isSchema(additionalProperties) || isSchema(patternProperties)
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
