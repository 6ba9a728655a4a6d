import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { ClientTool, Message, NeutralRequest, ToolChoice } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { loadDialect } from '../../src/manifest/read/dialect.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { unsupportedByMapping } from '../../src/manifest/run/inferred-support.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { framesOf } from './bedrock-converse-reader.ts'
import { serviceModelMissing, violations } from './converse-model.ts'
import { benchDialect, type Example } from './replay.ts'

const converse = benchDialect('bedrock-converse')
const provider = loadedProvider()

const budgeted = 'anthropic.claude-haiku-4-5-20251001-v1:0'
const adaptive = 'us.anthropic.claude-opus-4-6-v1'
const newest = 'us.anthropic.claude-sonnet-5'
const nova = 'us.amazon.nova-2-lite-v1:0'
const open = 'openai.gpt-oss-120b-1:0'
const mistral = 'mistral.mistral-large-3-675b-instruct'
const llama = 'meta.llama3-3-70b-instruct-v1:0'

// biome-ignore lint/suspicious/noExplicitAny: bodies and schemas have the shape of their source.
type Body = any
type RequestFields = Partial<NeutralRequest>
type Examples = { examples: Example[] }

describe('turns', () => {
  test('without content for this provider are dropped, and their neighbours are merged', async () => {
    const { messages } = await sent({
      messages: [
        user('Hi'),
        { role: 'assistant', parts: [{ type: 'reasoning', text: 'Hm', signature: 's', by: 'another' }] },
        user('Still there?'),
        { role: 'assistant', parts: [{ type: 'text', text: 'Yes.' }] },
        user('Good.'),
      ],
    })
    expect(messages).toEqual([
      { role: 'user', content: [{ text: 'Hi' }, { text: 'Still there?' }] },
      { role: 'assistant', content: [{ text: 'Yes.' }] },
      { role: 'user', content: [{ text: 'Good.' }] },
    ])
  })

  test('keep the turns of the user, even when all their parts are dropped', async () => {
    const { messages } = await sent({
      messages: [
        { role: 'user', parts: [{ type: 'image', file_id: 'file-1' }] },
        { role: 'assistant', parts: [{ type: 'text', text: 'Nice.' }] },
      ],
    })
    expect(messages).toEqual([
      { role: 'user', content: [{ text: '(unsupported content omitted)' }] },
      { role: 'assistant', content: [{ text: 'Nice.' }] },
    ])
  })

  test('without any message are a conversation that begins', async () => {
    const { messages } = await sent({ messages: [user(' ')] })
    expect(messages).toEqual([{ role: 'user', content: [{ text: '(The conversation begins.)' }] }])
  })

  test('of a prefilled reply end without white space; where prefilling is not supported the user asks to continue', async () => {
    const begun = [
      user('Count.'),
      { role: 'assistant' as const, parts: [{ type: 'text' as const, text: 'One,\n two \n' }] },
    ]
    expect((await sent({ messages: begun }, budgeted)).messages.at(-1).content).toEqual([{ text: 'One,\n two' }])
    expect((await sent({ messages: begun }, newest)).messages.at(-1)).toEqual({
      role: 'user',
      content: [{ text: 'Continue.' }],
    })
  })

  test('have instructions in the middle as notes, and at the beginning where a family has no system role', async () => {
    const requested: RequestFields = { system: [{ type: 'text', text: 'Be brief.' }], messages: [user('Hi')] }
    expect((await sent(requested)).system).toEqual([{ text: 'Be brief.' }])
    const titan = await sent(requested, 'amazon.titan-text-express-v1')
    expect(titan.system).toBeUndefined()
    expect(titan.messages[0].content).toEqual([{ text: 'Be brief.' }, { text: 'Hi' }])
  })

  test('of a conversation of thousands of messages are within the bounds of a mapping', async () => {
    const messages = Array.from({ length: 3_000 }, (_, index): Message => {
      return { role: index % 2 === 0 ? 'user' : 'assistant', parts: [{ type: 'text', text: `Message ${index}` }] }
    })
    expect((await written({ messages }, llama)).body.messages).toHaveLength(3_000)
  })
})

describe('media', () => {
  test.each<[Part, object | undefined]>([
    [
      { type: 'image', data: 'aGk=', media_type: 'image/jpg' },
      { image: { format: 'jpeg', source: { bytes: 'aGk=' } } },
    ],
    [
      { type: 'file', data: 'aGk=', media_type: 'image/webp' },
      { image: { format: 'webp', source: { bytes: 'aGk=' } } },
    ],
    [
      { type: 'image', file_id: 's3://bucket/a.png' },
      { image: { format: 'png', source: { s3Location: { uri: 's3://bucket/a.png' } } } },
    ],
    [
      { type: 'video', data: 'aGk=', media_type: 'video/3gpp' },
      { video: { format: 'three_gp', source: { bytes: 'aGk=' } } },
    ],
    [
      { type: 'audio', data: 'aGk=', media_type: 'audio/mpeg' },
      { audio: { format: 'mp3', source: { bytes: 'aGk=' } } },
    ],
    [
      { type: 'file', data: 'aGk=', media_type: 'application/json', filename: 'a.json' },
      { document: { format: 'txt', name: 'a', source: { bytes: 'aGk=' } } },
    ],
    [
      { type: 'file', data: 'aGk=', media_type: 'text/plain; charset=utf-8' },
      { document: { format: 'txt', name: 'document', source: { bytes: 'aGk=' } } },
    ],
    [
      { type: 'file', data: 'aGk=', filename: 'ü.docx' },
      { document: { format: 'docx', name: 'document', source: { bytes: 'aGk=' } } },
    ],
    [{ type: 'file', data: 'aGk=', media_type: 'application/zip', filename: 'a.zip' }, undefined],
    [{ type: 'image', url: 'https://example.com/a.png' }, undefined],
    [{ type: 'file', data: 'aGk=', media_type: 'application/zip' }, undefined],
    // Office documents have xml in the middle of their type, and are no text.
    [
      {
        type: 'file',
        data: 'aGk=',
        media_type: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
        filename: 'a.pptx',
      },
      undefined,
    ],
    [{ type: 'file', data: 'aGk=' }, { document: { format: 'pdf', name: 'document', source: { bytes: 'aGk=' } } }],
    [{ type: 'file', file_id: 'file-1' }, undefined],
  ])('%j is %j, or reported', async (part, block) => {
    const requested: RequestFields = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'See.' }, part] }] }
    const { body, dropped } = await written(requested, budgeted)
    expectValid(body)
    expect(body.messages[0].content).toEqual([{ text: 'See.' }, ...(block ? [block] : [])])
    expect(dropped.length > 0, dropped.join()).toBe(block === undefined)
  })

  test('of a tool result stay in it, but sounds follow it', async () => {
    const parts: Part[] = [
      { type: 'text', text: 'done' },
      { type: 'image', data: 'aGk=', media_type: 'image/png' },
      { type: 'file', data: 'aGk=', media_type: 'application/pdf', filename: 'a.pdf' },
      { type: 'audio', data: 'aGk=', media_type: 'audio/wav' },
    ]
    const { messages } = await sent({
      messages: [user('Go'), calls('c'), { role: 'user', parts: [{ type: 'tool_result', id: 'c', parts }] }],
    })
    const [result, ...others] = messages[2].content
    expect(result.toolResult.content.map((reported: Body) => Object.keys(reported)[0])).toEqual([
      'text',
      'image',
      'document',
    ])
    expect(others).toEqual([{ audio: { format: 'wav', source: { bytes: 'aGk=' } } }])
  })

  test('that are documents follow a tool result whatever their name, and unsupported ones are reported', async () => {
    const result = (...parts: Part[]): RequestFields => ({
      messages: [user('Go'), calls('c'), { role: 'user', parts: [{ type: 'tool_result', id: 'c', parts }] }],
    })
    const sound = result({ type: 'file', data: 'aGk=', media_type: 'audio/wav' })
    expect((await sent(sound)).messages[2].content[1]).toEqual({ audio: { format: 'wav', source: { bytes: 'aGk=' } } })
    expect(await losses(sound)).toEqual([])
    expect(await losses(result({ type: 'file', data: 'aGk=', media_type: 'application/zip' }))).toEqual(['parts.file'])
  })

  test('of the assistant are not sent back, and its audio counts as lost although its transcript is sent', async () => {
    const drawn: Part = { type: 'image', data: 'aGk=', media_type: 'image/png' }
    const requested: RequestFields = {
      messages: [user('Draw.'), { role: 'assistant', parts: [{ type: 'text', text: 'Here.' }, drawn] }, user('Nice.')],
    }
    expect((await sent(requested)).messages[1].content).toEqual([{ text: 'Here.' }])
    expect(await losses(requested)).toEqual(['parts.image'])
    const heard: Part = { type: 'audio', data: 'aGk=', media_type: 'audio/amr', transcript: 'Hello' }
    const withAudio: RequestFields = { messages: [{ role: 'user', parts: [heard] }] }
    expect((await sent(withAudio)).messages[0].content).toEqual([{ text: 'Hello' }])
    expect(await losses(withAudio)).toEqual(['parts.audio'])
  })

  test('of the same name get unique names, wherever they are', async () => {
    const pdf: Part = { type: 'file', data: 'aGk=', media_type: 'application/pdf', filename: 'Report.pdf' }
    const { messages } = await sent({
      messages: [
        { role: 'user', parts: [{ type: 'text', text: 'Compare.' }, pdf, { ...pdf, filename: 'report.pdf' }] },
        calls('c'),
        { role: 'user', parts: [{ type: 'tool_result', id: 'c', parts: [pdf, pdf] }, pdf] },
      ],
    })
    const [compare, , results] = messages
    expect(compare.content.flatMap(({ document }: Body) => document?.name ?? [])).toEqual(['Report', 'report [2]'])
    expect(results.content[0].toolResult.content.map(({ document }: Body) => document.name)).toEqual([
      'Report [3]',
      'Report [4]',
    ])
    expect(results.content[1].document.name).toBe('Report [5]')
  })
})

describe('cache points', () => {
  const hinted: RequestFields = {
    system: [{ type: 'text', text: 'Be brief.', cache: { ttl: '1h' } }],
    messages: [
      {
        role: 'user',
        parts: [
          { type: 'text', text: 'Hi', cache: {} },
          { type: 'text', text: 'there' },
        ],
      },
    ],
    tools: [{ kind: 'function', name: 'f', cache: {} }],
  }
  const point = { cachePoint: { type: 'default' } }

  test('follow the part that they mark, where the family accepts them', async () => {
    const claude = await sent(hinted, budgeted)
    expect(claude.system).toEqual([{ text: 'Be brief.' }, { cachePoint: { type: 'default', ttl: '1h' } }])
    expect(claude.messages[0].content).toEqual([{ text: 'Hi' }, point, { text: 'there' }])
    expect(claude.toolConfig.tools[1]).toEqual(point)
    const amazon = await sent(hinted, nova)
    expect(amazon.system[1]).toEqual(point)
    expect(amazon.toolConfig.tools).toHaveLength(1)
    expect(await losses(hinted, nova)).toEqual(['tools.cache'])
    expect(JSON.stringify(await sent(hinted, llama))).not.toContain('cachePoint')
    expect((await losses(hinted, llama)).toSorted()).toEqual(['parts.cache', 'tools.cache'])
  })

  test('precede documents, and are dropped when nothing precedes them', async () => {
    const pdf: Part = { type: 'file', data: 'aGk=', media_type: 'text/csv', cache: {} }
    const behind = await sent({ messages: [{ role: 'user', parts: [{ type: 'text', text: 'Read.' }, pdf] }] }, budgeted)
    expect(behind.messages[0].content.map((block: Body) => Object.keys(block)[0])).toEqual([
      'text',
      'cachePoint',
      'document',
    ])
    const first = await sent({ messages: [{ role: 'user', parts: [pdf] }] }, budgeted)
    expect(first.messages[0].content.map((block: Body) => Object.keys(block)[0])).toEqual(['document', 'text'])
  })

  test('inside a tool result follow it', async () => {
    const parts: Part[] = [{ type: 'text', text: 'done', cache: {} }]
    const requested: RequestFields = {
      messages: [user('Go'), calls('c'), { role: 'user', parts: [{ type: 'tool_result', id: 'c', parts }] }],
    }
    expect((await sent(requested, budgeted)).messages[2].content[1]).toEqual(point)
  })
})

describe('tools', () => {
  const f: ClientTool = { kind: 'function', name: 'f', description: 'Does it.' }
  const g: ClientTool = { kind: 'function', name: 'g' }
  const loop = [user('Go'), calls('c'), results('c')]

  test.each<[ToolChoice | undefined, string, object | undefined, string[]]>([
    [undefined, budgeted, undefined, []],
    ['auto', budgeted, undefined, []],
    ['required', budgeted, { any: {} }, []],
    [{ name: 'g' }, nova, { tool: { name: 'g' } }, []],
    [{ name: 'g' }, mistral, { any: {} }, []],
    [{ allowed: ['g'], mode: 'required' }, budgeted, { any: {} }, []],
    ['required', llama, undefined, ['tool_choice']],
    ['required', newest, { any: {} }, []],
    ['required', 'us.anthropic.claude-fable-5', undefined, ['tool_choice']],
  ])('the choice %j for %s is %j', async (tool_choice, model, toolChoice, lost) => {
    const requested: RequestFields = { tools: [f, g], ...(tool_choice && { tool_choice }) }
    const { toolConfig, system, additionalModelRequestFields: more } = await sent(requested, model)
    expect(toolConfig.toolChoice).toEqual(toolChoice)
    expect(await losses(requested, model)).toEqual(lost)
    expect(system?.at(-1).text ?? '').toContain(lost.length > 0 ? 'Answer with a call' : '')
    if (model === newest) expect(more.thinking).toEqual({ type: 'disabled' })
  })

  test('are narrowed to the allowed, and to the one demanded where a family knows no names', async () => {
    const names = ({ toolConfig }: Body) => toolConfig.tools.map(({ toolSpec }: Body) => toolSpec.name)
    expect(names(await sent({ tools: [f, g], tool_choice: { allowed: ['g'], mode: 'auto' } }))).toEqual(['g'])
    expect(names(await sent({ tools: [f, g], tool_choice: { name: 'g' } }, mistral))).toEqual(['g'])
  })

  test('that must not be called are left out, unless the history has calls', async () => {
    expect((await sent({ tools: [f], tool_choice: 'none' })).toolConfig).toBeUndefined()
    const remaining = await sent({ tools: [f], tool_choice: 'none', messages: loop })
    expect(remaining.toolConfig.tools[0].toolSpec.name).toBe('f')
    expect(remaining.system.at(-1).text).toBe('Do not call any tool.')
    expect(await losses({ tools: [f], tool_choice: 'none', messages: loop })).toEqual(['tool_choice'])
  })

  test('of the history alone have placeholder definitions', async () => {
    const { toolConfig } = await sent({ messages: loop })
    expect(toolConfig.tools.map(({ toolSpec }: Body) => toolSpec.name)).toEqual(['f'])
  })

  test('are called one at a time by Claude’s own field, with the choice sent once', async () => {
    const one: RequestFields = { tools: [f], parallel_tool_calls: false }
    const auto = await sent(one, adaptive)
    expect(auto.additionalModelRequestFields.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true })
    const forced = await sent({ ...one, tool_choice: 'required' }, adaptive)
    expect(forced.toolConfig.toolChoice).toEqual({ any: {} })
    expect(forced.additionalModelRequestFields.tool_choice).toEqual({ disable_parallel_tool_use: true })
    expect(await losses(one, nova)).toEqual(['parallel_tool_calls'])
    expect((await sent({ parallel_tool_calls: false }, adaptive)).additionalModelRequestFields).toBeUndefined()
  })

  test('are strict where schemas bind', async () => {
    const strict: ClientTool = {
      ...f,
      strict: true,
      parameters: { type: 'object', properties: { n: { type: 'integer', minimum: 1 } } },
    }
    const { toolSpec } = (await sent({ tools: [strict] }, budgeted)).toolConfig.tools[0]
    expect(toolSpec).toMatchObject({ strict: true, inputSchema: { json: { additionalProperties: false } } })
    expect((await sent({ tools: [strict] }, newest)).toolConfig.tools[0].toolSpec.strict).toBeUndefined()
    expect(await losses({ tools: [strict] }, newest)).toEqual(['tools.strict'])
    expect(await losses({ tools: [strict] }, budgeted)).toEqual(['tools.parameters'])
    const loose: ClientTool = { ...strict, parameters: { type: 'object', additionalProperties: { type: 'string' } } }
    expect((await sent({ tools: [loose] }, budgeted)).toolConfig.tools[0].toolSpec.strict).toBeUndefined()
    expect(await losses({ tools: [loose] }, budgeted)).toEqual(['tools.strict'])
  })

  test('of one client API and of the provider are reported by their kind, and those of free text are functions', async () => {
    const others: NeutralRequest['tools'] = [
      { kind: 'custom', name: 'c' },
      { kind: 'mcp', by: 'responses', definition: { type: 'mcp' } },
      { kind: 'document', by: 'chat', definition: { type: 'document' } },
    ]
    expect((await sent({ tools: [f, ...others] })).toolConfig.tools).toHaveLength(2)
    expect(await losses({ tools: [f, ...others] })).toEqual(['tools.mcp', 'tools.document'])
  })

  test('that are not there cannot be demanded', async () => {
    const requested: RequestFields = { tools: [f], tool_choice: { name: 'h' } }
    expect((await sent(requested, budgeted)).toolConfig.toolChoice).toBeUndefined()
    expect(await losses(requested, budgeted)).toEqual(['tool_choice'])
    expect(await losses({ tool_choice: 'required' }, budgeted)).toEqual(['tool_choice'])
  })

  test('have ids of nine letters and digits for Mistral, the same for call and result', async () => {
    const { messages } = await sent({ messages: [user('Go'), calls('tooluse_abc'), results('tooluse_abc')] }, mistral)
    const id = messages[1].content[0].toolUse.toolUseId
    expect(id).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect(messages[2].content[0].toolResult.toolUseId).toBe(id)
  })

  test('that failed are marked, by status or as text', async () => {
    const failed: Message = { role: 'user', parts: [{ type: 'tool_result', id: 'c', parts: [], is_error: true }] }
    const results = async (model: string) =>
      (await sent({ messages: [user('Go'), calls('c'), failed] }, model)).messages[2].content[0].toolResult
    expect(await results(nova)).toMatchObject({ status: 'error', content: [{ text: '(no output)' }] })
    expect(await results(llama)).toEqual({ toolUseId: 'c', content: [{ text: 'The tool failed.' }] })
  })

  test('of free text and broken JSON are called with an object', async () => {
    for (const [text, input] of [
      ['', {}],
      ['{"a":', { input: '{"a":' }],
      ['[1]', { input: '[1]' }],
      ['{"a":1}', { a: 1 }],
    ] as const) {
      const call: Part = { type: 'tool_call', id: 'c', name: 'f', arguments: text }
      const { messages } = await sent({ messages: [user('Go'), { role: 'assistant', parts: [call] }, results('c')] })
      expect(messages[1].content[0].toolUse.input).toEqual(input)
    }
  })
})

describe('reasoning', () => {
  test.each<[string, RequestFields, object | undefined]>([
    [
      budgeted,
      { reasoning: { effort: 'medium' }, max_output_tokens: 4000 },
      { thinking: { type: 'enabled', budget_tokens: 2000 } },
    ],
    [
      budgeted,
      { reasoning: { budget: 5000 }, max_output_tokens: 4000 },
      { thinking: { type: 'enabled', budget_tokens: 5000 } },
    ],
    [budgeted, { reasoning: { effort: 'none' } }, undefined],
    [
      adaptive,
      { reasoning: { effort: 'xhigh' } },
      { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
    ],
    [
      adaptive,
      { reasoning: { budget: 2000, summary: 'auto' } },
      { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'medium' } },
    ],
    [newest, { reasoning: { effort: 'none' } }, { thinking: { type: 'disabled' } }],
    ['us.anthropic.claude-fable-5', { reasoning: { effort: 'none' } }, { output_config: { effort: 'low' } }],
    [nova, { reasoning: { effort: 'minimal' } }, { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'low' } }],
    [nova, { reasoning: { effort: 'max' } }, { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } }],
    [nova, { reasoning: { effort: 'none' } }, { reasoningConfig: { type: 'disabled' } }],
    [open, { reasoning: { effort: 'minimal' } }, { reasoning_effort: 'low' }],
    [open, { reasoning: { effort: 'xhigh' } }, { reasoning_effort: 'high' }],
  ])('%s is asked %j by %j', async (model, requested, fields) => {
    expect((await sent(requested, model)).additionalModelRequestFields).toEqual(fields)
    expect(await losses(requested, model)).not.toContain('reasoning')
  })

  test('is a loss where it is not supported, or a call is required', async () => {
    expect(await losses({ reasoning: { effort: 'high' } }, llama)).toEqual(['reasoning'])
    const forced: RequestFields = {
      reasoning: { effort: 'high' },
      tools: [{ kind: 'function', name: 'f' }],
      tool_choice: 'required',
    }
    for (const model of [budgeted, adaptive]) {
      expect((await sent(forced, model)).additionalModelRequestFields?.thinking?.type).not.toBe('enabled')
      expect((await sent(forced, model)).additionalModelRequestFields?.thinking?.type).not.toBe('adaptive')
      expect(await losses(forced, model)).toEqual(['reasoning'])
    }
  })

  test('goes back signed to its provider, as text to those that accept it, and to no other', async () => {
    const thought = async (part: Part, model: string) => {
      const body = await sent(
        { messages: [user('Hi'), { role: 'assistant', parts: [part, { type: 'text', text: 'Yes.' }] }, user('Go')] },
        model,
      )
      return body.messages[1].content[0].reasoningContent
    }
    const signed: Part = { type: 'reasoning', text: 'Hm', signature: 'c2VhbA==', by: 'bedrock' }
    const redacted: Part = { type: 'reasoning', encrypted: 'aGk=', by: 'bedrock' }
    const bare: Part = { type: 'reasoning', text: 'Hm', by: 'bedrock' }
    expect(await thought(signed, budgeted)).toEqual({ reasoningText: { text: 'Hm', signature: 'c2VhbA==' } })
    expect(await thought(redacted, budgeted)).toEqual({ redactedContent: 'aGk=' })
    expect(await thought(bare, budgeted)).toBeUndefined()
    expect(await thought({ ...signed, by: 'another' }, budgeted)).toBeUndefined()
    expect(await thought({ type: 'reasoning', text: 'Hm', signature: 's' }, budgeted)).toBeUndefined()
    expect(await thought(bare, 'moonshot.kimi-k2-thinking')).toEqual({ reasoningText: { text: 'Hm' } })
    expect(await thought(signed, llama)).toBeUndefined()
    const lost = (part: Part, model: string) => losses({ messages: [{ role: 'assistant', parts: [part] }] }, model)
    expect(await lost(signed, budgeted)).toEqual([])
    expect(await lost(bare, budgeted)).toEqual(['parts.reasoning'])
    expect(await lost(signed, llama)).toEqual(['parts.reasoning'])
    expect(await lost(signed, 'moonshot.kimi-k2-thinking')).toEqual(['parts.signature'])
  })

  test('does not drop sampling where it is not requested in the end', async () => {
    const requested: RequestFields = {
      reasoning: { effort: 'high' },
      tools: [{ kind: 'function', name: 'f' }],
      tool_choice: 'required',
      temperature: 0.5,
      top_k: 5,
    }
    expect(await sent(requested, budgeted)).toMatchObject({
      inferenceConfig: { temperature: 0.5 },
      additionalModelRequestFields: { top_k: 5 },
    })
    expect(await losses(requested, budgeted)).toEqual(['reasoning'])
    expect(await losses({ reasoning: { summary: 'auto' } }, open)).toEqual(['reasoning'])
  })

  test('at the highest level of Nova drops length and sampling, and reports it', async () => {
    const requested: RequestFields = {
      reasoning: { effort: 'high' },
      max_output_tokens: 100,
      temperature: 0.5,
      top_p: 0.5,
      top_k: 5,
    }
    expect((await sent(requested, nova)).inferenceConfig).toBeUndefined()
    expect(await losses(requested, nova)).toEqual(['max_output_tokens', 'temperature', 'top_p', 'top_k'])
  })
})

describe('the rest of a request', () => {
  test('samples as each family allows', async () => {
    const requested: RequestFields = { temperature: 0.5, top_p: 0.6, top_k: 7, max_output_tokens: 10 }
    expect(await sent(requested, budgeted)).toMatchObject({
      inferenceConfig: { maxTokens: 10, temperature: 0.5 },
      additionalModelRequestFields: { top_k: 7 },
    })
    expect(await losses(requested, budgeted)).toEqual(['top_p'])
    expect(await losses(requested, newest)).toEqual(['temperature', 'top_p', 'top_k'])
    expect((await sent(requested, nova)).additionalModelRequestFields).toEqual({ inferenceConfig: { topK: 7 } })
    expect((await sent(requested, llama)).inferenceConfig).toEqual({ maxTokens: 10, temperature: 0.5, topP: 0.6 })
    expect(await losses(requested, llama)).toEqual(['top_k'])
  })

  test('requests JSON by schema, or in the instructions', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } } }
    const requested: RequestFields = { response_format: { type: 'json_schema', name: 'n', schema } }
    const formal = await sent(requested, open)
    expect(JSON.parse(formal.outputConfig.textFormat.structure.jsonSchema.schema)).toEqual({
      ...schema,
      additionalProperties: false,
    })
    expect(formal.system).toBeUndefined()
    const body = await sent(requested, newest)
    expect(body.outputConfig).toBeUndefined()
    expect(body.system[0].text).toContain(JSON.stringify(schema))
    expect((await sent({ response_format: { type: 'json' } }, open)).system[0].text).toContain('JSON')
    const strict: RequestFields = {
      response_format: { type: 'json_schema', name: 'n', schema, strict: true, description: 'd' },
    }
    expect((await sent(strict, open)).outputConfig.textFormat.structure.jsonSchema.description).toBe('d')
    expect(await losses(strict, open)).toEqual([])
    expect(await losses(strict, newest)).toEqual(['response_format.strict', 'response_format.description'])
  })

  test('searches where the family can', async () => {
    const requested: RequestFields = { web_search: { max_uses: 2 }, tools: [{ kind: 'function', name: 'f' }] }
    const { toolConfig } = await sent(requested, nova)
    expect(toolConfig.tools.map((tool: Body) => Object.keys(tool)[0])).toEqual(['toolSpec', 'systemTool'])
    expect(await losses(requested, nova)).toEqual(['web_search.max_uses'])
    for (const model of [budgeted, 'eu.amazon.nova-2-lite-v1:0'])
      expect(await losses(requested, model)).toContain('web_search')
  })

  test('passes provider-specific fields by their own names', async () => {
    const extensions = {
      guardrailConfig: { guardrailIdentifier: 'abc', guardrailVersion: 'DRAFT', trace: 'enabled' },
      performanceConfig: { latency: 'optimized' },
      additionalModelRequestFields: { anthropic_beta: ['x'] },
      additionalModelResponseFieldPaths: ['/stop_sequence'],
      something: 1,
    }
    const { something, ...known } = extensions
    expect(await sent({ extensions }, budgeted)).toMatchObject(known)
    expect(await losses({ extensions }, budgeted)).toEqual(['extensions.something'])
  })

  test('requests the stop sequence that ended it, and passes permitted metadata', async () => {
    const body = await sent(
      { stop: ['END', '\n'], metadata: { team: 'blue', odd: 'ünï' }, service_tier: 'priority' },
      budgeted,
    )
    expect(body.additionalModelResponseFieldPaths).toEqual(['/stop_sequence', '/delta/stop_sequence'])
    expect(body.inferenceConfig.stopSequences).toEqual(['END'])
    expect(body.requestMetadata).toEqual({ team: 'blue' })
    expect(body.serviceTier).toEqual({ type: 'priority' })
    expect(await losses({ metadata: { odd: 'ünï' } })).toEqual([])
  })

  test('reports requested fields that it cannot carry, and no others', async () => {
    const requested: RequestFields = {
      messages: [
        {
          role: 'user',
          name: 'Ada',
          parts: [
            { type: 'text', text: 'Hi' },
            { type: 'search', query: 'x' },
          ],
        },
      ],
      seed: 1,
      frequency_penalty: 1,
      presence_penalty: 1,
      logit_bias: { 17: 1 },
      logprobs: {},
      verbosity: 'low',
      audio: {},
      prediction: {},
      cache: { key: 'k' },
      user: 'u',
      safety_identifier: 's',
      moderation: {},
      n: 2,
      store: true,
      modalities: ['text', 'audio'],
      service_tier: 'scale',
      tools: [{ kind: 'custom', name: 'c' }],
    }
    expect((await losses(requested)).toSorted()).toEqual(
      [
        'seed',
        'frequency_penalty',
        'presence_penalty',
        'logit_bias',
        'logprobs',
        'verbosity',
        'audio',
        'prediction',
        'user',
        'safety_identifier',
        'moderation',
        'n',
        'store',
        'modalities',
        'service_tier',
        'messages.name',
        'parts.search',
      ].toSorted(),
    )
    expect(
      await losses({ n: 1, store: false, modalities: ['text'], service_tier: 'auto', temperature: 1, top_p: 1 }),
    ).toEqual([])
  })

  test('never takes fields that Converse does not have', () => {
    expect(provider.chat && unsupportedByMapping(provider.chat.request.support)).toEqual([
      'seed',
      'frequency_penalty',
      'presence_penalty',
      'logit_bias',
      'logprobs',
      'n',
      'modalities',
      'audio',
      'prediction',
      'verbosity',
      'user',
      'safety_identifier',
      'store',
      'moderation',
      'parts.search',
    ])
  })
})

describe('the published model accepts the examples of the files', () => {
  for (const { name, operation, sends, answers } of [
    ...converse.examples,
    ...(sourceOf('bedrock').value as Examples).examples,
  ]) {
    // Other endpoints have forms of their own.
    if (operation) continue
    test(name, () => {
      if (sends) expectValid(sends)
      if (answers) expect(violations(answers, 'ConverseResponse').filter((one) => !one.includes('metrics'))).toEqual([])
    })
  }
})

describe.skipIf(recordingsMissing)('every recorded request of the OpenAI format', () => {
  for (const { case: name, request } of recordings('openai-chat')) {
    test.skipIf(!request?.body)(`${name} becomes a valid body`, async () => {
      const neutral = chat.read(request?.body)
      for (const model of [budgeted, adaptive, newest, nova, open, mistral, llama]) {
        const { messages, toolConfig } = await sent(neutral, model)
        expect(messages[0].role).toBe('user')
        for (const [index, { role }] of messages.entries()) expect(role).not.toBe(messages[index + 1]?.role)
        const blocks = messages.flatMap(({ content }: Body) => content)
        if (blocks.some(({ toolUse }: Body) => toolUse)) expect(toolConfig).toBeDefined()
        expectAnswered(messages)
      }
    })
  }
})

test.skipIf(recordingsMissing || serviceModelMissing)(
  'the reading of the published model accepts what was sent and answered',
  () => {
    for (const recording of recordings('bedrock-converse')) {
      expect(violations(recording.request?.body, 'ConverseRequest'), recording.case).toEqual([])
      for (const { event, data } of framesOf(recording) ?? []) {
        const { p, ...payload } = data as JsonObject
        const found = violations({ [event ?? '']: payload }, 'ConverseStreamOutput')
        expect(
          found.filter((one) => !/serverToolUsage|TokenCount|trace|tool_use is none/.test(one)),
          recording.case,
        ).toEqual([])
      }
    }
  },
)

test.skipIf(serviceModelMissing)('the reading of the published model rejects what the provider rejects', () => {
  const refused = (content: object) =>
    violations({ messages: [{ role: 'user', content: [content] }] } as unknown as JsonObject, 'ConverseRequest')
      .length > 0
  expect(refused({ text: 'Hi' })).toBe(false)
  expect(refused({ text: 'Hi', cachePoint: { type: 'default' } })).toBe(true)
  expect(refused({ image: { format: 'bmp', source: { bytes: 'aGk=' } } })).toBe(true)
  expect(refused({ toolResult: { toolUseId: 'a/b', content: [] } })).toBe(true)
  expect(refused({ unknown: 1 })).toBe(true)
  expect(violations({ toolConfig: { tools: [] } }, 'ConverseRequest')).toHaveLength(1)
})

/** Every turn with calls is followed by one with as many results, by the same ids in the same order. */
function expectAnswered(messages: Body[]): void {
  const ids = (message: Body, member: string): string[] =>
    (message?.content ?? []).flatMap((block: Body) => (block[member] ? [block[member].toolUseId] : []))
  for (const [index, message] of messages.entries()) {
    expect(ids(messages[index + 1], 'toolResult')).toEqual(ids(message, 'toolUse'))
  }
}

function loadedProvider(): Provider {
  const { dialect } = loadDialect(sourceOf('dialects/bedrock-converse'))
  const dialects = new Map(dialect && [['bedrock-converse', dialect]])
  const env = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
  const { loaded, problems } = loadManifest(sourceOf('bedrock'), { dialects, env })
  if (!loaded) throw new Error(problems.map(({ message }) => message).join('; '))
  return loaded.provider
}

function sourceOf(name: string) {
  const file = join(import.meta.dirname, `../../providers/${name}.yaml`)
  return readSource(file, readFileSync(file, 'utf8'))
}

function user(text: string): Message {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

function calls(...ids: string[]): Message {
  return { role: 'assistant', parts: ids.map((id) => ({ type: 'tool_call', id, name: 'f', arguments: '{"x":1}' })) }
}

function results(...ids: string[]): Message {
  return {
    role: 'user',
    parts: ids.map((id) => ({ type: 'tool_result', id, parts: [{ type: 'text', text: `result of ${id}` }] })),
  }
}

function whole(request: RequestFields, model: string): NeutralRequest {
  return { model, messages: [user('Hi')], origin: { api: 'chat', body: {} }, ...request }
}

async function written(requested: RequestFields, model: string): Promise<{ body: Body; dropped: string[] }> {
  return await writeRequest(provider, whole(requested, model), {
    model,
    entry: { api: 'chat', max_output_tokens: 64_000 },
  })
}

/** The body for a model of the manifest; every one is held against the published model. */
async function sent(requested: RequestFields, model = llama): Promise<Body> {
  const { body } = await written(requested, model)
  expectValid(body)
  return body
}

async function losses(requested: RequestFields, model = llama): Promise<string[]> {
  return (await written(requested, model)).dropped
}

function expectValid(body: JsonObject): void {
  expect(violations(body, 'ConverseRequest')).toEqual([])
}
