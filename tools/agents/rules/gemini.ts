import { type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'
import { thoughtSignature } from '../formats/gemini.ts'
import { first, firstOf, type Rule, schemasIn, unknownMember } from './rule.ts'

const members = [
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  'safetySettings',
  'cachedContent',
  'labels',
  'serviceTier',
  'store',
]
const partMembers = [
  'text',
  'thought',
  'thoughtSignature',
  'functionCall',
  'functionResponse',
  'inlineData',
  'fileData',
  'videoMetadata',
  'mediaResolution',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
  'partMetadata',
]
const levels = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH']

/** Limits of Gemini 3.5 Flash. */
export const gemini: readonly Rule[] = [
  { name: 'unknown members', refusal: unknown },
  { name: 'tool names', refusal: toolNames },
  { name: 'tool schemas', refusal: schemas },
  { name: 'thought signatures', refusal: signatures },
  { name: 'pairs of calls and results', refusal: pairs },
  { name: 'order of contents', refusal: order },
  { name: 'empty parts', refusal: emptyParts },
  { name: 'thinking', refusal: thinking },
  {
    name: 'stop sequences',
    refusal: ({ generationConfig }) =>
      objectsOf(fieldsOf(generationConfig).stopSequences).length > 5
        ? 'The number of stop sequences must be at most 5.'
        : undefined,
  },
]

function partsOf(content: Fields): readonly Fields[] {
  return objectsOf(content.parts)
}

function unknown(body: Fields): string | undefined {
  const cannotFind = (name: string, path: string) =>
    `Invalid JSON payload received. Unknown name "${name}"${path && ` at '${path}'`}: Cannot find field.`
  const top = unknownMember(body, members)
  if (top) return cannotFind(top, '')
  return firstOf(objectsOf(body.contents), (content, at) =>
    firstOf(partsOf(content), (part, index) => {
      const name = unknownMember(part, partMembers)
      return name && cannotFind(name, `contents[${at}].parts[${index}]`)
    }),
  )
}

function declarations(body: Fields): Fields[] {
  return objectsOf(body.tools).flatMap(({ functionDeclarations }) => objectsOf(functionDeclarations))
}

function toolNames(body: Fields): string | undefined {
  return firstOf(declarations(body), ({ name }, at) =>
    /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(textOf(name))
      ? undefined
      : `Invalid value at 'tools[0].function_declarations[${at}].name': Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.`,
  )
}

function schemas(body: Fields): string | undefined {
  return firstOf(declarations(body), ({ parameters, parametersJsonSchema }, at) => {
    const path = `tools[0].function_declarations[${at}]`
    const inOpenApi = parameters ? unknownInOpenApi(fieldsOf(parameters), `${path}.parameters`) : undefined
    return inOpenApi ?? first([...schemasIn(fieldsOf(parametersJsonSchema))].map((schema) => jsonProblem(schema, path)))
  })
}

/** JSON Schema's keywords are unknown in the older form of parameters. */
function unknownInOpenApi(schema: Fields, path: string): string | undefined {
  const found = ['$schema', '$ref', 'additionalProperties', 'const', 'exclusiveMinimum', 'propertyNames'].find(
    (name) => name in schema,
  )
  return found && `Invalid JSON payload received. Unknown name "${found}" at '${path}': Cannot find field.`
}

function jsonProblem(schema: Fields, path: string): string | undefined {
  if ('$ref' in schema) {
    const beside = Object.keys(schema).find((name) => !name.startsWith('$'))
    return beside && `${path}.parameters_json_schema: '$ref' must not have other fields beside it, found '${beside}'.`
  }
  if (schema.type === 'array' && !('items' in schema) && !('prefixItems' in schema))
    return `${path}.parameters_json_schema.items: missing field.`
  if (!Array.isArray(schema.enum)) return undefined
  return schema.enum.some((value) => typeof value !== 'string' || value === '')
    ? `${path}.parameters_json_schema.enum: cannot be empty and must hold strings.`
    : undefined
}

/** The first call of each turn has the signature of the thoughts before it. */
function signatures(body: Fields): string | undefined {
  return firstOf(objectsOf(body.contents), (content, at) => {
    const call = partsOf(content).find(({ functionCall }) => functionCall)
    if (!call) return undefined
    const { name } = fieldsOf(call.functionCall)
    if (!call.thoughtSignature)
      return `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call \`default_api:${name}\`, position ${at}.`
    return [thoughtSignature, 'skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'].includes(
      textOf(call.thoughtSignature),
    )
      ? undefined
      : 'Thought signature is not valid.'
  })
}

function pairs(body: Fields): string | undefined {
  const list = objectsOf(body.contents)
  const count = (content: Fields | undefined, member: string) =>
    content ? partsOf(content).filter((part) => part[member]).length : 0
  return firstOf(list, (content, at) =>
    count(content, 'functionCall') !== count(list[at + 1], 'functionResponse') && at + 1 < list.length
      ? 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
      : undefined,
  )
}

function order(body: Fields): string | undefined {
  const list = objectsOf(body.contents)
  if (list[0]?.role !== 'user') return 'Please ensure that the conversation starts with a user turn.'
  return firstOf(list, ({ role, parts }, at) => {
    if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.'
    const isCall = objectsOf(parts).some(({ functionCall }) => functionCall)
    return isCall && list[at - 1]?.role !== 'user'
      ? 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
      : undefined
  })
}

function emptyParts(body: Fields): string | undefined {
  return firstOf(objectsOf(body.contents), (content, at) => {
    if (partsOf(content).length === 0)
      return `* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.`
    const isEmpty = partsOf(content).some((part) => Object.keys(part).length === 0)
    return isEmpty
      ? `* GenerateContentRequest.contents[${at}].parts: required oneof field 'data' must have one initialized field`
      : undefined
  })
}

function thinking({ generationConfig }: Fields): string | undefined {
  const { thinkingLevel, thinkingBudget } = fieldsOf(fieldsOf(generationConfig).thinkingConfig)
  if (thinkingLevel !== undefined && thinkingBudget !== undefined)
    return 'You can only set only one of thinking budget and thinking level.'
  return thinkingLevel === undefined || levels.includes(textOf(thinkingLevel).toUpperCase())
    ? undefined
    : `Thinking level ${thinkingLevel} is not supported for this model.`
}
