import type { ModelEntry } from '../../core/models/model.ts'
import type { NeutralRequest } from '../../core/request.ts'

/**
 * Meaning of a catalog entry's flag for requests: the neutral fields that need it, and a request that uses them. `isFact`: fields that it
 * denies are sent anyway.
 */
export type Ability = { fields: readonly string[]; request: Partial<NeutralRequest>; isFact?: true }

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The flags that a provider must keep: what they promise must reach it. */
export const abilities = {
  supports_vision: {
    fields: ['parts.image'],
    request: { messages: [{ role: 'user', parts: [{ type: 'image', data: pixel, media_type: 'image/png' }] }] },
  },
  supports_tool_calling: {
    fields: ['tools.function', 'tools.custom', 'parallel_tool_calls'],
    request: { tools: [{ kind: 'function', name: 'look', parameters: { type: 'object', properties: {} } }] },
  },
  supports_reasoning: { fields: ['reasoning'], request: { reasoning: { effort: 'high' } } },
  supports_web_search: { fields: ['web_search'], request: { web_search: {} } },
  supports_image_generation: { fields: ['modalities'], request: { modalities: ['text', 'image'] }, isFact: true },
} as const satisfies { [flag in keyof ModelEntry]?: Ability }

export type AbilityFlag = keyof typeof abilities

export const abilityFlags = Object.keys(abilities) as AbilityFlag[]

const lacking = new WeakMap<ModelEntry, readonly string[]>()

/** Returns the neutral fields that a model cannot accept according to its entry. */
export function lackedFields(entry: ModelEntry): readonly string[] {
  let fields = lacking.get(entry)
  if (!fields) {
    fields = abilityFlags
      .filter((flag) => entry[flag] === false && !('isFact' in abilities[flag]))
      .flatMap((flag) => abilities[flag].fields)
    lacking.set(entry, fields)
  }
  return fields
}

/**
 * Returns the neutral fields of a request that its model's entry denies, although they are sent: some are requested in words where there
 * is no field for them, and some models can do more than is documented.
 */
export function deniedFields(
  entry: ModelEntry,
  { response_format: format, modalities, tools }: NeutralRequest,
): string[] {
  const denied: string[] = []
  if (format?.type === 'json' && entry.supports_output_json_object === false) denied.push('response_format')
  if (format?.type === 'json_schema' && entry.supports_output_json_schema === false) denied.push('response_format')
  if (modalities?.includes('image') && entry.supports_image_generation === false) denied.push('modalities')
  if (entry.supports_computer_use !== false) return denied
  return [...denied, ...(tools ?? []).flatMap(({ kind }) => (kind.startsWith('computer') ? [`tools.${kind}`] : []))]
}
