import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { eventsInClientForm } from '../../src/api/client-form.ts'
import { asFunction, TextArguments, textAsArguments, textInArguments } from '../../src/core/client-functions.ts'
import type { StreamEvent } from '../../src/core/events.ts'
import type { ToolCallPart } from '../../src/core/parts.ts'
import type { ClientTool } from '../../src/core/request.ts'

describe('the text of a custom tool', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 })

  test('comes back from the arguments of its function, whole and in pieces of any size', () => {
    fc.assert(
      fc.property(
        text,
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
        fc.boolean(),
        (words, sizes, escaped) => {
          const json = textAsArguments(words)
          const sent = escaped
            ? json.replace(/[\u0080-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
            : json
          expect(textInArguments(sent)).toBe(words)
          const reading = new TextArguments()
          let read = ''
          for (let at = 0, index = 0; at < sent.length; index++) {
            const size = sizes[index % sizes.length] as number
            read += reading.take(sent.slice(at, at + size))
            at += size
          }
          expect(read + reading.end(words)).toBe(words)
          expect(read).toBe(words)
        },
      ),
    )
  })

  test.each([
    ['ls -l', 'ls -l'],
    ['{"command":"ls"}', 'ls'],
    ['{}', ''],
    ['{"a":"b","c":"d"}', '{"a":"b","c":"d"}'],
    ['"ls"', 'ls'],
    ['{"input":"l', '{"input":"l'],
  ])('is what a model means by %s', (given, meant) => {
    expect(textInArguments(given)).toBe(meant)
  })

  test('is described with the grammar that it must match', () => {
    const format = { type: 'grammar', grammar: { syntax: 'regex', definition: '[a-z]+' } }
    const { description, kind } = asFunction({ kind: 'custom', name: 'c', description: 'Writes.', format })
    expect(kind).toBe('function')
    expect(description).toBe('Writes.\n\nThe text must match this regular expression:\n\n[a-z]+')
    expect(asFunction({ kind: 'custom', name: 'c', format: { type: 'text' } }).description).toBeUndefined()
  })
})

test('calls that arrive interleaved are whole in the form of the client', () => {
  const tools: ClientTool[] = ['a', 'b'].map((name) => ({ kind: 'custom', name }))
  const write = eventsInClientForm({ tools })
  const call = (name: string, given = ''): ToolCallPart => ({ type: 'tool_call', id: name, name, arguments: given })
  const first = call('a', '{"input":"x')
  const events: StreamEvent[] = [
    { type: 'open', index: 0, part: call('a') },
    { type: 'delta', index: 0, part: 'tool_call', arguments: '{"input":"x' },
    { type: 'close', index: 0, part: first },
    { type: 'open', index: 1, part: call('b') },
    { type: 'delta', index: 1, part: 'tool_call', arguments: '{"input":"z"}' },
    { type: 'delta', index: 0, part: 'tool_call', arguments: 'y"}' },
    { type: 'close', index: 1, part: call('b', '{"input":"z"}') },
  ]
  const written = events.flatMap((event) => write([event]))
  // The part grows until the reply ends.
  first.arguments += 'y"}'
  written.push(...write([{ type: 'finish', finish: 'tool_calls' }]))
  const textOf = (index: number) =>
    written.map((event) => (event.type === 'delta' && event.index === index ? event.arguments : '')).join('')
  expect([textOf(0), textOf(1)]).toEqual(['xy', 'z'])
  const closed = written.filter((event) => event.type === 'close').map(({ index, part }) => [index, part])
  expect(closed).toMatchObject([
    [1, { kind: 'custom', arguments: 'z' }],
    [0, { kind: 'custom', arguments: 'xy' }],
  ])
  expect(written.at(-1)?.type).toBe('finish')
})
