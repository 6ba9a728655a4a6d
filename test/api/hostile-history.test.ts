import { describe, expect, it, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { JsonObject } from '../../src/core/json.ts'

/** A signature of ours that a client has tampered with. */
const forged = (members: JsonObject) => `router1.${Buffer.from(JSON.stringify(members)).toString('base64url')}`
const hi = { role: 'user', content: 'hi' }
const wrong = { by: 1, signature: [], encrypted: {}, summary: { a: 1 }, id: 7, call: 1, text: '0', search: {} }

describe('a history that a client has tampered with', () => {
  const partsOf = (request: ReturnType<typeof chat.read>) => request.messages.flatMap(({ parts }) => parts)

  it('has no members of the wrong type in a Messages body', () => {
    const content = [
      { type: 'thinking', thinking: 'a', signature: forged(wrong) },
      { type: 'redacted_thinking', data: forged({ ...wrong, encrypted: 'e' }) },
    ]
    const read = messages.read({ model: 'm', max_tokens: 9, messages: [hi, { role: 'assistant', content }] })
    expect(partsOf(read).slice(1)).toEqual([
      { type: 'reasoning', text: 'a' },
      { type: 'reasoning', encrypted: 'e' },
    ])
  })

  it('has no members of the wrong type in a Responses body', () => {
    const item = { type: 'reasoning', summary: [], encrypted_content: forged({ ...wrong, signature: 's' }) }
    const annotations = [{ type: 'url_citation', url: 7, title: 'T', start_index: '0', end_index: 4 }]
    const written = { role: 'assistant', content: [{ type: 'output_text', text: 'a', annotations }] }
    expect(partsOf(responses.read({ model: 'm', input: [hi, item, written] })).slice(1)).toEqual([
      { type: 'reasoning', signature: 's' },
      { type: 'text', text: 'a', citations: [{ title: 'T', end: 4 }] },
    ])
  })

  it('has no members of the wrong type in a Chat body', () => {
    const replay_parts = [
      { part: { type: 'search', id: 1, query: {}, status: 's', by: [], results: [1] } },
      { part: { type: 'file', data: 7, url: 'https://a', cache: 'x' } },
      { part: { type: 'opaque', by: 7, body: { a: 1 } } },
      { part: { type: 'opaque', by: 'me' } },
      { part: { type: 'text', text: 7 } },
    ]
    const read = chat.read({ model: 'm', messages: [hi, { role: 'assistant', content: 'a', replay_parts }] })
    expect(partsOf(read).slice(1)).toEqual([
      { type: 'search', status: 's', results: [1] },
      { type: 'file', url: 'https://a' },
      { type: 'opaque', body: { a: 1 } },
      { type: 'text', text: 'a' },
    ])
  })
})

test.each([
  { api: chat, body: { messages: [hi] } },
  { api: responses, body: { input: 'hi' } },
  { api: messages, body: { messages: [hi], max_tokens: 9 } },
])('the $api.api API checks the location of a web search', ({ api, body }) => {
  const read = (user_location: JsonObject) => {
    return api.read({ model: 'm', ...body, tools: [{ type: 'web_search', user_location }] }).web_search
  }
  const place = { city: 'Graz', region: null, country: 'AT' }
  expect(read({ type: 'approximate', ...place, odd: { a: 1 } })).toEqual({
    user_location: { city: 'Graz', country: 'AT' },
  })
  expect(() => read({ type: 'approximate', city: 7 })).toThrow("'tools[0].user_location.city' must be a string")
})
