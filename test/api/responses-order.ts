import { expect } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'

// The order of the events of a streamed response, and the client's result at the end.

// biome-ignore lint/suspicious/noExplicitAny: events of all kinds, as they come over the wire.
type Loose = any

/** The events of a stream of text; each must have its name before its data. */
export function eventsIn(text: string): Loose[] {
  const blocks = text.split('\n\n').filter((block) => block !== '')
  return blocks.map((block) => {
    const lines = block.split('\n')
    expect(lines.length).toBe(2)
    const data = JSON.parse(lines[1]?.replace(/^data: /, '') ?? '')
    expect(lines[0]).toBe(`event: ${data.type}`)
    return data
  })
}

type Content = { type: string; text: string; annotations: Loose[]; logprobs: Loose[]; done: boolean }
type Item = { id: string; type: string; contents: Content[]; written: string; stages: string[]; done: boolean }

/** Checks a stream event by event, and fails at the first one that is out of order. Returns the last response. */
export function follow(events: Loose[]): JsonObject {
  const items: Item[] = []
  const finished: Loose[] = []
  let terminal: Loose
  for (const [number, event] of events.entries()) {
    expect(terminal, `${event.type} after the end`).toBeUndefined()
    expect(event.sequence_number).toBe(number)
    if (number < 2) {
      expect(event.type).toBe(['response.created', 'response.in_progress'][number])
      expect(event.response).toMatchObject({
        status: 'in_progress',
        output: [],
        error: null,
        usage: null,
        completed_at: null,
      })
    } else if (isTerminal(event.type)) terminal = event
    else if (event.type === 'response.output_item.added') {
      expect(event.output_index).toBe(items.length)
      items.push(added(event.item, items))
    } else {
      const item = items[event.output_index] as Item
      expect(item, `${event.type} before its item`).toBeDefined()
      expect(item.done, `${event.type} after its item`).toBe(false)
      if (event.type === 'response.output_item.done') {
        endItem(item, event.item)
        finished[event.output_index] = event.item
      } else {
        // The events of commands name the place of their item alone.
        expect(event.item_id).toBe(event.command_index === undefined ? item.id : undefined)
        steps[kindOf(event.type)]?.(item, event)
        expect(Object.keys(steps), event.type).toContain(kindOf(event.type))
      }
    }
  }
  expect(terminal, 'no last event').toBeDefined()
  const { response } = terminal
  expect(terminal.type).toBe(`response.${response.status}`)
  if (response.status !== 'failed') {
    expect(items.every(({ done }) => done)).toBe(true)
    expect(response.usage).toEqual(expect.any(Object))
    expect(response.completed_at).toEqual(response.status === 'completed' ? expect.any(Number) : null)
  }
  expect(response.output).toEqual(finished.filter(Boolean))
  expect(response.id).toBe(events[0].response.id)
  return response
}

function isTerminal(type: string): boolean {
  return ['response.completed', 'response.incomplete', 'response.failed'].includes(type)
}

function added(item: Loose, before: Item[]): Item {
  expect(item.id).toMatch(/^[a-z]+_/)
  expect(before.map(({ id }) => id)).not.toContain(item.id)
  if (item.type === 'message') expect(item).toMatchObject({ content: [], status: 'in_progress', role: 'assistant' })
  if (item.type === 'reasoning') expect(item.summary).toEqual([])
  if (item.type === 'function_call') expect(item).toMatchObject({ arguments: '', status: 'in_progress' })
  if (item.type === 'custom_tool_call') expect(item.input).toBe('')
  if (item.type === 'image_generation_call') expect(item.result).toBeNull()
  return { id: item.id, type: item.type, contents: [], written: '', stages: [], done: false }
}

function kindOf(type: string): string {
  return type.replace(/^response\./, '')
}

const steps: { [kind: string]: (item: Item, event: Loose) => void } = {
  'shell_call_command.added': (item, { command_index, command }) => {
    expect(item.type).toBe('shell_call')
    expect(command_index).toBe(item.contents.length)
    expect(command).toBe('')
    item.contents.push({ type: 'command', text: '', annotations: [], logprobs: [], done: false })
  },
  'shell_call_command.delta': (item, { command_index, delta }) => {
    open(item, command_index, 'command').text += delta
  },
  'shell_call_command.done': (item, { command_index, command }) => {
    const content = open(item, command_index, 'command')
    expect(command).toBe(content.text)
    content.done = true
  },
  'content_part.added': (item, { content_index, part }) => {
    expect(item.type).toBe('message')
    expect(content_index).toBe(item.contents.length)
    expect(item.contents.every(({ done }) => done)).toBe(true)
    expect(part.text ?? part.refusal).toBe('')
    item.contents.push({ type: part.type, text: '', annotations: [], logprobs: [], done: false })
  },
  'output_text.delta': (item, { content_index, delta, logprobs }) => {
    const content = open(item, content_index, 'output_text')
    content.text += delta
    content.logprobs.push(...logprobs)
  },
  'output_text.annotation.added': (item, { content_index, annotation_index, annotation }) => {
    const { annotations } = open(item, content_index, 'output_text')
    expect(annotation_index).toBe(annotations.length)
    annotations.push(annotation)
  },
  'output_text.done': (item, { content_index, text, logprobs }) => {
    const content = open(item, content_index, 'output_text')
    expect(text).toBe(content.text)
    expect(logprobs).toEqual(content.logprobs)
  },
  'refusal.delta': (item, { content_index, delta }) => {
    open(item, content_index, 'refusal').text += delta
  },
  'refusal.done': (item, { content_index, refusal }) => {
    expect(refusal).toBe(open(item, content_index, 'refusal').text)
  },
  'content_part.done': (item, { content_index, part }) => {
    const content = open(item, content_index, part.type)
    expect(part.text ?? part.refusal).toBe(content.text)
    if (part.type === 'output_text') expect(part.annotations).toEqual(content.annotations)
    content.done = true
  },
  'reasoning_summary_part.added': (item, { summary_index }) => {
    expect(item.type).toBe('reasoning')
    expect(summary_index).toBe(item.contents.length)
    item.contents.push({ type: 'summary_text', text: '', annotations: [], logprobs: [], done: false })
  },
  'reasoning_summary_text.delta': (item, { summary_index, delta }) => {
    open(item, summary_index, 'summary_text').text += delta
  },
  'reasoning_summary_text.done': (item, { summary_index, text }) => {
    expect(text).toBe(open(item, summary_index, 'summary_text').text)
  },
  'reasoning_summary_part.done': (item, { summary_index, part }) => {
    const content = open(item, summary_index, 'summary_text')
    expect(part.text).toBe(content.text)
    content.done = true
  },
  ...argumentSteps('function_call_arguments', 'function_call', 'arguments'),
  ...argumentSteps('custom_tool_call_input', 'custom_tool_call', 'input'),
  ...stageSteps('web_search_call', ['in_progress', 'searching', 'completed']),
  ...stageSteps('image_generation_call', ['in_progress', 'generating', 'completed']),
}

function argumentSteps(name: string, type: string, member: string): typeof steps {
  return {
    [`${name}.delta`]: (item, { delta }) => {
      expect(item.type).toBe(type)
      expect(item.stages).toEqual([])
      item.written += delta
    },
    [`${name}.done`]: (item, event) => {
      expect(event[member]).toBe(item.written)
      item.stages.push('done')
    },
  }
}

function stageSteps(type: string, order: string[]): typeof steps {
  const step = (stage: string) => (item: Item) => {
    expect(item.type).toBe(type)
    expect(order[item.stages.length]).toBe(stage)
    item.stages.push(stage)
  }
  return Object.fromEntries(order.map((stage) => [`${type}.${stage}`, step(stage)]))
}

function open(item: Item, index: number, type: string): Content {
  const content = item.contents[index] as Content
  expect(content?.type, `${type} ${index}`).toBe(type)
  expect(content.done).toBe(false)
  return content
}

function endItem(item: Item, done: Loose): void {
  expect(done).toMatchObject({ id: item.id, type: item.type })
  expect(item.contents.every((content) => content.done)).toBe(true)
  const written = item.contents.map(({ text }) => text)
  if (done.type === 'message') {
    expect(done.content.map((part: Loose) => part.text ?? part.refusal)).toEqual(written)
    for (const [index, { annotations, logprobs }] of item.contents.entries()) {
      if (done.content[index].type !== 'output_text') continue
      expect(done.content[index]).toMatchObject({ annotations, logprobs })
    }
  } else if (done.type === 'reasoning') expect(done.summary.map(({ text }: Loose) => text)).toEqual(written)
  else if (done.type === 'function_call') expect(done.arguments).toBe(item.written)
  else if (done.type === 'custom_tool_call') expect(done.input).toBe(item.written)
  if (done.type.endsWith('tool_call') || done.type === 'function_call') expect(item.stages).toEqual(['done'])
  if (done.status === 'completed' && done.type === 'web_search_call') expect(item.stages.at(-1)).toBe('completed')
  item.done = true
}
