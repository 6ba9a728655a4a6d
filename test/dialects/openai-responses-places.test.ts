import { describe, expect, test } from 'vitest'
import { benchDialect } from './replay.ts'

// Servers that leave out the places of items in streams: they are told apart by their ids.

const bench = benchDialect('openai-responses')

const reasoning = { id: 'rs_1', type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] }
const message = (id: string, text: string) => ({
  ...{ id, type: 'message', status: 'completed', role: 'assistant' },
  content: [{ type: 'output_text', annotations: [], text }],
})
const call = (id: string, name: string, args: string) => ({
  ...{ type: 'function_call', status: 'completed', call_id: id, name, arguments: args },
})
const items = [reasoning, message('msg_1', 'Hello'), call('fc_1', 'f', '{"a":1}'), call('fc_2', 'g', '{}')]

type Item = (typeof items)[number] & { call_id?: string; name?: string; arguments?: string; id?: string }

/** The events of an item; `place` is what tells where it is. */
function eventsOf(item: Item, place: object): object[] {
  const { type } = item
  const done = { type: 'response.output_item.done', ...place, item }
  if (type === 'reasoning')
    return [
      { type: 'response.output_item.added', ...place, item: { ...item, content: [] } },
      { type: 'response.reasoning_text.delta', ...place, item_id: item.id, delta: 'Hm.' },
      done,
    ]
  if (type === 'message')
    return [
      { type: 'response.output_item.added', ...place, item: { ...item, content: [] } },
      ...['Hel', 'lo'].map((delta) => ({ type: 'response.output_text.delta', ...place, item_id: item.id, delta })),
      done,
    ]
  return [
    { type: 'response.output_item.added', ...place, item: { ...item, arguments: '' } },
    { type: 'response.function_call_arguments.delta', ...place, item_id: item.call_id, delta: item.arguments },
    done,
  ]
}

const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 }
const streamed = (output: Item[], placed: boolean) =>
  bench.stream(
    [
      ...output.flatMap((item, output_index) => eventsOf(item, placed ? { output_index, content_index: 0 } : {})),
      { type: 'response.completed', response: { id: 'resp_1', status: 'completed', model: 'm', output, usage } },
    ].map((data) => ({ data: JSON.stringify(data) })),
  )

describe.each([true, false])('with the places of items: %s', (placed) => {
  test('each item of a stream is one part, however often it is repeated', async () => {
    const { reply, complete } = await streamed(items as Item[], placed)
    expect(complete).toBe(true)
    expect(reply.parts).toEqual([
      expect.objectContaining({ type: 'reasoning', text: 'Hm.' }),
      expect.objectContaining({ type: 'text', text: 'Hello' }),
      expect.objectContaining({ type: 'tool_call', id: 'fc_1', name: 'f', arguments: '{"a":1}' }),
      expect.objectContaining({ type: 'tool_call', id: 'fc_2', name: 'g', arguments: '{}' }),
    ])
  })

  test('two messages of the same text are two parts', async () => {
    const { reply } = await streamed([message('msg_1', 'Hello'), message('msg_2', 'Hello')] as Item[], placed)
    expect(reply.parts.map((part) => part.type === 'text' && part.text)).toEqual(['Hello', 'Hello'])
  })
})
