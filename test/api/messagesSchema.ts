import { Ajv } from 'ajv'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

const file = 'anthropic.messages.schema.json'

/** Why the published schema of Messages cannot be read here; undefined when it can. */
export const schemaMissing = specMissing(file)

const published = publishedSpec(file) ?? {}
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
if (!schemaMissing) ajv.addSchema(published as object, 'published')

/** The violations of the published definition of this name in a value. */
export function violations(name: string, value: unknown): string[] {
  const validate = ajv.getSchema(`published#/definitions/${name}`)
  if (!validate) throw new Error(`the published schema has no ${name}`)
  validate(value)
  return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`)
}

/** As `violations`, without what this router adds to usage: the cost, and how long cache writes of a stream live. */
export function violationsBeside(name: string, value: JsonObject): string[] {
  return violations(name, withoutOurs(value))
}

/** Names of all properties of a published object. */
export function propertiesOf(name: string): string[] {
  const definition = (published.definitions as JsonObject)[name]
  return isObject(definition) && isObject(definition.properties) ? Object.keys(definition.properties) : []
}

function withoutOurs(value: JsonObject): JsonObject {
  const plain = structuredClone(value)
  const usages = [plain.usage, isObject(plain.message) ? plain.message.usage : undefined]
  for (const usage of usages) if (isObject(usage)) delete usage.cost
  if (plain.type === 'message_delta') delete (plain.usage as { cache_creation?: Json }).cache_creation
  return plain
}
