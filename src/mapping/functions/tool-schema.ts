import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { narrowSchema } from './narrow-schema.ts'

type DroppedMember = 'tools.strict' | 'tools.parameters'

/**
 * The schema of a tool's parameters, whether it binds, and the name of the member that the tool loses by it. `lost` is the former name of
 * `dropped`, for mappings that still read it.
 */
export type ToolSchema = { schema: unknown; strict?: true; dropped?: DroppedMember; lost?: DroppedMember }

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
