const tools = ['search_orders', 'refund_order', 'send_mail'].map((name) => ({
  kind: 'function',
  name,
  description: `Calls ${name.replace('_', ' ')} of the shop.`,
  parameters: {
    type: 'object',
    properties: { id: { type: 'string' }, limit: { type: 'integer' }, reason: { type: 'string' } },
    required: ['id'],
  },
}))

function turn(index: number): object[] {
  const id = `toolu_0${index}`
  return [
    { role: 'user', parts: [{ type: 'text', text: `Where is order ${index}? It should have arrived last week.` }] },
    {
      role: 'assistant',
      parts: [
        { type: 'text', text: 'Let me look that up.' },
        { type: 'tool_call', id, name: 'search_orders', arguments: `{"id":"order-${index}","limit":5}` },
      ],
    },
    {
      role: 'user',
      parts: [{ type: 'tool_result', id, parts: [{ type: 'text', text: `{"status":"shipped","index":${index}}` }] }],
    },
  ]
}

/** A neutral request: a conversation of ten messages with three rounds of tools. */
export const conversation = {
  model: 'claude-sonnet-4-5',
  system: [{ type: 'text', text: 'You help customers of a shop. Be brief and exact.' }],
  messages: [
    ...turn(1),
    ...turn(2),
    ...turn(3),
    { role: 'user', parts: [{ type: 'text', text: 'Thank you. Refund the last one.' }] },
  ],
  tools,
  tool_choice: 'auto',
  max_output_tokens: 1024,
  temperature: 0.5,
  stop: ['END'],
  stream: true,
  target: { signer: 'anthropic', traits: {} },
}

/** A reply of the Gemini API: text and a call. */
export const geminiReply = {
  candidates: [
    {
      content: {
        role: 'model',
        parts: [
          { text: 'The order was shipped on Monday.', thoughtSignature: 'c2lnbmF0dXJl' },
          { functionCall: { id: 'call_1', name: 'refund_order', args: { id: 'order-3', reason: 'late' } } },
        ],
      },
      finishReason: 'STOP',
      index: 0,
    },
  ],
  usageMetadata: {
    promptTokenCount: 812,
    cachedContentTokenCount: 512,
    candidatesTokenCount: 42,
    thoughtsTokenCount: 100,
    totalTokenCount: 954,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 812 }],
  },
  modelVersion: 'gemini-3-pro',
  responseId: 'abc123',
}

/** A delta of text in an Anthropic stream. */
export const textDelta = {
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text: ' shipped on Monday' },
}

/** A chunk of text in a Gemini stream. */
export const geminiChunk = {
  candidates: [{ content: { role: 'model', parts: [{ text: ' shipped on Monday' }] }, index: 0 }],
  usageMetadata: {
    promptTokenCount: 812,
    candidatesTokenCount: 4,
    totalTokenCount: 816,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 812 }],
  },
  modelVersion: 'gemini-3-pro',
  responseId: 'abc123',
}

/** A chunk of text in a stream of Chat Completions. */
export const chatChunk = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_760_000_000,
  model: 'gpt-5',
  service_tier: 'default',
  system_fingerprint: null,
  choices: [{ index: 0, delta: { content: ' shipped on Monday' }, logprobs: null, finish_reason: null }],
  usage: null,
  obfuscation: 'abc',
}
