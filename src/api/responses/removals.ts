import type { JsonObject } from '../../core/json.ts'
import { isNoSearch, type Removals } from '../remove-fields.ts'
import { fieldNames } from './fields.ts'
import { isOpaqueItem } from './messages.ts'
import { addressed, isOpaquePart } from './parts.ts'

const isType = (...types: readonly string[]) => {
  return (node: JsonObject) => typeof node.type === 'string' && types.includes(node.type)
}

/** Rules for removing fields that are not simply paths from a body of this API. */
export const removals: Removals = {
  ...fieldNames,
  lists: ['input'],
  removals: {
    system: { paths: ['instructions'], isDropped: ({ role }) => role === 'system' || role === 'developer' },
    'messages.name': { messages: ['name'] },
    'parts.image': {
      isDropped: (node) =>
        node.type === 'input_image' || (node.type === 'image_generation_call' && Boolean(node.result)),
    },
    'parts.file': { isDropped: isType('input_file') },
    'parts.audio': { isDropped: isType('input_audio') },
    'parts.video': {},
    'parts.filename': { parts: ['filename'] },
    'parts.detail': { parts: ['detail'] },
    'parts.file_id': { isDropped: (node) => mediaOf(node) === 'file_id' },
    'parts.url': { isDropped: (node) => mediaOf(node) === 'url' },
    'parts.cache': { parts: ['prompt_cache_breakpoint'] },
    'parts.citations': { parts: ['annotations'] },
    'parts.refusal': { isDropped: isType('refusal', 'output_refusal') },
    'parts.reasoning': { isDropped: isType('reasoning') },
    'parts.summary': { edit: withoutSummary },
    'parts.id': { parts: ['id'] },
    'parts.text': { isDropped: isType('input_text', 'output_text', 'text') },
    'response_format.schema': { paths: ['text.format'] },
    'parts.search': { isDropped: isType('web_search_call') },
    'parts.tool_call': { isDropped: isType('function_call', 'custom_tool_call') },
    'parts.tool_result': { isDropped: isType('function_call_output', 'custom_tool_call_output') },
    'parts.opaque': { isDropped: isOpaque },
    tools: { tools: isNoSearch },
    'tools.function': { tools: isType('function') },
    'tools.custom': { tools: isType('custom'), edit: asFunctionCall },
    'tools.cache': {},
    ...Object.fromEntries(
      ['description', 'parameters', 'strict', 'format'].map((member) => [`tools.${member}`, { toolMembers: [member] }]),
    ),
  },
}

/** Returns the form in which a file or image is given, as it is read. */
function mediaOf({
  type,
  image_url,
  file_url,
  file_id,
  file_data,
}: JsonObject): 'data' | 'url' | 'file_id' | undefined {
  if (type === 'input_image') {
    if (typeof file_id === 'string') return 'file_id'
    return typeof image_url === 'string' && 'url' in addressed(image_url) ? 'url' : 'data'
  }
  if (type !== 'input_file') return undefined
  if (typeof file_data === 'string') return 'data'
  return typeof file_url === 'string' ? 'url' : 'file_id'
}

/** The API requires the list of summaries. */
function withoutSummary(item: JsonObject): JsonObject {
  return item.type === 'reasoning' ? { ...item, summary: [] } : item
}

function isOpaque(node: JsonObject): boolean {
  return node.role === undefined && isOpaqueItem(node) && isOpaquePart(node)
}

/** Returns an earlier call of a custom tool as a function call, for a provider that only knows functions. */
function asFunctionCall(item: JsonObject): JsonObject {
  if (item.type === 'custom_tool_call_output') return { ...item, type: 'function_call_output' }
  const { input, ...call } = item
  if (item.type !== 'custom_tool_call' || typeof input !== 'string') return item
  return { ...call, type: 'function_call', arguments: JSON.stringify({ input }) }
}
