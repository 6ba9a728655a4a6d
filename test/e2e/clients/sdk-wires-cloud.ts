import { awsEvent } from '../../helpers/aws-frames.ts'
import {
  type Body,
  counted,
  endOf,
  frame,
  joined,
  pieces,
  type Reply,
  signatureOf,
  source,
  textIn,
  turn,
  type Wire,
  wordsOf,
} from './sdk-wire.ts'

// Gemini and Bedrock's Converse.

/** What a search found is counted beside the prompt. */
const foundTokens = 10
const usageOf = ({ cached, search }: Reply) => ({
  promptTokenCount: counted.input - (search === undefined ? 0 : foundTokens),
  ...(search !== undefined && { toolUsePromptTokenCount: foundTokens }),
  candidatesTokenCount: counted.output,
  totalTokenCount: counted.input + counted.output,
  ...(cached && { cachedContentTokenCount: cached }),
})
const geminiEnds = { length: 'MAX_TOKENS', filter: 'SAFETY' }
/** That there was a search is told from the first event on, what it was for in the last one. */
const chunk = (reply: Reply, parts: object[], more: object = {}) => ({
  candidates: [
    {
      content: { parts, role: 'model' },
      index: 0,
      ...(reply.search !== undefined && { groundingMetadata: {} }),
      ...more,
    },
  ],
  usageMetadata: usageOf(reply),
  modelVersion: 'gemini-3.5-flash',
  responseId: 'mFNKaZ6UNKyMvdIP',
})

/** The signature of reasoning is on the first call, or on the text. */
function partsOf({ thought, text, calls = [] }: Reply): { [name: string]: unknown }[] {
  const signature = thought === undefined ? {} : { thoughtSignature: signatureOf(thought) }
  return [
    ...(thought === undefined ? [] : [{ text: thought, thought: true }]),
    ...(text === undefined ? [] : [{ text, ...(calls.length === 0 && signature) }]),
    ...calls.map(({ id, nameless, name, arguments: args }, index) => ({
      functionCall: { ...(!nameless && { id: `fc-${id}` }), name, args },
      ...(index === 0 && signature),
    })),
  ]
}

function grounding({ search, text = '', cited }: Reply): object {
  if (search === undefined) return {}
  const segment = { startIndex: 0, endIndex: Buffer.byteLength(text), text }
  return {
    groundingMetadata: {
      webSearchQueries: [search],
      groundingChunks: [{ web: { uri: source.url, title: source.title } }],
      groundingSupports: cited ? [{ segment, groundingChunkIndices: [0] }] : [],
    },
  }
}

const errorNames: { [status: number]: string } = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}
const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '6.4s' }

/** Gemini API v1beta. */
export const geminiWire: Wire = {
  dialect: 'gemini',
  slug: 'google',
  env: { GEMINI_API_KEY: 'played' },
  models: { plain: 'google/gemini-3.5-flash', thinker: 'google/gemini-3.5-flash', searcher: 'google/gemini-3.5-flash' },
  lacks: { 'custom tools': true },
  address: {
    path: /^\/models\/gemini-3\.5-flash:(generateContent|streamGenerateContent\?alt=sse|countTokens)$/,
    headers: { 'x-goog-api-key': 'played' },
  },
  ends: geminiEnds,
  cost: (30 * 1.5 + 10 * 0.15 + 12 * 9) / 1e6,
  failures: {
    refusal: (status) => ({
      status,
      body: {
        error: {
          ...{ code: status, message: `FakeProvider ${status}`, status: errorNames[status] },
          ...(status === 429 && { details: [retryInfo] }),
        },
      },
    }),
    frame: frame({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
  },
  contentType: 'text/event-stream',
  isStream: (path) => path.includes(':streamGenerateContent'),
  whole: (reply) =>
    chunk(reply, partsOf(reply), { finishReason: endOf(reply, geminiEnds, 'STOP'), ...grounding(reply) }),
  frames: (reply) => [
    ...partsOf(reply).flatMap(({ text, ...part }) => {
      if (typeof text !== 'string') return [frame(chunk(reply, [part]))]
      const { thoughtSignature: _last, ...plain } = part
      return pieces(text).map((piece) => frame(chunk(reply, [{ text: piece, ...plain }])))
    }),
    // The signature of a text comes after its end.
    frame(
      chunk(
        reply,
        [{ text: '', ...(reply.thought && !reply.calls && { thoughtSignature: signatureOf(reply.thought) }) }],
        {
          finishReason: endOf(reply, geminiEnds, 'STOP'),
          ...grounding(reply),
        },
      ),
    ),
  ],
  read: ({ systemInstruction, contents, tools = [], generationConfig: config, toolConfig }) => ({
    system: wordsOf(systemInstruction?.parts ?? ''),
    tools: tools.flatMap(({ functionDeclarations: declared = [] }: Body) => declared.map(({ name }: Body) => name)),
    hasSchema: config?.responseJsonSchema !== undefined || config?.responseSchema !== undefined,
    searches: tools.some(({ googleSearch }: Body) => googleSearch),
    limit: config?.maxOutputTokens,
    stops: config?.stopSequences,
    mustCall: toolConfig?.functionCallingConfig?.mode === 'ANY',
    turns: joined(
      contents.map(({ role, parts }: { role: string; parts: Body[] }) => {
        const media = parts.flatMap(({ inlineData, fileData }) => inlineData ?? fileData ?? [])
        return turn(role, {
          text: textIn(parts),
          images: media
            .filter(({ mimeType }) => mimeType?.startsWith('image/'))
            .map(({ data, fileUri }) => data ?? fileUri),
          files: media.filter(({ mimeType }) => !mimeType?.startsWith('image/')).length,
          calls: parts.flatMap(({ functionCall: call }) =>
            call ? { id: call.id, name: call.name, arguments: call.args } : [],
          ),
          results: parts.flatMap(({ functionResponse: result }) =>
            result ? { id: result.id, text: JSON.stringify(result.response) } : [],
          ),
        })
      }),
    ),
  }),
  thoughtSent: signatureOf,
}

function converseBlocks({ thought, search, text, calls = [], cited }: Reply): Body[] {
  const found = { toolUseId: 's1', type: 'nova_grounding_result', status: 'success', content: [{ text: 'hidden' }] }
  return [
    ...(thought === undefined
      ? []
      : [{ reasoningContent: { reasoningText: { text: thought, signature: signatureOf(thought) } } }]),
    ...(search === undefined
      ? []
      : [
          { toolUse: { toolUseId: 's1', name: 'nova_grounding', type: 'server_tool_use', input: { query: search } } },
          { toolResult: found },
        ]),
    ...(text === undefined ? [] : [{ text }]),
    ...(cited
      ? [{ citationsContent: { citations: [{ location: { web: { url: source.url, domain: 'example.com' } } }] } }]
      : []),
    ...calls.map(({ id, name, arguments: input }) => ({ toolUse: { toolUseId: `tooluse_${id}`, name, input } })),
  ]
}

const converseEnds = { length: 'max_tokens', filter: 'content_filtered' }
const stopOf = (reply: Reply) => (reply.calls ? 'tool_use' : endOf(reply, converseEnds, 'end_turn'))
const converseUsage = {
  usage: { inputTokens: counted.input, outputTokens: counted.output, totalTokens: counted.input + counted.output },
  metrics: { latencyMs: 900 },
}

/** The start of a block, where it has one, and its deltas. */
function converseEvents(block: Body): { start?: object; deltas: object[] } {
  if (block.text !== undefined) return { deltas: pieces(block.text).map((text) => ({ text })) }
  if (block.reasoningContent) {
    const { text, signature } = block.reasoningContent.reasoningText
    const words = pieces(text).map((piece) => ({ reasoningContent: { text: piece } }))
    return { deltas: [...words, { reasoningContent: { signature } }] }
  }
  if (block.toolUse) {
    const { input, ...toolUse } = block.toolUse
    return { start: { toolUse }, deltas: pieces(JSON.stringify(input)).map((piece) => ({ toolUse: { input: piece } })) }
  }
  if (block.toolResult) {
    const { content, ...toolResult } = block.toolResult
    return { start: { toolResult }, deltas: [{ toolResult: content }] }
  }
  return { deltas: block.citationsContent.citations.map((citation: object) => ({ citation })) }
}

/** Amazon Bedrock's Converse, in frames of the AWS event stream. */
export const converseWire: Wire = {
  dialect: 'bedrock-converse',
  slug: 'bedrock',
  env: { AWS_ACCESS_KEY_ID: 'AKIAPLAYED', AWS_SECRET_ACCESS_KEY: 'played', AWS_REGION: 'us-east-1' },
  models: {
    plain: 'bedrock/anthropic.claude-haiku-4-5-20251001-v1:0',
    thinker: 'bedrock/anthropic.claude-opus-4-8',
    searcher: 'bedrock/us.amazon.nova-2-lite-v1:0',
  },
  lacks: { 'custom tools': true },
  address: {
    path: /^\/model\/[^/]+\/converse(-stream)?$/,
    headers: { authorization: /^AWS4-HMAC-SHA256 Credential=AKIAPLAYED\// },
  },
  ends: converseEnds,
  contentType: 'application/vnd.amazon.eventstream',
  isStream: (path) => path.endsWith('/converse-stream'),
  whole: (reply) => ({
    output: { message: { role: 'assistant', content: converseBlocks(reply) } },
    stopReason: stopOf(reply),
    ...converseUsage,
  }),
  frames: (reply) => [
    awsEvent('messageStart', { role: 'assistant' }),
    ...converseBlocks(reply).flatMap((block, contentBlockIndex) => {
      const { start, deltas } = converseEvents(block)
      return [
        ...(start ? [awsEvent('contentBlockStart', { contentBlockIndex, start })] : []),
        ...deltas.map((delta) => awsEvent('contentBlockDelta', { contentBlockIndex, delta })),
        awsEvent('contentBlockStop', { contentBlockIndex }),
      ]
    }),
    awsEvent('messageStop', { stopReason: stopOf(reply) }),
    awsEvent('metadata', converseUsage),
  ],
  read: ({ system = [], messages, toolConfig, outputConfig, inferenceConfig }) => ({
    system: wordsOf(system),
    tools: (toolConfig?.tools ?? []).flatMap(({ toolSpec }: Body) => toolSpec?.name ?? []),
    hasSchema: outputConfig?.textFormat?.type === 'json_schema',
    searches: (toolConfig?.tools ?? []).some(({ systemTool }: Body) => systemTool),
    limit: inferenceConfig?.maxTokens,
    stops: inferenceConfig?.stopSequences,
    mustCall: toolConfig?.toolChoice?.any !== undefined,
    turns: joined(
      messages.map(({ role, content }: { role: string; content: Body[] }) =>
        turn(role, {
          text: textIn(content),
          images: content.flatMap(({ image }) => image?.source.bytes ?? []),
          files: content.filter(({ document }) => document).length,
          calls: content.flatMap(({ toolUse: call }) =>
            call ? { id: call.toolUseId, name: call.name, arguments: call.input } : [],
          ),
          results: content.flatMap(({ toolResult: result }) =>
            result ? { id: result.toolUseId, text: wordsOf(result.content) } : [],
          ),
        }),
      ),
    ),
  }),
  thoughtSent: signatureOf,
}
