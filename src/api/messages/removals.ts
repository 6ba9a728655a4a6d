import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { isNoSearch, parallelSetting, type Removals } from '../remove-fields.ts'
import { fieldNames } from './fields.ts'
import { isOpaque } from './parts.ts'

const isType = (...types: readonly string[]) => {
  return (node: JsonObject) => typeof node.type === 'string' && types.includes(node.type)
}

const isMedia = isType('image', 'document')

/** Rules for removing fields that are not simply paths from a body of this API. */
export const removals: Removals = {
  ...fieldNames,
  lists: ['system', 'messages'],
  removals: {
    system: { paths: ['system'] },
    'parts.cache': { parts: ['cache_control'] },
    'parts.citations': { edit: withoutCitations },
    'parts.reasoning': { isDropped: isType('thinking', 'redacted_thinking') },
    'parts.signature': { parts: ['signature'] },
    'parts.filename': { edit: withoutTitle },
    'parts.file': { isDropped: isFile },
    'parts.image': { isDropped: isType('image') },
    'parts.file_id': { isDropped: (block) => isMedia(block) && sourceType(block) === 'file' },
    'parts.url': { isDropped: (block) => isMedia(block) && sourceType(block) === 'url' },
    'parts.is_error': { parts: ['is_error'] },
    'parts.tool_call': { isDropped: isType('tool_use') },
    'parts.tool_result': { isDropped: isType('tool_result') },
    'parts.search': {
      isDropped: (block) =>
        block.type === 'web_search_tool_result' || (block.type === 'server_tool_use' && block.name === 'web_search'),
    },
    'parts.opaque': { isDropped: (node) => node.role === undefined && isOpaque(node) },
    'parts.text': { isDropped: isType('text') },
    'parts.audio': {},
    'parts.video': {},
    'parts.refusal': {},
    tools: { tools: isNoSearch },
    'tools.function': { tools: ({ type }) => (type ?? 'custom') === 'custom' },
    'tools.parameters': { toolMembers: ['input_schema'] },
    'tools.cache': { toolMembers: ['cache_control'] },
    'tools.strict': { toolMembers: ['strict'] },
    tool_choice: { body: withoutChoice },
    'response_format.schema': { paths: ['output_config.format', 'output_format'] },
    'reasoning.budget': { body: withoutBudget },
    'reasoning.effort': { paths: ['output_config.effort'], body: withoutSwitch },
  },
}

function sourceType({ source }: JsonObject): Json | undefined {
  return isObject(source) ? source.type : undefined
}

/** A document that is made of blocks is read as those blocks. */
function isFile(block: JsonObject): boolean {
  return block.type === 'document' && sourceType(block) !== 'content'
}

/** The citations of a document are a setting, not what was cited. */
function withoutCitations(block: JsonObject): JsonObject {
  const { citations: _citations, ...rest } = block
  return block.type === 'text' ? rest : block
}

function withoutTitle(block: JsonObject): JsonObject {
  const { title: _title, ...rest } = block
  return block.type === 'document' ? rest : block
}

/** Removes the tool choice except for what it decides about parallel calls. */
function withoutChoice(body: JsonObject): JsonObject {
  const { tool_choice: choice, ...rest } = body
  const left = parallelSetting(choice)
  return left === undefined ? rest : { ...rest, tool_choice: left }
}

/** Thinking that is only switched on or off is an effort. */
function withoutSwitch(body: JsonObject): JsonObject {
  const { thinking, ...rest } = body
  return isObject(thinking) && thinking.type !== 'enabled' ? rest : body
}

/** Thinking without a budget is up to the model. */
function withoutBudget(body: JsonObject): JsonObject {
  const { thinking } = body
  if (!isObject(thinking) || thinking.budget_tokens === undefined) return body
  const { budget_tokens: _budget, ...others } = thinking
  return { ...body, thinking: { ...others, type: 'adaptive' } }
}
