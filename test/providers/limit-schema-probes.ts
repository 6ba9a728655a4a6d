import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { SchemaLimit } from '../../src/manifest/run/fit-schema.ts'
import type { Ask, AskedTool, Probe, Seen } from './limit-asks.ts'

/** A schema that every provider takes. */
export const closed: JsonObject = {
  type: 'object',
  properties: { mk_a: { type: 'string' } },
  required: ['mk_a'],
  additionalProperties: false,
}

/** A schema with so many levels of objects. */
function nested(levels: number): JsonObject {
  const below = levels === 1 ? { type: 'string' } : nested(levels - 1)
  return { ...closed, properties: { mk_a: below } }
}

/** A schema with so many properties. */
function wide(count: number): JsonObject {
  const names = Array.from({ length: count }, (_, index) => (index === 0 ? 'mk_a' : `p${index}`))
  return { ...closed, properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])), required: names }
}

/** A schema outside of a limit, and one inside, where that is not any. */
type Broken = { schema: JsonObject; inside?: JsonObject; strict?: true; within(sent: JsonObject, seen: Seen): boolean }

function brokenSchemas(limit: SchemaLimit): { [feature: string]: Broken } {
  const { strict } = limit
  const { all_required, closed: isClosed, refused, max_depth, max_properties } = strict || {}
  const a = (schema: JsonObject): JsonObject => ({ ...closed, properties: { mk_a: schema } })
  const at = (sent: JsonObject) =>
    isObject(sent.properties) && isObject(sent.properties.mk_a) ? sent.properties.mk_a : {}
  const loose = (schema: JsonObject): Broken => ({ schema, strict: true, within: (_, seen) => !isStrict(seen.body) })
  return {
    ...(limit.root_union === false && {
      root_union: {
        schema: { ...closed, anyOf: [{ required: ['mk_a'] }, {}] },
        within: (sent) => sent.anyOf === undefined,
      },
    }),
    ...(limit.ref_siblings === false && {
      ref_siblings: {
        schema: { ...a({ $ref: '#/$defs/A', description: 'one' }), $defs: { A: { type: 'string' } } },
        within: (sent) => at(sent).$ref === undefined,
      },
    }),
    ...(limit.typed && { typed: { schema: a({ description: 'any' }), within: (sent) => at(sent).type !== undefined } }),
    ...(limit.tuples === false && {
      tuples: {
        schema: a({ type: 'array', prefixItems: [{ type: 'string' }] }),
        within: (sent) => at(sent).prefixItems === undefined,
      },
    }),
    ...(limit.all_of === false && {
      all_of: { schema: a({ allOf: [{ type: 'string' }] }), within: (sent) => at(sent).allOf === undefined },
    }),
    ...(limit.consts === false && {
      consts: { schema: a({ type: 'string', const: 'x' }), within: (sent) => at(sent).const === undefined },
    }),
    ...(limit.array_items && {
      array_items: { schema: a({ type: 'array' }), within: (sent) => at(sent).items !== undefined },
    }),
    ...(limit.enum_texts && {
      enum_texts: { schema: a({ type: 'integer', enum: [1, 2] }), within: (sent) => at(sent).enum === undefined },
    }),
    ...Object.fromEntries(
      (limit.refused ?? []).map((keyword): [string, Broken] => [
        `refused.${keyword}`,
        { schema: a({ type: 'string', [keyword]: {} }), within: (sent) => at(sent)[keyword] === undefined },
      ]),
    ),
    ...(limit.formats && {
      formats: { schema: a({ type: 'string', format: 'x-none' }), within: (sent) => at(sent).format === undefined },
    }),
    ...(strict === false && { strict: loose(closed) }),
    ...(all_required && {
      'strict.all_required': loose({ ...closed, properties: { mk_a: { type: 'string' }, b: { type: 'string' } } }),
    }),
    ...(isClosed && { 'strict.closed': loose({ ...closed, additionalProperties: true }) }),
    ...(refused?.[0] !== undefined && { 'strict.refused': loose(a({ type: 'string', [refused[0]]: 1 })) }),
    ...(max_depth !== undefined && {
      'strict.max_depth': { ...loose(nested(max_depth + 1)), inside: nested(max_depth) },
    }),
    ...(max_properties !== undefined && {
      'strict.max_properties': { ...loose(wide(max_properties + 1)), inside: wide(max_properties) },
    }),
  }
}

/** The probes for each feature of a schema limit. */
export function schemaProbes(limit: 'tool_schema' | 'answer_schema', declared: SchemaLimit | undefined): Probe[] {
  if (!declared) return []
  const ask = (schema: JsonObject, strict?: true): Ask =>
    limit === 'tool_schema'
      ? { tools: [{ name: 'f', parameters: schema, ...(strict && { strict }) }] }
      : { schema: { name: 'f', schema, ...(strict && { strict }) } }
  const probes = Object.entries(brokenSchemas(declared)).map(
    ([feature, { schema, inside, strict, within }]): Probe => ({
      limit: `${limit}.${feature}`,
      inside: ask(inside ?? closed, declared.strict === false ? undefined : strict),
      unchanged: (seen) => inside === undefined || isStrict(seen.body),
      outside: ask(schema, strict),
      within: (seen) => {
        const sent = schemaIn(seen.body)
        return sent === undefined || within(sent, seen)
      },
    }),
  )
  return limit === 'tool_schema' ? [...probes, ...toolsProbes(declared)] : probes
}

/** The probes for what is asked of all tools of a request. */
function toolsProbes({ always, strict }: SchemaLimit): Probe[] {
  const two = (other: AskedTool): Ask => ({ tools: [{ name: 'f', parameters: closed, strict: true }, other] })
  const countOf = (text: RegExp, seen: Seen) => JSON.stringify(seen.body).match(text)?.length ?? 0
  return [
    ...(always
      ? [
          {
            limit: 'tool_schema.always',
            inside: { tools: [{ name: 'f', parameters: closed }] },
            unchanged: () => true,
            outside: { tools: [{ name: 'f' }] },
            within: (seen: Seen) => countOf(/"parameters":\{/g, seen) === 1,
          },
        ]
      : []),
    ...(strict !== false && strict?.uniform
      ? [
          {
            limit: 'tool_schema.strict.uniform',
            inside: two({ name: 'g', parameters: closed, strict: true }),
            unchanged: (seen: Seen) => countOf(/"strict":true/g, seen) === 2,
            outside: two({ name: 'g', parameters: { ...closed, additionalProperties: true } }),
            within: (seen: Seen) => [0, 2].includes(countOf(/"strict":true/g, seen)),
          },
        ]
      : []),
  ]
}

/** The schema that has the property of all probes. */
function schemaIn(value: Json): JsonObject | undefined {
  if (Array.isArray(value)) return value.map(schemaIn).find((found) => found !== undefined)
  if (!isObject(value)) return undefined
  if (isObject(value.properties) && Object.hasOwn(value.properties, 'mk_a')) return value
  return Object.values(value)
    .map((member) => schemaIn(member as Json))
    .find((found) => found !== undefined)
}

/** Checks whether anything in a body is strict. */
export function isStrict(value: Json): boolean {
  if (Array.isArray(value)) return value.some(isStrict)
  if (!isObject(value)) return false
  return (
    value.strict === true ||
    value.strict_tools === true ||
    Object.values(value).some((member) => isStrict(member as Json))
  )
}
