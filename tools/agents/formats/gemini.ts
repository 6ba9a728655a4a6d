import { type Conversation, type Format, type Reply, randomId, type Turn } from '../conversation.ts'
import { allText, type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'

/** Google's generateContent. */
export const gemini: Format = { read, write, error }

/** The signature of every call that this provider makes. */
export const thoughtSignature = Buffer.from('the thoughts before this call').toString('base64')

function read(body: Fields): Conversation {
  const contents = objectsOf(body.contents)
  const parts = contents.flatMap(({ parts }) => objectsOf(parts))
  const calls = parts.flatMap(({ functionCall }) => (functionCall ? [fieldsOf(functionCall)] : []))
  const results = parts.flatMap(({ functionResponse }) => (functionResponse ? [fieldsOf(functionResponse)] : []))
  const declarations = objectsOf(body.tools).flatMap(({ functionDeclarations }) => objectsOf(functionDeclarations))
  return {
    tools: declarations.map(({ name, parameters, parametersJsonSchema }) => ({
      name: textOf(name),
      kind: 'function',
      parameters: fieldsOf(parametersJsonSchema ?? parameters),
    })),
    user: contents
      .filter(({ role }) => role === 'user')
      .flatMap(({ parts }) => objectsOf(parts).map(({ text }) => textOf(text)))
      .join('\n'),
    calls: calls.map(({ id, name }) => ({ id: textOf(id), name: textOf(name) })),
    results: results.map(({ id, response }) => ({ id: textOf(id), text: allText(response) })),
  }
}

function write(turn: Turn, request: Fields): Reply {
  const { includeThoughts } = fieldsOf(fieldsOf(request.generationConfig).thinkingConfig)
  const part =
    'call' in turn
      ? { functionCall: { id: randomId('', 8), name: turn.call.tool.name, args: turn.call.input }, thoughtSignature }
      : { text: turn.text }
  const parts = [...(includeThoughts === true ? [{ text: 'The next step.', thought: true }] : []), part]
  const end = {
    usageMetadata: { promptTokenCount: 1_000, candidatesTokenCount: 40, totalTokenCount: 1_040 },
    modelVersion: 'gemini',
    responseId: randomId('', 22),
  }
  const candidate = (content: Fields[], more: Fields = {}) => ({
    candidates: [{ content: { role: 'model', parts: content }, index: 0, ...more }],
  })
  return {
    whole: { ...candidate(parts, { finishReason: 'STOP' }), ...end },
    events: [
      ...parts.map((one) => ({ data: candidate([one]) })),
      { data: { ...candidate([{ text: '' }], { finishReason: 'STOP' }), ...end } },
    ],
  }
}

function error(message: string, code: number): Fields {
  const statuses: Record<number, string> = {
    400: 'INVALID_ARGUMENT',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    503: 'UNAVAILABLE',
  }
  return { error: { code, message, status: statuses[code] ?? 'INTERNAL' } }
}
