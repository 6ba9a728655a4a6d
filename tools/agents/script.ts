import type { Conversation, Tool, Turn } from './conversation.ts'
import { type Fields, fieldsOf, textOf } from './fields.ts'

/** The words that only the tools know: an answer that has all of them came through each tool. */
export const words = { file: 'marzipan-7', forecast: 'drizzle-8', agent: 'quokka-9' }

/** The task of a session. */
export const prompt =
  'MAIN TASK: print note.txt, then ask the weather server for the forecast of Bern, then ask a sub-agent for its word. Answer with all three words.'

/** The task of the sub-agent. */
const agentPrompt = 'PART TASK: answer with your word. Use no tools.'

/** The answer to anything else, such as the request for a title. */
export const helperAnswer = 'Notes'

/** One step of a session: which tool is called with which arguments until its word has come back. */
type Step = {
  word: string
  /** Ends of the tool's name, whatever stands before them; the first tool that is offered is called. */
  names: readonly string[]
  /** Arguments by name; a call gets those that its tool knows. */
  values: Fields
  /** The input of a tool that runs JavaScript. */
  code?: string
}

const steps: readonly Step[] = [
  {
    word: words.file,
    names: ['bash', 'exec_command', 'run_shell_command', 'run_commands', 'exec'],
    values: {
      command: 'cat note.txt',
      cmd: 'cat note.txt',
      commands: ['cat note.txt'],
      description: 'Print a note',
      is_background: false,
    },
    code: 'text((await tools.exec_command({ cmd: "cat note.txt" })).output)',
  },
  {
    word: words.forecast,
    names: ['forecast', 'ToolSearch', 'tool_call', 'exec'],
    values: {
      city: 'Bern',
      query: 'select:mcp__weather__forecast',
      max_results: 5,
      name: 'mcp__weather__forecast',
      arguments: { city: 'Bern' },
    },
    code: 'text(JSON.stringify(await tools.mcp__weather__forecast({ city: "Bern" })))',
  },
  {
    word: words.agent,
    names: ['spawn_agent', 'task', 'agent'],
    values: {
      description: 'Ask for a word',
      prompt: agentPrompt,
      message: agentPrompt,
      task: agentPrompt,
      systemPrompt: 'You know one word.',
      subagent_type: 'general-purpose',
      agent_type: 'general-purpose',
      name: 'helper',
      task_name: 'helper',
      run_in_background: false,
      mode: 'sync',
      fork_context: false,
      fork_turns: 'none',
    },
  },
]

/** The number of waits for one sub-agent. */
const maxWaits = 4

/** Decides as a model would: calls one tool after the other, and answers with what they returned. */
export function decideTurn(conversation: Conversation): Turn {
  const { user, results, tools } = conversation
  if (user.includes('PART TASK') && !user.includes('MAIN TASK')) return { text: words.agent }
  if (!user.includes('MAIN TASK') || tools.length === 0) return { text: helperAnswer }
  const known = `${user}\n${results.map(({ text }) => text).join('\n')}`
  const step = steps.find(({ word }) => !known.includes(word))
  if (!step) return { text: `The words are ${Object.values(words).join(', ')}.` }
  return step.word === words.agent ? agentTurn(step, conversation) : stepTurn(step, conversation)
}

/** Calls the tool of a step, unless it was called and did not return its word. */
function stepTurn(step: Step, conversation: Conversation): Turn {
  const tool = toolOf(step, conversation)
  if (!tool)
    return failed(`no tool for "${step.word}" is offered: ${conversation.tools.map(({ name }) => name).join(' ')}`)
  // JavaScript and the search for tools serve two steps, and a client may lose the output of a command.
  if (conversation.calls.filter(({ name }) => name === tool.name).length > 1) {
    return failed(`"${tool.name}" returned no "${step.word}" but: ${lastResult(conversation).slice(0, 300)}`)
  }
  return { call: { tool, input: inputOf(tool, step) } }
}

/** Starts the sub-agent; where that returns before it has finished, waits for it. */
function agentTurn(step: Step, conversation: Conversation): Turn {
  const wait = conversation.tools.find(({ name }) => name.endsWith('wait_agent'))
  const started = conversation.calls.filter(({ name }) => name.endsWith('spawn_agent')).length
  if (!wait || started === 0) return stepTurn(step, conversation)
  const waits = conversation.calls.filter(({ name }) => name === wait.name).length
  if (waits >= maxWaits) return failed(`the sub-agent returned no word but: ${lastResult(conversation).slice(0, 300)}`)
  const id = /"agent_id":\s*"([^"]+)"/.exec(conversation.results.map(({ text }) => text).join('\n'))?.[1]
  return { call: { tool: wait, input: chosen(wait, { targets: [id ?? 'helper'], timeout_ms: 10_000 }) } }
}

/** The first of the names that is offered, as it is or behind the name of a namespace or a server. */
function toolOf({ names }: Step, { tools }: Conversation): Tool | undefined {
  for (const name of names) {
    const ending = new RegExp(`[^a-z]${name}$`, 'i')
    const found =
      tools.find((tool) => tool.name.toLowerCase() === name.toLowerCase()) ??
      tools.find((tool) => ending.test(tool.name))
    if (found) return found
  }
  return undefined
}

/** The input that a tool gets: one text for custom tools and for functions that stand for them. */
function inputOf(tool: Tool, { values, code = '' }: Step): Fields | string {
  if (tool.kind === 'custom') return code
  const names = Object.keys(fieldsOf(tool.parameters.properties))
  const [only] = names.length === 1 ? names : []
  return only && code && !(only in values) ? { [only]: code } : chosen(tool, values)
}

/** The values that a tool knows, with words of its own lists. */
function chosen(tool: Tool, values: Fields): Fields {
  const properties = fieldsOf(tool.parameters.properties)
  const entries = Object.entries(values).flatMap(([name, value]) => {
    const schema = fieldsOf(properties[name])
    return name in properties && !schema.oneOf ? [[name, fitting(tool, schema, value)]] : []
  })
  return Object.fromEntries(entries)
}

/** opencode has another name for its sub-agent. */
function fitting({ name }: Tool, { enum: allowed }: Fields, value: unknown): unknown {
  if (name === 'task' && value === 'general-purpose' && !allowed) return 'general'
  return Array.isArray(allowed) && !allowed.includes(value) ? textOf(allowed[0]) : value
}

function failed(why: string): Turn {
  return { text: `FAILED: ${why}` }
}

function lastResult({ results }: Conversation): string {
  return results.at(-1)?.text ?? 'nothing'
}
