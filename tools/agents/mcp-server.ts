import { createInterface } from 'node:readline'
import { fieldsOf, textOf } from './fields.ts'
import { words } from './script.ts'

// An MCP server on standard input and output with one tool, which the clients start.

const tools = [
  {
    name: 'forecast',
    description: 'Returns the forecast of a city.',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
]

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = fieldsOf(JSON.parse(line))
  if (id === undefined) return
  const result = resultOf(textOf(method), fieldsOf(params).protocolVersion)
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
})

function resultOf(method: string, protocolVersion: unknown): object {
  if (method === 'initialize')
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'weather', version: '1' } }
  if (method === 'tools/list') return { tools }
  return method === 'tools/call' ? { content: [{ type: 'text', text: words.forecast }] } : {}
}
