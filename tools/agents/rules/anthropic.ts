import { type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'
import { signatureSuffix } from '../formats/messages.ts'
import { first, firstOf, type Rule, rootProblem, unknownMember } from './rule.ts'

const members = [
  'billing_policy',
  'cache_control',
  'compaction',
  'container',
  'context_management',
  'diagnostics',
  'fallback_credit_token',
  'fallbacks',
  'inference_geo',
  'max_tokens',
  'mcp_servers',
  'messages',
  'metadata',
  'model',
  'output_config',
  'output_format',
  'service_tier',
  'speed',
  'stop_sequences',
  'stream',
  'system',
  'temperature',
  'thinking',
  'thread',
  'tool_choice',
  'tools',
  'top_k',
  'top_p',
  'user_profile_id',
]
const toolMembers = [
  'allowed_callers',
  'cache_control',
  'defer_loading',
  'description',
  'eager_input_streaming',
  'input_examples',
  'input_schema',
  'name',
  'strict',
  'type',
]

/** Limits of Anthropic's Messages API, with a model of the fifth generation. */
export const anthropic: readonly Rule[] = [
  { name: 'unknown members', refusal: unknown },
  {
    name: 'tool names',
    refusal: (body) =>
      firstOf(objectsOf(body.tools), ({ name }, at) =>
        /^[a-zA-Z0-9_-]{1,128}$/.test(textOf(name))
          ? undefined
          : `tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`,
      ),
  },
  { name: 'call ids', refusal: callIds },
  { name: 'metadata', refusal: metadata },
  { name: 'tool schemas', refusal: schemas },
  {
    name: 'strict tools',
    refusal: (body) =>
      objectsOf(body.tools).filter(({ strict }) => strict === true).length > 20
        ? 'Too many strict tools (max 20).'
        : undefined,
  },
  { name: 'forced tools while thinking', refusal: forced },
  {
    name: 'max_tokens',
    refusal: ({ max_tokens }) =>
      typeof max_tokens === 'number' && max_tokens > 0 ? undefined : 'max_tokens: Field required',
  },
  {
    name: 'thinking',
    refusal: ({ thinking }) =>
      fieldsOf(thinking).type === 'enabled'
        ? `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`
        : undefined,
  },
  { name: 'sampling', refusal: sampling },
  { name: 'signatures', refusal: signatures },
  { name: 'roles', refusal: roles },
  { name: 'pairs of calls and results', refusal: pairs },
  { name: 'empty text', refusal: emptyText },
  { name: 'cache marks', refusal: cacheMarks },
]

function blocksOf(message: Fields): readonly Fields[] {
  return typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : objectsOf(message.content)
}

/** Checks every block of every message. */
function firstBlock(body: Fields, check: (block: Fields, path: string) => string | undefined): string | undefined {
  return firstOf(objectsOf(body.messages), (message, at) =>
    firstOf(blocksOf(message), (block, index) => check(block, `messages.${at}.content.${index}`)),
  )
}

function unknown(body: Fields): string | undefined {
  const top = unknownMember(body, members)
  if (top) return `${top}: Extra inputs are not permitted`
  const inMessage = firstOf(objectsOf(body.messages), (message, at) => {
    const name = unknownMember(message, ['role', 'content'])
    return name && `messages.${at}.${name}: Extra inputs are not permitted`
  })
  return (
    inMessage ??
    firstOf(objectsOf(body.tools), (tool, at) => {
      const name = tool.input_schema ? unknownMember(tool, toolMembers) : undefined
      return name && `tools.${at}.custom.${name}: Extra inputs are not permitted`
    })
  )
}

function callIds(body: Fields): string | undefined {
  return firstBlock(body, ({ type, id, tool_use_id }, path) => {
    const value = type === 'tool_use' ? id : type === 'tool_result' ? tool_use_id : undefined
    if (value === undefined || /^[a-zA-Z0-9_-]+$/.test(textOf(value))) return undefined
    return `${path}.${type}.${type === 'tool_use' ? 'id' : 'tool_use_id'}: String should match pattern '^[a-zA-Z0-9_-]+$'`
  })
}

function metadata({ metadata: value }: Fields): string | undefined {
  const name = unknownMember(fieldsOf(value), ['user_id'])
  if (name) return `metadata.${name}: Extra inputs are not permitted`
  const user = textOf(fieldsOf(value).user_id)
  if (user.length > 256) return 'metadata.user_id: String should have at most 256 characters'
  return /^[^@\s"]+@[^@\s"]+\.[a-z]+$/.test(user)
    ? 'metadata.user_id: user_id appears to contain an email address'
    : undefined
}

function schemas(body: Fields): string | undefined {
  return firstOf(objectsOf(body.tools), ({ type, input_schema }, at) => {
    if (type !== undefined && type !== 'custom') return undefined
    const problem = rootProblem(input_schema ?? {})
    if (problem === 'type') return `tools.${at}.custom.input_schema.type: Input should be 'object'`
    return (
      problem &&
      `tools.${at}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`
    )
  })
}

function forced({ tool_choice, thinking }: Fields): string | undefined {
  const isForced = ['any', 'tool'].includes(textOf(fieldsOf(tool_choice).type))
  return isForced && fieldsOf(thinking).type !== 'disabled'
    ? 'Thinking may not be enabled when tool_choice forces tool use.'
    : undefined
}

function sampling(body: Fields): string | undefined {
  const name = ['temperature', 'top_p', 'top_k'].find(
    (one) => one in body && !(one === 'temperature' && body[one] === 1),
  )
  return name && `\`${name}\` is deprecated for this model.`
}

function signatures(body: Fields): string | undefined {
  return firstBlock(body, ({ type, signature }, path) =>
    type === 'thinking' && !textOf(signature).endsWith(signatureSuffix)
      ? `${path}: Invalid \`signature\` in \`thinking\` block`
      : undefined,
  )
}

function roles(body: Fields): string | undefined {
  const list = objectsOf(body.messages)
  if (list[0]?.role === 'system') return `messages: use the top-level 'system' parameter for the initial system prompt`
  if (list[0]?.role !== 'user') return 'messages: first message must use the "user" role'
  if (list.at(-1)?.role === 'assistant')
    return 'This model does not support assistant message prefill. The conversation must end with a user message.'
  return firstOf(list, ({ role }, at) =>
    ['user', 'assistant', 'system'].includes(textOf(role))
      ? undefined
      : `messages.${at}.role: Input should be 'user' or 'assistant'`,
  )
}

/** Each call is answered in the next message, whatever system messages stand between. */
function pairs(body: Fields): string | undefined {
  const list = objectsOf(body.messages).filter(({ role }) => role !== 'system')
  return firstOf(list, (message, at) => {
    const idsOf = (type: string, member: string, one?: Fields) =>
      (one ? blocksOf(one) : []).filter((block) => block.type === type).map((block) => textOf(block[member]))
    const results = idsOf('tool_result', 'tool_use_id', list[at + 1])
    const missing = idsOf('tool_use', 'id', message).find((id) => !results.includes(id))
    if (missing)
      return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
    const calls = idsOf('tool_use', 'id', list[at - 1])
    const orphan = idsOf('tool_result', 'tool_use_id', message).find((id) => !calls.includes(id))
    return (
      orphan &&
      `messages.${at}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${orphan}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
    )
  })
}

function emptyText(body: Fields): string | undefined {
  const inMessages = firstBlock(body, ({ type, text }) =>
    type === 'text' && textOf(text).trim() === '' ? 'messages: text content blocks must be non-empty' : undefined,
  )
  const inSystem = firstOf(objectsOf(body.system), ({ text }) =>
    textOf(text) === '' ? 'system: text content blocks must be non-empty' : undefined,
  )
  const empty = firstOf(objectsOf(body.messages), ({ content }, at) =>
    Array.isArray(content) && content.length === 0
      ? `messages.${at}: all messages must have non-empty content`
      : undefined,
  )
  return first([inMessages, inSystem, empty])
}

function cacheMarks(body: Fields): string | undefined {
  const places = [...objectsOf(body.tools), ...objectsOf(body.system), ...objectsOf(body.messages).flatMap(blocksOf)]
  const found = places.filter(({ cache_control }) => cache_control).length
  return found > 4 ? `A maximum of 4 blocks with cache_control may be provided. Found ${found}.` : undefined
}
