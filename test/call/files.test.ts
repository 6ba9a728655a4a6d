import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { fetchedFile, sentTo } from '../helpers/sent.ts'

const link = 'https://files.example/a.pdf'
const { data: pdf } = fetchedFile
const dataUrl = `data:application/pdf;base64,${pdf}`

const ofUser = (part: JsonObject): JsonObject => ({ messages: [{ role: 'user', content: [part] }] })
const input = (part: JsonObject): JsonObject => ({ input: [{ role: 'user', content: [part] }] })
const block = (source: JsonObject): JsonObject => ({ max_tokens: 9, ...ofUser({ type: 'document', source }) })

/** Every way in which a client may give a document, by what it gives. */
const documents: readonly [what: 'link' | 'data', name: string, api: ClientApi, body: JsonObject][] = [
  ['link', 'file', chat, ofUser({ type: 'file', file: { filename: 'a.pdf', file_data: link } })],
  ['link', 'file without a name', chat, ofUser({ type: 'file', file: { file_url: link } })],
  ['link', 'input_file', chat, ofUser({ type: 'input_file', filename: 'a.pdf', file_data: link })],
  ['link', 'file_url', chat, ofUser({ type: 'input_file', filename: 'a.pdf', file_url: link })],
  ['link', 'file_data', responses, input({ type: 'input_file', filename: 'a.pdf', file_data: link })],
  ['link', 'file_url', responses, input({ type: 'input_file', file_url: link })],
  ['link', 'source', messages, block({ type: 'url', url: link })],
  ['data', 'file', chat, ofUser({ type: 'file', file: { filename: 'a.pdf', file_data: dataUrl } })],
  ['data', 'bare file', chat, ofUser({ type: 'file', file: { filename: 'a.pdf', file_data: pdf } })],
  ['data', 'input_file', chat, ofUser({ type: 'input_file', filename: 'a.pdf', file_data: dataUrl })],
  ['data', 'bare input_file', chat, ofUser({ type: 'input_file', filename: 'a.pdf', file_data: pdf })],
  ['data', 'file_input', chat, ofUser({ type: 'file_input', filename: 'a.pdf', file_data: pdf })],
  ['data', 'file_data', responses, input({ type: 'input_file', filename: 'a.pdf', file_data: dataUrl })],
  ['data', 'bare file_data', responses, input({ type: 'input_file', filename: 'a.pdf', file_data: pdf })],
  ['data', 'source', messages, block({ type: 'base64', media_type: 'application/pdf', data: pdf })],
]

const targets = [
  'openai/gpt-5.4',
  'openai-responses/gpt-5.4',
  'azure/gpt-4o',
  'azure/gpt-5.1-codex',
  'anthropic/claude-sonnet-4-5',
  'azure/claude-haiku-4-5',
  'vertex/claude-opus-5',
  'vertex/gemini-3.5-flash',
  'google/gemini-3.5-flash',
  'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'bedrock/us.amazon.nova-pro-v1:0',
  'cohere/command-a-03-2025',
  'ollama/qwen3',
  'mistral/mistral-large-latest',
  'openrouter/openai/gpt-5',
  'groq/openai/gpt-oss-120b',
  'xai/grok-4.6',
  'vllm/any',
]

/** Every text in a body. */
function textsIn(value: Json | undefined): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isObject(value) ? Object.values(value).flatMap(textsIn) : []
}

describe.each(targets)('a document for %s', (id) => {
  test.each(documents)('as a %s in %s', async (what, _, api, given) => {
    const { body, dropped, fetched } = await sentTo(id, api, given)
    const texts = textsIn(body)
    const isNamed = dropped.includes('parts.file')
    expect(texts.filter((text) => text.includes(';base64,http') || text.includes(';base64,data:'))).toEqual([])
    const arrived = texts.filter((text) => text === link || text === pdf || text === dataUrl)
    expect(arrived).toHaveLength(isNamed ? 0 : 1)
    if (what === 'data') expect(arrived).not.toContain(link)
    expect(fetched).toEqual(isNamed || what === 'data' || arrived[0] === link ? [] : [link])
    if (isNamed) return
    // Base64 alone stands where the format has a place for bytes, never where it has one for addresses.
    const json = JSON.stringify(body)
    expect(json).not.toMatch(/"(file_data|image_url|document_url|file_url|url|fileUri)":"JVBERi0/)
    expect(json).not.toMatch(/"(data|bytes)":"(https?|data):/)
  })
})

test('Chat Completions of OpenAI takes documents as data only, Responses under the name of what it is', async () => {
  for (const [what, , api, given] of documents) {
    if (what !== 'link') continue
    const { body } = await sentTo('openai/gpt-5.4', api, given)
    expect(JSON.stringify(body)).toContain(`"file_data":"${dataUrl}"`)
    const native = await sentTo('openai-responses/gpt-5.4', api, given)
    expect(JSON.stringify(native.body)).toContain(`{"type":"input_file","file_url":"${link}"}`)
  }
})

test('a page of text reaches a provider of Messages as text', async () => {
  const files = new Map([[link, { data: Buffer.from('Größe').toString('base64'), media_type: 'text/plain' }]])
  const edited = messages.editRequest(block({ type: 'url', url: link }), {
    model: 'm',
    stream: false,
    dropped: [],
    files,
  })
  expect(JSON.stringify(edited)).toContain('"source":{"type":"text","media_type":"text/plain","data":"Größe"}')
})

const images: readonly [api: ClientApi, body: (id: string) => JsonObject][] = [
  [responses, (file_id) => input({ type: 'input_image', file_id })],
  [messages, (file_id) => ({ max_tokens: 9, ...ofUser({ type: 'image', source: { type: 'file', file_id } }) })],
]

describe.each(targets)('an image by its id for %s', (id) => {
  test.each(images)('is sent as such, refused, or named where there are no images: %#', async (api, given) => {
    const { body, dropped, unreadable } = await sentTo(id, api, given('file_1'))
    const arrives = textsIn(body).includes('file_1')
    const isNamed = dropped.includes('parts.image')
    expect([arrives, unreadable === 'file_1', isNamed].filter(Boolean)).toHaveLength(1)
    // The other formats with ids have them for documents only.
    if (arrives)
      expect([
        'openai-responses/gpt-5.4',
        'azure/gpt-5.1-codex',
        'anthropic/claude-sonnet-4-5',
        'azure/claude-haiku-4-5',
      ]).toContain(id)
  })
})

test.each([
  ['files/abc', 'https://generativelanguage.googleapis.com/v1beta/files/abc'],
  [
    'https://generativelanguage.googleapis.com/v1beta/files/abc',
    'https://generativelanguage.googleapis.com/v1beta/files/abc',
  ],
])('Gemini gets its own files: %s', async (id, uri) => {
  const { body, unreadable } = await sentTo(
    'google/gemini-3.5-flash',
    responses,
    input({ type: 'input_file', file_id: id }),
  )
  expect(textsIn(body)).toContain(uri)
  expect(unreadable).toBeUndefined()
})

test.each([
  [responses, input({ type: 'input_file', file_url: 'a.pdf' }), 'input[0].content[0].file_url'],
  [responses, input({ type: 'input_image', image_url: 'a.png' }), 'input[0].content[0].image_url'],
  [messages, block({ type: 'url', url: 'a.pdf' }), 'messages[0].content[0].source.url'],
  [
    messages,
    block({ type: 'base64', media_type: 'application/pdf', data: link }),
    'messages[0].content[0].source.data',
  ],
  [
    messages,
    block({ type: 'base64', media_type: 'application/pdf', data: dataUrl }),
    'messages[0].content[0].source.data',
  ],
  [chat, ofUser({ type: 'input_file', filename: 'a.pdf' }), 'messages[0].content[0]'],
  [chat, ofUser({ type: 'input_file', file_url: 'a.pdf' }), 'messages[0].content[0].file_url'],
  [chat, ofUser({ type: 'image_url', image_url: { file_id: 'file-1' } }), 'messages[0].content[0].image_url.url'],
])('what is neither an address nor data is refused with its place: %#', (api, body, param) => {
  expect(() => api.read({ model: 'm', ...body })).toThrow(expect.objectContaining({ param }))
})
