import { type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'
import { sealPrefix } from '../formats/responses.ts'
import { openaiFamily } from './openai-family.ts'
import { firstOf, type Rule, rootProblem, strictProblem, textRefusal, unknownMember } from './rule.ts'

// client_metadata is what Codex adds to each of its requests.
const members = [
  'access_programs',
  'background',
  'client_metadata',
  'context_management',
  'conversation',
  'image',
  'include',
  'input',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'model',
  'moderation',
  'parallel_tool_calls',
  'previous_response_id',
  'prompt',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
]
const toolTypes = [
  'function',
  'custom',
  'namespace',
  'web_search',
  'web_search_preview',
  'file_search',
  'code_interpreter',
  'image_generation',
  'mcp',
  'shell',
  'local_shell',
  'apply_patch',
  'computer',
  'computer_use_preview',
  'tool_search',
  'programmatic_tool_calling',
]
const itemMembers: Readonly<Record<string, readonly string[]>> = {
  function_call: ['arguments', 'call_id', 'name', 'type', 'id', 'async', 'caller', 'namespace', 'status'],
  custom_tool_call: ['input', 'call_id', 'name', 'type', 'id', 'async', 'caller', 'namespace', 'status'],
  function_call_output: ['call_id', 'output', 'type', 'id', 'async', 'caller', 'status'],
  custom_tool_call_output: ['call_id', 'output', 'type', 'id', 'async', 'caller', 'status'],
  reasoning: ['id', 'summary', 'type', 'content', 'encrypted_content', 'status'],
  additional_tools: ['role', 'tools', 'type', 'id'],
}
const idPrefixes: Readonly<Record<string, string>> = {
  function_call: 'fc',
  custom_tool_call: 'ctc',
  reasoning: 'rs',
  message: 'msg',
}

/** Limits of OpenAI's Responses API. */
export const openaiResponses: readonly Rule[] = [
  { name: 'unknown members', refusal: unknown },
  { name: 'tool names', refusal: toolNames },
  {
    name: 'kinds of tools',
    refusal: (body) =>
      firstOf(offered(body), ({ type }, at) =>
        toolTypes.includes(textOf(type))
          ? undefined
          : `Invalid value: '${type}'. Supported values are: ${toolTypes.map((one) => `'${one}'`).join(', ')}. (tools[${at}].type)`,
      ),
  },
  { name: 'tool schemas', refusal: schemas },
  { name: 'ids of calls and items', refusal: ids },
  { name: 'pairs of calls and results', refusal: pairs },
  { name: 'reasoning without its item', refusal: reasoning },
  { name: 'sealed reasoning of others', refusal: seals },
  {
    name: 'least output',
    refusal: ({ max_output_tokens: max }) =>
      typeof max === 'number' && max < 16
        ? `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${max} instead.`
        : undefined,
  },
  ...openaiFamily((body) => fieldsOf(body.reasoning).effort, 'reasoning.effort'),
]

function items(body: Fields): readonly Fields[] {
  return objectsOf(body.input)
}

function offered(body: Fields): Fields[] {
  return [...objectsOf(body.tools), ...items(body).flatMap(({ tools }) => objectsOf(tools))]
}

function unknown(body: Fields): string | undefined {
  const top = unknownMember(body, members)
  if (top) return `Unknown parameter: '${top}'.`
  return firstOf(items(body), (item, at) => {
    const known = itemMembers[textOf(item.type)]
    const name = known && unknownMember(item, known)
    return name && `Unknown parameter: 'input[${at}].${name}'.`
  })
}

function toolNames(body: Fields): string | undefined {
  const pattern = /^[a-zA-Z0-9_-]+$/
  return firstOf(offered(body), ({ type, name, tools }, at) => {
    const own = textRefusal(`tools[${at}].name`, name, { max: 64, pattern })
    if (own || type !== 'namespace') return own
    return firstOf(objectsOf(tools), (tool, index) =>
      textRefusal(`tools[${at}].tools[${index}].name`, tool.name, { max: 128, pattern }),
    )
  })
}

function schemas(body: Fields): string | undefined {
  const functions = offered(body).flatMap((tool) => (tool.type === 'namespace' ? objectsOf(tool.tools) : [tool]))
  return firstOf(functions, ({ type, name, parameters, strict }) => {
    if (type !== 'function') return undefined
    const root = rootProblem(parameters ?? undefined)
    if (root)
      return `Invalid schema for function '${name}': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level. (${root})`
    const problem = strict === true ? strictProblem(fieldsOf(parameters)) : undefined
    return problem && `Invalid schema for function '${name}': In context=(), ${problem}`
  })
}

function ids(body: Fields): string | undefined {
  return firstOf(items(body), ({ type, id, call_id }, at) => {
    const refused =
      textRefusal(`input[${at}].id`, id, { max: 64 }) ?? textRefusal(`input[${at}].call_id`, call_id, { max: 64 })
    const prefix = idPrefixes[textOf(type)]
    if (refused || typeof id !== 'string' || !prefix || id.startsWith(prefix)) return refused
    return `Invalid 'input[${at}].id': '${id}'. Expected an ID that begins with '${prefix}'.`
  })
}

function pairs(body: Fields): string | undefined {
  const isCall = ({ type }: Fields) => type === 'function_call' || type === 'custom_tool_call'
  const isResult = ({ type }: Fields) => type === 'function_call_output' || type === 'custom_tool_call_output'
  const calls = items(body)
    .filter(isCall)
    .map(({ call_id }) => call_id)
  const results = items(body)
    .filter(isResult)
    .map(({ call_id }) => call_id)
  const unanswered = calls.find((id) => !results.includes(id))
  if (unanswered) return `No tool output found for function call ${unanswered}.`
  const orphan = body.previous_response_id ? undefined : results.find((id) => !calls.includes(id))
  return orphan === undefined ? undefined : `No tool call found for function call output with call_id ${orphan}.`
}

/** Clients may send the thoughts of an answer that broke off last; before what the user says or a tool returns they are refused. */
function reasoning(body: Fields): string | undefined {
  const list = items(body)
  return firstOf(list, ({ type, id }, at) => {
    const { type: next, role } = list[at + 1] ?? {}
    const isAlone = role === 'user' || /_output$/.test(textOf(next))
    return type === 'reasoning' && isAlone
      ? `Item '${id}' of type 'reasoning' was provided without its required following item.`
      : undefined
  })
}

function seals(body: Fields): string | undefined {
  return firstOf(items(body), ({ type, encrypted_content: seal }) =>
    type === 'reasoning' && typeof seal === 'string' && !seal.startsWith(sealPrefix)
      ? `The encrypted content ${seal.slice(0, 4)}... could not be verified. Reason: Encrypted content could not be decrypted or parsed.`
      : undefined,
  )
}
