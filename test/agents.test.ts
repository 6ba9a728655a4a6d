import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fieldsOf } from '../tools/agents/fields.ts'
import { type LoopbackProvider, startProvider } from '../tools/agents/provider.ts'
import { anthropic } from '../tools/agents/rules/anthropic.ts'
import { gemini } from '../tools/agents/rules/gemini.ts'
import { deepseek, kimi, mistral, qwenAtVllm } from '../tools/agents/rules/open-models.ts'
import { openaiChat } from '../tools/agents/rules/openai-chat.ts'
import { openaiResponses } from '../tools/agents/rules/openai-responses.ts'
import type { Rule } from '../tools/agents/rules/rule.ts'
import { prompt, words } from '../tools/agents/script.ts'
import { targets } from '../tools/agents/targets.ts'

const parameters = { type: 'object', properties: { command: { type: 'string' } } }
const shell = { type: 'function', function: { name: 'bash', parameters } } as const
const hello = [{ role: 'user', content: 'Hello.' }]

describe('the providers of the agents', () => {
  const providers = new Map<string, LoopbackProvider>()
  beforeAll(async () => {
    for (const name of ['qwen', 'openai-responses', 'anthropic']) {
      const target = targets[name]
      if (target) providers.set(name, await startProvider(target))
    }
  })
  afterAll(() => {
    for (const provider of providers.values()) provider.close()
  })
  const openai = (name: string) => new OpenAI({ baseURL: providers.get(name)?.url ?? '', apiKey: 'k', maxRetries: 0 })

  test('call the tools of chat completions, whole and streamed', async () => {
    const request = { model: 'm', messages: [{ role: 'user' as const, content: prompt }], tools: [shell] }
    const whole = await openai('qwen').chat.completions.create(request)
    expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      function: { arguments: '{"command":"cat note.txt"}' },
    })
    const streamed = await openai('qwen').chat.completions.stream(request).finalChatCompletion()
    expect(streamed.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      function: { name: 'bash', arguments: '{"command":"cat note.txt"}' },
    })
  })

  test('call tools in a namespace of Responses by both names', async () => {
    const tool = { type: 'function' as const, name: 'bash', parameters, strict: false }
    const stream = openai('openai-responses').responses.stream({
      model: 'gpt-5.6-sol',
      input: prompt,
      tools: [{ type: 'namespace', name: 'here', description: '', tools: [tool] }],
    })
    const { output } = await stream.finalResponse()
    expect(output.at(-1)).toMatchObject({ type: 'function_call', namespace: 'here', name: 'bash' })
  })

  test('sign the thoughts of Messages, and answer once all words are there', async () => {
    const client = new Anthropic({
      baseURL: providers.get('anthropic')?.url ?? '',
      apiKey: 'k',
      maxRetries: 0,
    })
    const content = `${prompt} ${Object.values(words).join(' ')}`
    const message = await client.messages
      .stream({
        ...{ model: 'claude-sonnet-5', max_tokens: 99, thinking: { type: 'adaptive' } },
        messages: [{ role: 'user', content }],
        tools: [{ name: 'bash', input_schema: { type: 'object' } }],
      })
      .finalMessage()
    expect(message.content[0]).toMatchObject({ type: 'thinking', signature: expect.stringMatching(/.{40}/) })
    expect(message.content[1]).toMatchObject({ text: expect.stringContaining(words.agent) })
  })

  test('refuse in the words of the API', async () => {
    const call = openai('qwen').chat.completions.create({ model: 'm', messages: hello as [], tools: [] })
    await expect(call).rejects.toThrow('400 tools must not be an empty array')
  })
})

describe('each rule of the agents', () => {
  const call = (id: string, more: object = {}) => ({
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
    ...more,
  })
  const asked = (id: string, more: object = {}) => [
    ...hello,
    call(id, more),
    { role: 'tool', tool_call_id: id, content: 'x' },
  ]
  const named = (name: string) => [{ type: 'function', function: { name, parameters } }]
  const union = { type: 'object', anyOf: [{ required: ['a'] }] }
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'x' })

  /** A request that a rule refuses, and a similar one that it takes. */
  const cases: readonly [rules: readonly Rule[], name: string, refused: object, taken: object][] = [
    [openaiChat, 'unknown members', { top_k: 1 }, { top_p: 1 }],
    [openaiChat, 'tool names', { tools: named('a'.repeat(65)) }, { tools: named('a'.repeat(64)) }],
    [openaiChat, 'call ids', { messages: asked('c'.repeat(41)) }, { messages: asked('c'.repeat(40)) }],
    [openaiChat, 'number of tools', { tools: Array(129).fill(shell) }, { tools: Array(128).fill(shell) }],
    [openaiChat, 'kinds of tools', { tools: [{ type: 'namespace' }] }, { tools: [shell] }],
    [
      openaiChat,
      'tool schemas',
      { tools: [{ type: 'function', function: { name: 'f', parameters: union } }] },
      { tools: [shell] },
    ],
    [openaiChat, 'pairs of calls and results', { messages: [...hello, call('a')] }, { messages: asked('a') }],
    [openaiChat, 'tool_choice without tools', { tool_choice: 'auto' }, { tool_choice: 'auto', tools: [shell] }],
    [openaiChat, 'tools while thinking', { tools: [shell] }, { tools: [shell], reasoning_effort: 'none' }],
    [openaiChat, 'sampling while thinking', { temperature: 0 }, { temperature: 0, reasoning_effort: 'none' }],
    [openaiChat, 'efforts', { reasoning_effort: 'minimal' }, { reasoning_effort: 'max' }],
    [openaiChat, 'user', { user: 'u'.repeat(65) }, { user: 'u'.repeat(64) }],
    [openaiChat, 'metadata', { metadata: { a: 1 } }, { metadata: { a: '1' } }],
    [
      openaiResponses,
      'ids of calls and items',
      { input: [{ type: 'function_call', id: 'call_1' }] },
      { input: [{ type: 'function_call', id: 'fc_1' }] },
    ],
    [
      openaiResponses,
      'tool names',
      { tools: [{ type: 'namespace', name: 'n', tools: [{ name: 'a.b' }] }] },
      { tools: [{ type: 'namespace', name: 'n', tools: [{ name: 'a'.repeat(128) }] }] },
    ],
    [
      openaiResponses,
      'sealed reasoning of others',
      { input: [{ type: 'reasoning', encrypted_content: 'x' }] },
      { input: [{ type: 'reasoning', encrypted_content: 'gAAAAABx' }] },
    ],
    [
      openaiResponses,
      'reasoning without its item',
      { input: [{ type: 'reasoning' }, { role: 'user' }] },
      { input: [{ type: 'reasoning' }, { type: 'function_call' }] },
    ],
    [
      anthropic,
      'unknown members',
      { tools: [{ name: 'a', input_schema: {}, parameters: {} }] },
      { tools: [{ name: 'a', input_schema: {} }] },
    ],
    [
      anthropic,
      'call ids',
      { messages: [{ role: 'user', content: [result('a.b:1')] }] },
      { messages: [{ role: 'user', content: [result('a_b-1')] }] },
    ],
    [anthropic, 'metadata', { metadata: { user_id: 'a@b.com' } }, { metadata: { user_id: '{"session_id":"a"}' } }],
    [
      anthropic,
      'forced tools while thinking',
      { tool_choice: { type: 'any' } },
      { tool_choice: { type: 'any' }, thinking: { type: 'disabled' } },
    ],
    [
      anthropic,
      'signatures',
      { messages: [{ role: 'user', content: [{ type: 'thinking', signature: 'foreign' }] }] },
      { messages: [{ role: 'user', content: [{ type: 'thinking', signature: 'xEqQBCgIYAhIM' }] }] },
    ],
    [
      anthropic,
      'pairs of calls and results',
      { messages: [...hello, { role: 'user', content: [result('a')] }] },
      {
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a' }] },
          { role: 'user', content: [result('a')] },
        ],
      },
    ],
    [anthropic, 'empty text', { messages: [{ role: 'user', content: ' ' }] }, { messages: hello }],
    [
      gemini,
      'tool names',
      { tools: [{ functionDeclarations: [{ name: '1a' }] }] },
      { tools: [{ functionDeclarations: [{ name: 'a.1' }] }] },
    ],
    [
      gemini,
      'tool schemas',
      { tools: [{ functionDeclarations: [{ name: 'a', parameters: { additionalProperties: false } }] }] },
      { tools: [{ functionDeclarations: [{ name: 'a', parametersJsonSchema: { additionalProperties: false } }] }] },
    ],
    [
      gemini,
      'thought signatures',
      { contents: [{ role: 'model', parts: [{ functionCall: { name: 'a' } }] }] },
      {
        contents: [
          {
            role: 'model',
            parts: [{ functionCall: { name: 'a' }, thoughtSignature: 'skip_thought_signature_validator' }],
          },
        ],
      },
    ],
    [
      gemini,
      'pairs of calls and results',
      { contents: [{ parts: [{ functionCall: {} }] }, { parts: [{ text: 'x' }] }] },
      { contents: [{ parts: [{ functionCall: {} }] }, { parts: [{ functionResponse: {} }] }] },
    ],
    [deepseek, 'thoughts of tool turns', { messages: asked('a') }, { messages: asked('a', { reasoning_content: '' }) }],
    [deepseek, 'roles', { messages: [{ role: 'developer' }] }, { messages: [{ role: 'system' }] }],
    [
      qwenAtVllm,
      'system message first',
      { messages: [...hello, { role: 'system' }] },
      { messages: [{ role: 'system' }, ...hello] },
    ],
    [mistral, 'call ids', { messages: asked('call_1234') }, { messages: asked('abcdef123') }],
    [mistral, 'user after a result', { messages: [...asked('abcdef123'), ...hello] }, { messages: asked('abcdef123') }],
    [mistral, 'parameters', { tools: [{ type: 'function', function: { name: 'f' } }] }, { tools: [shell] }],
    [
      kimi,
      'tool schemas',
      {
        tools: [
          {
            type: 'function',
            function: { name: 'f', parameters: { type: 'object', properties: { a: { description: 'any' } } } },
          },
        ],
      },
      { tools: [shell] },
    ],
  ]

  test.each(cases.map(([rules, name, refused, taken]) => ({ rules, name, refused, taken })))(
    'refuses what it should, and no more: $name',
    ({ rules, name, refused, taken }) => {
      const rule = rules.find((one) => one.name === name)
      expect(rule?.refusal(fieldsOf(refused))).toEqual(expect.any(String))
      expect(rule?.refusal(fieldsOf(taken))).toBeUndefined()
    },
  )
})
