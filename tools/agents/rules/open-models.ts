import { type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'
import { firstOf, type Rule, schemasIn, textRefusal, unknownMember, unpairedCall } from './rule.ts'

const pairs: Rule = { name: 'pairs of calls and results', refusal: (body) => unpairedCall(objectsOf(body.messages)) }
const functionsOnly: Rule = {
  name: 'kinds of tools',
  refusal: (body) =>
    firstOf(objectsOf(body.tools), ({ type }, at) =>
      type === 'function' ? undefined : `tools[${at}].type: Input should be 'function', got '${type}'`,
    ),
}

/** Limits of DeepSeek while its model thinks, which it does unless thinking is disabled. */
export const deepseek: readonly Rule[] = [
  functionsOnly,
  pairs,
  {
    name: 'roles',
    refusal: (body) =>
      firstOf(objectsOf(body.messages), ({ role }, at) =>
        ['system', 'user', 'assistant', 'tool'].includes(textOf(role))
          ? undefined
          : `Failed to deserialize the JSON body into the target type: messages[${at}].role: unknown variant \`${role}\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\``,
      ),
  },
  {
    name: 'tool names',
    refusal: (body) =>
      firstOf(functionsOf(body), ({ name }, at) =>
        textRefusal(`tools[${at}].function.name`, name, { max: 64, pattern: /^[a-zA-Z0-9_-]+$/ }),
      ),
  },
  {
    name: 'number of tools',
    refusal: ({ tools }) =>
      objectsOf(tools).length > 128
        ? `Invalid 'tools': array too long. Expected an array with maximum length 128.`
        : undefined,
  },
  {
    name: 'user_id',
    refusal: (body) => textRefusal('user_id', body.user_id, { max: 512, pattern: /^[a-zA-Z0-9_-]+$/ }),
  },
  {
    name: 'forced tools while thinking',
    refusal: (body) =>
      thinks(body) && (body.tool_choice === 'required' || typeof body.tool_choice === 'object')
        ? 'deepseek-reasoner does not support this tool_choice'
        : undefined,
  },
  {
    name: 'thoughts of tool turns',
    refusal: (body) =>
      thinks(body) &&
      objectsOf(body.messages).some(
        ({ tool_calls, reasoning_content }) => tool_calls && typeof reasoning_content !== 'string',
      )
        ? 'The `reasoning_content` in the thinking mode must be passed back to the API.'
        : undefined,
  },
  {
    name: 'JSON schemas',
    refusal: ({ response_format }) =>
      fieldsOf(response_format).type === 'json_schema' ? 'This response_format type is unavailable now' : undefined,
  },
  {
    name: 'efforts',
    refusal: ({ reasoning_effort: effort }) =>
      effort === undefined || ['low', 'medium', 'high', 'xhigh', 'max'].includes(textOf(effort))
        ? undefined
        : `reasoning_effort: unknown variant \`${effort}\``,
  },
]

/** Limits of vLLM and of the template of Qwen 3.5. */
export const qwenAtVllm: readonly Rule[] = [
  functionsOnly,
  {
    name: 'system message first',
    refusal: (body) =>
      objectsOf(body.messages).some(({ role }, at) => at > 0 && role === 'system')
        ? 'System message must be at the beginning.'
        : undefined,
  },
  {
    name: 'roles',
    refusal: (body) =>
      firstOf(objectsOf(body.messages), ({ role }) =>
        ['system', 'user', 'assistant', 'tool'].includes(textOf(role)) ? undefined : `Unexpected message role: ${role}`,
      ),
  },
  {
    name: 'no tools',
    refusal: ({ tools }) =>
      Array.isArray(tools) && tools.length === 0 ? 'tools must not be an empty array' : undefined,
  },
  { name: 'arguments', refusal: argumentsProblem },
  {
    name: 'a user query',
    refusal: (body) =>
      objectsOf(body.messages).some(({ role }) => role === 'user') ? undefined : 'No user query found in messages.',
  },
]

const mistralMembers = [
  'frequency_penalty',
  'guardrails',
  'max_tokens',
  'messages',
  'metadata',
  'model',
  'n',
  'parallel_tool_calls',
  'prediction',
  'presence_penalty',
  'prompt_cache_key',
  'prompt_mode',
  'random_seed',
  'reasoning_effort',
  'response_format',
  'safe_prompt',
  'stop',
  'stream',
  'stream_options',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
]

/** Limits of Mistral. */
export const mistral: readonly Rule[] = [
  functionsOnly,
  {
    name: 'unknown members',
    refusal: (body) => {
      const name = unknownMember(body, mistralMembers)
      return name && `extra_forbidden: body.${name}: Extra inputs are not permitted`
    },
  },
  { name: 'call ids', refusal: mistralIds },
  {
    name: 'user after a result',
    refusal: (body) =>
      firstOf(objectsOf(body.messages), ({ role }, at) =>
        role === 'user' && objectsOf(body.messages)[at - 1]?.role === 'tool'
          ? `Unexpected role 'user' after role 'tool'`
          : undefined,
      ),
  },
  {
    name: 'empty answers',
    refusal: (body) =>
      objectsOf(body.messages).some(({ role, content, tool_calls }) => role === 'assistant' && !content && !tool_calls)
        ? 'Assistant message must have either content or tool_calls, but not none.'
        : undefined,
  },
  {
    name: 'no tools',
    refusal: ({ tools }) => (Array.isArray(tools) && tools.length === 0 ? 'extra_forbidden: body.tools' : undefined),
  },
  {
    name: 'parameters',
    refusal: (body) =>
      firstOf(functionsOf(body), ({ parameters }, at) =>
        parameters ? undefined : `missing: body.tools.${at}.function.parameters: Field required`,
      ),
  },
  {
    name: 'pairs of calls and results',
    refusal: (body) => unpairedCall(objectsOf(body.messages)) && 'Not the same number of function calls and responses',
  },
]

/** Limits of Moonshot: a JSON Schema of its own, and tool turns that need their thoughts. */
export const kimi: readonly Rule[] = [
  functionsOnly,
  pairs,
  { name: 'tool schemas', refusal: kimiSchemas },
  {
    name: 'thoughts of tool turns',
    refusal: (body) =>
      objectsOf(body.messages).some(
        ({ tool_calls, reasoning_content }) => tool_calls && typeof reasoning_content !== 'string',
      )
        ? 'thinking is enabled but reasoning_content is missing in assistant tool call message'
        : undefined,
  },
  {
    name: 'forced tools',
    refusal: ({ tool_choice }) =>
      tool_choice === undefined || tool_choice === 'auto' || tool_choice === 'none'
        ? undefined
        : `tool_choice '${JSON.stringify(tool_choice)}' is incompatible with thinking enabled`,
  },
  {
    name: 'sampling',
    refusal: ({ temperature }) =>
      temperature === undefined || temperature === 1
        ? undefined
        : 'invalid temperature: only 1 is allowed for this model',
  },
  {
    name: 'roles',
    refusal: (body) =>
      firstOf(objectsOf(body.messages), ({ role }) =>
        role === 'developer' ? `unsupported role: developer` : undefined,
      ),
  },
]

function functionsOf(body: Fields): Fields[] {
  return objectsOf(body.tools).map((tool) => fieldsOf(tool.function))
}

function thinks(body: Fields): boolean {
  return fieldsOf(body.thinking).type !== 'disabled'
}

function argumentsProblem(body: Fields): string | undefined {
  const calls = objectsOf(body.messages).flatMap(({ tool_calls }) => objectsOf(tool_calls))
  return firstOf(calls, (call) => {
    try {
      return typeof JSON.parse(textOf(fieldsOf(call.function).arguments)) === 'object'
        ? undefined
        : 'arguments must be an object'
    } catch {
      return 'Expecting value: line 1 column 1 (char 0)'
    }
  })
}

function mistralIds(body: Fields): string | undefined {
  const messages = objectsOf(body.messages)
  const ids = [
    ...messages.flatMap(({ tool_calls }) => objectsOf(tool_calls).map(({ id }) => id)),
    ...messages.map(({ tool_call_id }) => tool_call_id),
  ]
  const wrong = ids.find((id) => id !== undefined && !/^[a-zA-Z0-9]{9}$/.test(textOf(id)))
  return wrong === undefined ? undefined : `Tool call id was ${wrong} but must be a-z, A-Z, 0-9, with a length of 9.`
}

function kimiSchemas(body: Fields): string | undefined {
  return firstOf(functionsOf(body), ({ name, parameters }) => {
    const problem = firstOf([...schemasIn(fieldsOf(parameters))], (schema) => {
      const union = 'anyOf' in schema || 'oneOf' in schema
      if (union && 'type' in schema)
        return `when using anyOf, type should be defined in anyOf items instead of the parent schema`
      if ('$ref' in schema && 'type' in schema) return 'type is not allowed beside $ref'
      return union || '$ref' in schema || 'type' in schema || 'enum' in schema || Object.keys(schema).length === 0
        ? undefined
        : 'type is not defined'
    })
    return parameters
      ? problem &&
          `tools.function.parameters is not a valid moonshot flavored json schema, details: <${name}: ${problem}>`
      : undefined
  })
}
