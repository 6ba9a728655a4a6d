import { type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'
import { openaiFamily } from './openai-family.ts'
import { firstOf, type Rule, rootProblem, strictProblem, textRefusal, unknownMember, unpairedCall } from './rule.ts'

const members = [
  'audio',
  'frequency_penalty',
  'function_call',
  'functions',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'messages',
  'metadata',
  'modalities',
  'model',
  'n',
  'parallel_tool_calls',
  'prediction',
  'presence_penalty',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning_effort',
  'response_format',
  'safety_identifier',
  'seed',
  'service_tier',
  'stop',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'user',
  'verbosity',
  'web_search_options',
]
const messageMembers = ['role', 'content', 'name', 'refusal', 'audio', 'tool_calls', 'tool_call_id', 'function_call']

/** Limits of OpenAI's chat completions. */
export const openaiChat: readonly Rule[] = [
  { name: 'unknown members', refusal: unknown },
  {
    name: 'tool names',
    refusal: (body) =>
      firstOf(definitions(body), ({ name }, at) =>
        textRefusal(`tools[${at}].function.name`, name, { max: 64, pattern: /^[a-zA-Z0-9_-]+$/ }),
      ),
  },
  { name: 'call ids', refusal: callIds },
  { name: 'number of tools', refusal: toolCount },
  { name: 'kinds of tools', refusal: toolKinds },
  { name: 'tool schemas', refusal: schemas },
  { name: 'pairs of calls and results', refusal: (body) => unpairedCall(objectsOf(body.messages)) },
  { name: 'text in results', refusal: textResults },
  {
    name: 'tool_choice without tools',
    refusal: (body) =>
      body.tool_choice && !body.tools
        ? `Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.`
        : undefined,
  },
  { name: 'stop sequences', refusal: stop },
  {
    name: 'max_tokens',
    refusal: (body) =>
      'max_tokens' in body
        ? `Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.`
        : undefined,
  },
  { name: 'tools while thinking', refusal: toolsWhileThinking },
  ...openaiFamily((body) => body.reasoning_effort, 'reasoning_effort'),
]

function definitions(body: Fields): Fields[] {
  return objectsOf(body.tools).map((tool) => fieldsOf(tool[textOf(tool.type)]))
}

function unknown(body: Fields): string | undefined {
  const top = unknownMember(body, members)
  if (top) return `Unknown parameter: '${top}'.`
  return firstOf(objectsOf(body.messages), (message, at) => {
    const name = unknownMember(message, messageMembers)
    if (name) return `Unknown parameter: 'messages[${at}].${name}'.`
    return firstOf(objectsOf(message.tool_calls), (call, index) => {
      const inCall = unknownMember(call, ['id', 'type', 'function', 'custom'])
      return inCall ? `Unknown parameter: 'messages[${at}].tool_calls[${index}].${inCall}'.` : undefined
    })
  })
}

function callIds(body: Fields): string | undefined {
  return firstOf(objectsOf(body.messages), (message, at) => {
    const result = textRefusal(`messages[${at}].tool_call_id`, message.tool_call_id, { max: 40 })
    const check = ({ id }: Fields, index: number) =>
      textRefusal(`messages[${at}].tool_calls[${index}].id`, id, { max: 40 })
    return result ?? firstOf(objectsOf(message.tool_calls), check)
  })
}

function toolCount({ tools }: Fields): string | undefined {
  if (!Array.isArray(tools)) return undefined
  if (tools.length === 0)
    return `Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.`
  return tools.length > 128
    ? `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${tools.length} instead.`
    : undefined
}

function toolKinds({ tools }: Fields): string | undefined {
  return firstOf(objectsOf(tools), ({ type }, at) =>
    type === 'function' || type === 'custom'
      ? undefined
      : `Invalid value: '${type}'. Supported values are: 'function' and 'custom'. (tools[${at}].type)`,
  )
}

function schemas(body: Fields): string | undefined {
  return firstOf(definitions(body), ({ name, parameters, strict }) => {
    const root = rootProblem(parameters)
    if (root)
      return `Invalid schema for function '${name}': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level. (${root})`
    const problem = strict === true ? strictProblem(fieldsOf(parameters)) : undefined
    return problem && `Invalid schema for function '${name}': In context=(), ${problem}`
  })
}

function textResults(body: Fields): string | undefined {
  return firstOf(objectsOf(body.messages), ({ role, content }, at) =>
    role === 'tool' && objectsOf(content).some(({ type }) => type !== 'text')
      ? `Invalid 'messages[${at}]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.`
      : undefined,
  )
}

function stop({ stop: sequences }: Fields): string | undefined {
  return sequences === undefined || sequences === null
    ? undefined
    : `Unsupported parameter: 'stop' is not supported with this model.`
}

/** Newer families take functions here only while they do not think, and they think by default. */
function toolsWhileThinking({ tools, reasoning_effort, model }: Fields): string | undefined {
  if (objectsOf(tools).length === 0 || reasoning_effort === 'none') return undefined
  return `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. Please use /v1/responses instead.`
}
