import { expect, test } from 'vitest'
import { textsOfEvent, textsOfReply } from '../../src/plugin/answer-texts.ts'

const reply = { id: '', created: 0, finish: 'stop' as const, usage: {} }

test('all that a client can read of a whole answer is found, and no media', () => {
  const chat = {
    ...reply,
    parts: [
      { type: 'reasoning' as const, text: 'thought', summary: 'in short', encrypted: 'sealed' },
      {
        type: 'text' as const,
        text: 'said',
        citations: [{ url: 'https://a.example', title: 'page', cited_text: 'quote' }],
      },
      { type: 'tool_call' as const, id: '1', name: 'run', arguments: '{"a":"argument"}' },
      { type: 'search' as const, query: 'asked', results: [{ title: 'found' }] },
      { type: 'refusal' as const, text: 'not that' },
      { type: 'audio' as const, data: 'QQ==', transcript: 'spoken' },
      { type: 'opaque' as const, body: { type: 'mcp_call', output: 'result', data: 'A'.repeat(200), id: 'x1' } },
    ],
  }
  const texts = textsOfReply({ operation: 'chat', chat })
  expect(texts.map(({ kind, text }) => `${kind}: ${text}`)).toEqual([
    ...['reasoning: thought', 'reasoning: in short', 'text: said'],
    ...['citation: page', 'citation: quote', 'citation: https://a.example'],
    ...['tool_name: run', 'tool_arguments: {"a":"argument"}', 'search: asked', 'search: found'],
    ...['refusal: not that', 'transcript: spoken', 'other: result'],
  ])
})

test.each([
  ['image', { data: [{ b64_json: 'QUJD'.repeat(50), revised_prompt: 'a plum' }] }, ['a plum']],
  ['transcribe', { text: 'spoken', segments: [{ text: 'a part' }], language: 'english' }, ['spoken', 'a part']],
  ['complete', { choices: [{ index: 0, text: 'said', logprobs: { tokens: ['token'] } }] }, ['said', 'token']],
  ['embed', { data: [{ embedding: [1, 2], index: 0 }], model: 'm' }, []],
  [
    'moderate',
    { id: 'words that are no id, but a text of some length'.repeat(4), results: [] },
    [expect.stringContaining('words')],
  ],
  ['rerank', { results: [{ document: { data: 'text with spaces' } }] }, ['text with spaces']],
] as const)('the texts of %s are found', (operation, json, texts) => {
  const found = textsOfReply({ operation, json: structuredClone(json) as never })
  expect(found.map(({ text }) => text)).toEqual(texts)
})

test('texts of one part follow each other in a stream, and those of several parts do not', () => {
  const [one] = textsOfEvent({ at: 1, text: 'a' })
  const [same] = textsOfEvent({ at: 1, text: 'b' })
  const [other] = textsOfEvent({ at: 2, text: 'c' })
  const [reasoning] = textsOfEvent({ at: 1, reasoning: { text: 'd' } })
  expect(one?.channel).toBe(same?.channel)
  expect(new Set([one, other, reasoning].map((text) => text?.channel)).size).toBe(3)
  expect(textsOfEvent({ citation: { title: 'whole' } })[0]?.channel).toBeUndefined()
})
