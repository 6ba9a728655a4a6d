import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { narrowSchema } from './narrow-schema.ts'

/** The schema of a tool's parameters, whether it binds, and the name of what is lost of the tool thereby. */
export type ToolSchema = { schema: unknown; strict?: true; lost?: 'tools.strict' | 'tools.parameters' }

/**
 * The parameters of a tool as the schema of an object. Those of a strict tool are narrowed to a schema that binds, where
 * the provider takes such schemas and no object is open.
 */
export function toolSchema(tool?: Json, takesStrict = false): ToolSchema | undefined {
  if (!isObject(tool)) return undefined
  const schema: JsonObject = { properties: {}, ...(isObject(tool.parameters) && tool.parameters), type: 'object' }
  if (!tool.strict) return { schema }
  const narrow = takesStrict ? narrowSchema(schema) : undefined
  if (narrow === undefined || narrow.open) return { schema, lost: 'tools.strict' }
  return { schema: narrow.schema, strict: true, ...(narrow.narrowed && { lost: 'tools.parameters' as const }) }
}
