import type { JsonObject } from '../../src/core/json.ts'

// Independent readers of request bodies: who speaks in which order, which tools are called and answered.

/** A call as the body has it: `input` is JSON text where the format takes text, else a value. */
export type ReadCall = { id?: string; name: string; input: unknown }

/** One turn; `plain`: whether it has other content than results; `late`: whether that comes before them. */
export type ReadTurn = {
  role: string
  calls: ReadCall[]
  results: (string | undefined)[]
  plain: boolean
  late: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: bodies may have any shape.
type Body = any

/** The turns of a request body, by dialect. */
export const readers: { [dialect: string]: (body: JsonObject) => ReadTurn[] } = {
  'openai-chat': ({ messages }: Body) => messages.map(chatTurn),
  'cohere-v2': ({ messages }: Body) => messages.map(chatTurn),
  ollama: ({ messages }: Body) => messages.map(chatTurn),
  'anthropic-messages': ({ messages }: Body) =>
    messages.map(({ role, content }: Body) =>
      turn(role, content, {
        call: (block) => block.type === 'tool_use' && { id: block.id, name: block.name, input: block.input },
        result: (block) => block.type === 'tool_result' && { id: block.tool_use_id },
      }),
    ),
  gemini: ({ contents }: Body) =>
    contents.map(({ role, parts }: Body) =>
      turn(role === 'model' ? 'assistant' : role, parts, {
        call: ({ functionCall: call }) => call && { id: call.id, name: call.name, input: call.args },
        result: ({ functionResponse: result }) => result && { id: result.id },
      }),
    ),
  'bedrock-converse': ({ messages }: Body) =>
    messages.map(({ role, content }: Body) =>
      turn(
        role,
        content.filter(({ cachePoint }: Body) => !cachePoint),
        {
          call: ({ toolUse: call }) => call && { id: call.toolUseId, name: call.name, input: call.input },
          result: ({ toolResult: result }) => result && { id: result.toolUseId },
        },
      ),
    ),
  'openai-responses': ({ input }: Body) => (typeof input === 'string' ? [] : input.map(responsesTurn)),
}

type Kinds = {
  call: (block: Body) => ReadCall | false | undefined
  result: (block: Body) => { id?: string } | false | undefined
}

function turn(role: string, blocks: Body[], { call, result }: Kinds): ReadTurn {
  const results = blocks.flatMap((block) => result(block) || [])
  const first = blocks.findIndex((block) => result(block))
  const last = blocks.findLastIndex((block) => result(block))
  return {
    role,
    calls: blocks.flatMap((block) => call(block) || []),
    results: results.map(({ id }) => id),
    plain: results.length === 0,
    late: results.length > 0 && (first !== 0 || last !== results.length - 1),
  }
}

function chatTurn(message: Body): ReadTurn {
  const calls = (message.tool_calls ?? []).map(({ id, function: fn, custom }: Body) => ({
    ...(id !== undefined && { id }),
    name: fn?.name ?? custom.name,
    input: fn ? fn.arguments : custom.input,
  }))
  const results = message.role === 'tool' ? [message.tool_call_id] : []
  return { role: message.role, calls, results, plain: message.role !== 'tool', late: false }
}

function responsesTurn(item: Body): ReadTurn {
  const none = { calls: [], results: [], plain: true, late: false }
  if (/call_output$/.test(item.type)) return { ...none, role: 'tool', results: [item.call_id], plain: false }
  if (item.type === 'function_call' || item.type === 'custom_tool_call') {
    const { call_id, name, arguments: json, input } = item
    return { ...none, role: 'assistant', calls: [{ id: call_id, name, input: json ?? input }] }
  }
  return { ...none, role: item.role ?? 'assistant' }
}

/** The violations of the order of calls and results: empty when each result directly follows its call. */
export function pairingFaults(turns: readonly ReadTurn[]): string[] {
  const faults: string[] = []
  const seen = new Set<string>()
  const open: (string | undefined)[] = []
  for (const { role, calls, results, plain, late } of turns) {
    for (const id of results) {
      const at = open.indexOf(id)
      if (at < 0) faults.push(`a result for ${id}, which is not waited for`)
      else open.splice(at, 1)
    }
    if (late) faults.push('results do not stand first')
    // Calls of one turn may be separate items.
    if (open.length > 0 && role !== 'assistant' && plain) faults.push(`${role} speaks while ${open} is waited for`)
    for (const { id } of calls) {
      if (id !== undefined && seen.has(id)) faults.push(`the id ${id} is used twice`)
      if (id !== undefined) seen.add(id)
      open.push(id)
    }
  }
  if (open.length > 0) faults.push(`no result for ${open}`)
  return faults
}

/** The violations of the order of roles. */
export function roleFaults(turns: readonly ReadTurn[], rules: { alternate?: boolean; first_user?: boolean }): string[] {
  const faults: string[] = []
  if (rules.first_user && turns[0]?.role !== 'user') faults.push(`begins with ${turns[0]?.role}`)
  if (rules.alternate) {
    const twice = turns.find(({ role }, index) => index > 0 && turns[index - 1]?.role === role)
    if (twice) faults.push(`${twice.role} twice in a row`)
    const other = turns.find(({ role }) => role !== 'user' && role !== 'assistant')
    if (other) faults.push(`a role ${other.role}`)
  }
  return faults
}
