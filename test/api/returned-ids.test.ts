import { expect, test } from 'vitest'
import { idsOfAnswer } from '../../src/api/returned-ids.ts'

test('what a provider makes in operations is known by the ids in its answer', () => {
  const answer = {
    data: [{ b64_json: 'x', file_id: 'file-1' }, { image: { id: 'img_2' } }],
    audio: { id: 'audio_3' },
    voice_id: 'voice_4',
    prompt: 'file_id',
  }
  for (const operation of ['image', 'image_edit', 'speech'] as const)
    expect(idsOfAnswer(operation, answer)).toEqual(['file-1', 'img_2', 'audio_3', 'voice_4'])
})

test('an answer that repeats what a client or a model wrote makes nothing theirs', () => {
  const documents = { results: [{ index: 0, document: { text: 'x', file_id: 'file-theirs' } }] }
  expect(idsOfAnswer('rerank', documents)).toEqual([])
  expect(idsOfAnswer('decide', { answers: { file_id: 'file-theirs' } })).toEqual([])
})

test('of an answer with very many ids a hundred are known, and none that is no id', () => {
  const data = Array.from({ length: 500 }, (_, at) => ({ file_id: `file-${at}` }))
  expect(idsOfAnswer('image', { file_id: 'x'.repeat(600), data })).toHaveLength(100)
})
