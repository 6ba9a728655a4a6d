/** A conversation of an agent, 100 KB long: forty questions, each with a call of a tool and its result, in the words of each API. */

const instructions = 'You are a careful assistant that works on the files of a project. '.repeat(120)
const ask = `Please look at this: ${'line of code; '.repeat(40)}`
const result = `${'const result = "of a line";\n'.repeat(36)}`
const turns = Array.from({ length: 40 }, (_, index) => ({
  id: `call_${index}`,
  name: `tool_${index % 20}`,
  input: { path: `/src/file-${index}.ts`, count: index },
}))
const tools = Array.from({ length: 20 }, (_, index) => ({
  name: `tool_${index}`,
  description: 'Does a thing that is described at some length. '.repeat(8),
  schema: {
    type: 'object',
    properties: { path: { type: 'string', description: 'The path of the file' }, count: { type: 'integer' } },
    required: ['path'],
  },
}))

export function longChat(question: string): object {
  return {
    messages: [
      { role: 'system', content: instructions },
      ...turns.flatMap(({ id, name, input }) => [
        { role: 'user', content: ask },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }],
        },
        { role: 'tool', tool_call_id: id, content: result },
      ]),
      { role: 'user', content: question },
    ],
    tools: tools.map(({ schema, ...tool }) => ({ type: 'function', function: { ...tool, parameters: schema } })),
  }
}

export function longMessages(question: string): object {
  return {
    system: instructions,
    messages: [
      ...turns.flatMap(({ id, name, input }) => [
        { role: 'user', content: ask },
        { role: 'assistant', content: [{ type: 'tool_use', id, name, input }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: result }] },
        { role: 'assistant', content: 'I have looked at it.' },
      ]),
      { role: 'user', content: question },
    ],
    tools: tools.map(({ schema, ...tool }) => ({ ...tool, input_schema: schema })),
  }
}

export function longResponses(question: string): object {
  return {
    instructions,
    input: [
      ...turns.flatMap(({ id, name, input }) => [
        { role: 'user', content: ask },
        { type: 'function_call', call_id: id, name, arguments: JSON.stringify(input) },
        { type: 'function_call_output', call_id: id, output: result },
      ]),
      { role: 'user', content: question },
    ],
    tools: tools.map(({ schema, ...tool }) => ({ ...tool, type: 'function', parameters: schema, strict: false })),
  }
}
