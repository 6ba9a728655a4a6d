import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ProviderEvent } from '../../src/core/events.ts'
import { Snapshots } from '../../src/manifest/run/snapshots.ts'
import { formatted, loadAcme } from './files.ts'

const taken = (events: readonly ProviderEvent[], most = 1_000) => new Snapshots('acme', most).take(events)

describe('events that repeat the whole text so far', () => {
  test('add up to the last one, wherever the text was cut', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 30 }), fc.array(fc.nat(30)), (text, cuts) => {
        const ends = [...cuts.filter((at) => at <= text.length).sort((a, b) => a - b), text.length]
        const made = taken(ends.map((end) => ({ text: text.slice(0, end) })))
        const whole = made.map((event) => event.text ?? '').join('')
        // A text that ends with a replacement character is not known to be whole.
        expect(whole).toBe(text.replace(/[\ufffd\ud800-\udbff]+$/, ''))
      }),
    )
  })

  test('are told apart by their key and their kind', () => {
    const events: ProviderEvent[] = [
      { at: 0, text: 'a' },
      { at: 1, text: 'x' },
      { at: 0, text: 'ab', reasoning: { text: 'h' } },
      { at: 1, text: 'xy' },
      { at: 0, reasoning: { text: 'hm', summary: 's' }, refusal: 'N' },
      { tool: { id: 't', name: 'f', arguments: '{"a"' } },
      { tool: { id: 't', arguments: '{"a":1}' } },
      { refusal: 'No', at: 0, finish: 'stop' },
    ]
    expect(taken(events)).toEqual([
      { at: 0, text: 'a' },
      { at: 1, text: 'x' },
      { at: 0, text: 'b', reasoning: { text: 'h' } },
      { at: 1, text: 'y' },
      { at: 0, reasoning: { text: 'm', summary: 's' }, refusal: 'N' },
      { tool: { id: 't', name: 'f', arguments: '{"a"' } },
      { tool: { id: 't', arguments: ':1}' } },
      { refusal: 'o', at: 0, finish: 'stop' },
    ])
  })

  test.each([
    ['another text', 'One.', 'Two.'],
    ['a shorter text', 'One.', 'One'],
  ])('are refused where they have %s', (_, first, second) => {
    expect(() => taken([{ text: first }, { text: second }])).toThrow('changed text in its stream that had been sent')
  })

  test('are bounded, in all parts together', () => {
    expect(() => taken([{ text: 'x'.repeat(2_000) }])).toThrow('more than 1000 characters')
    const parts = Array.from({ length: 20 }, (_, at) => ({ at, text: 'x' }))
    expect(() => taken(parts)).toThrow('more than 1000 characters')
    expect(taken(Array.from({ length: 500 }, (_, size) => ({ text: 'x'.repeat(size) })))).toHaveLength(500)
  })
})

describe('an endpoint for conversations that cannot work', () => {
  test.each([
    [
      'hosts of no address',
      'stream: { hosts: [a.example] }',
      'has `stream.hosts`, which matters only where `stream.url`',
    ],
    ['a job that is not whole', 'job: { id: id, done: a }', 'needs `job.poll`'],
    ['a job without a place for its id', 'job: { id: id, poll: /jobs, done: a }', 'needs `{id}` in `job.poll`'],
    ['a place that there is not', 'job: { id: id, poll: "/{id}/{job}", done: a }', '`{job}` is not a placeholder'],
  ])('%s', (_, member, message) => {
    const text = `slug: acme
name: Acme
base_url: http://127.0.0.1:9/v1
auth: { scheme: none }
dialect: plain
endpoints: { chat: { ${member} } }
`
    expect(formatted(loadAcme(text).problems)).toEqual([expect.stringContaining(message)])
  })
})
