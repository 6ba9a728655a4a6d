import { isObject, type Json, type JsonObject, parseJson } from '../../core/json.ts'
import type { CallForm, Part, ToolCallPart } from '../../core/parts.ts'
import type { ClientTool } from '../../core/request.ts'
import { addressed } from './parts.ts'

/** A tool of this API that the client runs, whose calls and results are items of their own types. */
export type NativeTool = {
  /** The type of the tool. */
  kind: string
  /** The types of its items. */
  call: string
  output: string
  /** The prefix of the ids of its calls. */
  prefix: NativePrefix
  /** The tool as a function. */
  offer(tool: JsonObject): Omit<ClientTool, 'name' | 'kind'>
  /** The arguments of the function in a call. */
  argumentsOf(call: JsonObject): Json | undefined
  /** The members of a call; undefined where the arguments do not have their form. */
  membersOf(input: JsonObject): JsonObject | undefined
  /** The output as the model reads it. */
  partsOf(output: JsonObject): Part[]
}

/** The prefixes of the ids of calls that are items of their own types. */
export type NativePrefix = 'apc' | 'sh' | 'lsh' | 'tsc' | 'cu'

const string = { type: 'string' }
const strings = { type: 'array', items: string }
const integer = { type: 'integer' }

const applyPatch: NativeTool = {
  kind: 'apply_patch',
  call: 'apply_patch_call',
  output: 'apply_patch_call_output',
  prefix: 'apc',
  offer: () => ({
    description:
      'Creates, updates or deletes one file. `diff` is a V4A diff: lines that begin with a space are context, with `-` removed, with `+` added, and `@@` begins a section. A new file has only lines that begin with `+`.',
    parameters: {
      type: 'object',
      properties: {
        type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
        path: { type: 'string', description: 'The path of the file, relative to the workspace.' },
        diff: { type: 'string', description: 'The diff. Left out when a file is deleted.' },
      },
      required: ['type', 'path'],
      additionalProperties: false,
    },
  }),
  argumentsOf: ({ operation }) => operation,
  membersOf({ type, path, diff }) {
    if (typeof path !== 'string') return undefined
    if (type === 'delete_file') return { operation: { type, path } }
    const isWritten = (type === 'create_file' || type === 'update_file') && typeof diff === 'string'
    return isWritten ? { operation: { type, path, diff } } : undefined
  },
  partsOf: ({ output, status }) => [textPart(typeof output === 'string' && output !== '' ? output : status)],
}

const shell: NativeTool = {
  kind: 'shell',
  call: 'shell_call',
  output: 'shell_call_output',
  prefix: 'sh',
  offer: () => ({
    description: 'Runs commands in a shell on the machine of the user, and returns their output and exit codes.',
    parameters: {
      type: 'object',
      properties: {
        commands: { ...strings, description: 'The commands, each a line for the shell.' },
        timeout_ms: { ...integer, description: 'Time limit of the commands. Milliseconds.' },
        max_output_length: { ...integer, description: 'Limit of the returned output. Characters.' },
      },
      required: ['commands'],
      additionalProperties: false,
    },
  }),
  argumentsOf: ({ action }) => action,
  membersOf({ commands, timeout_ms = null, max_output_length = null }) {
    if (!isListOfStrings(commands)) return undefined
    return { action: { commands, timeout_ms, max_output_length }, environment: { type: 'local' } }
  },
  partsOf: ({ output }) => [textPart(output)],
}

const localShell: NativeTool = {
  kind: 'local_shell',
  call: 'local_shell_call',
  output: 'local_shell_call_output',
  prefix: 'lsh',
  offer: () => ({
    description: 'Runs one command on the machine of the user, and returns its output.',
    parameters: {
      type: 'object',
      properties: {
        command: { ...strings, description: 'The command and its arguments.' },
        working_directory: { ...string, description: 'The directory to run the command in.' },
        timeout_ms: { ...integer, description: 'Time limit of the command. Milliseconds.' },
        env: { type: 'object', additionalProperties: string, description: 'Environment variables.' },
        user: { ...string, description: 'The user to run the command as.' },
      },
      required: ['command'],
    },
  }),
  argumentsOf({ action }) {
    if (!isObject(action)) return action
    const { type: _type, ...input } = action
    return input
  },
  membersOf({ command, env, timeout_ms, user, working_directory }) {
    if (!isListOfStrings(command)) return undefined
    const given = Object.entries({ timeout_ms, user, working_directory }).filter(([, value]) => value !== undefined)
    return {
      action: { type: 'exec', command, env: isObject(env) ? env : {}, ...(Object.fromEntries(given) as JsonObject) },
    }
  },
  partsOf: ({ output }) => [textPart(output)],
}

const toolSearch: NativeTool = {
  kind: 'tool_search',
  call: 'tool_search_call',
  output: 'tool_search_output',
  prefix: 'tsc',
  offer: ({ description, parameters }) => ({
    description:
      typeof description === 'string'
        ? description
        : 'Finds further tools. Those that are found can be called afterwards.',
    parameters: isObject(parameters)
      ? parameters
      : { type: 'object', properties: { query: { ...string, description: 'What the tool should do.' } } },
  }),
  argumentsOf: ({ arguments: input }) => input,
  membersOf: (input) => ({ arguments: input, execution: 'client' }),
  partsOf: ({ tools }) => [textPart(foundTools(tools))],
}

const computer: Omit<NativeTool, 'kind' | 'offer'> = {
  call: 'computer_call',
  output: 'computer_call_output',
  prefix: 'cu',
  argumentsOf: ({ action, actions }) => action ?? (Array.isArray(actions) ? { actions } : undefined),
  membersOf(input) {
    if (Array.isArray(input.actions)) return { actions: input.actions, pending_safety_checks: [] }
    return typeof input.type === 'string' ? { action: input, pending_safety_checks: [] } : undefined
  },
  partsOf({ output }) {
    if (!isObject(output)) return [textPart(output)]
    if (typeof output.file_id === 'string') return [{ type: 'image', file_id: output.file_id }]
    return typeof output.image_url === 'string'
      ? [{ type: 'image', ...addressed(output.image_url) }]
      : [textPart('No screenshot was returned.')]
  },
}

/** One action on a computer. */
const action: JsonObject = {
  type: 'object',
  properties: {
    type: {
      type: 'string',
      enum: ['click', 'double_click', 'drag', 'keypress', 'move', 'screenshot', 'scroll', 'type', 'wait'],
    },
    x: { ...integer, description: 'For click, double_click, move, scroll. Pixels from the left.' },
    y: { ...integer, description: 'For click, double_click, move, scroll. Pixels from the top.' },
    button: { type: 'string', enum: ['left', 'right', 'wheel', 'back', 'forward'], description: 'For click.' },
    keys: { ...strings, description: 'For keypress, or held during a click.' },
    text: { ...string, description: 'For type.' },
    scroll_x: { ...integer, description: 'For scroll.' },
    scroll_y: { ...integer, description: 'For scroll.' },
    path: {
      type: 'array',
      items: { type: 'object', properties: { x: integer, y: integer }, required: ['x', 'y'] },
      description: 'For drag: the points of the way.',
    },
  },
  required: ['type'],
}

const computerPreview: NativeTool = {
  ...computer,
  kind: 'computer_use_preview',
  offer: ({ display_width, display_height, environment }) => ({
    description: `Does one thing on a computer (${environment ?? 'desktop'}, ${display_width} x ${display_height} pixels), and returns a screenshot.`,
    parameters: action,
  }),
}

const computerTool: NativeTool = {
  ...computer,
  kind: 'computer',
  offer: () => ({
    description: 'Does things on a computer, one after the other, and returns a screenshot.',
    parameters: {
      type: 'object',
      properties: { actions: { type: 'array', items: action } },
      required: ['actions'],
    },
  }),
}

const all: readonly NativeTool[] = [applyPatch, shell, localShell, toolSearch, computerPreview, computerTool]

const byKind = new Map(all.map((tool) => [tool.kind, tool]))
const byItem = new Map(all.flatMap((tool) => [[tool.call, tool] as const, [tool.output, tool] as const]))

/** Returns the tool of this type, where the client runs it. */
export function nativeTool(type: Json | undefined, definition: JsonObject = {}): NativeTool | undefined {
  const tool = typeof type === 'string' ? byKind.get(type) : undefined
  return tool && runsAtClient(definition) ? tool : undefined
}

/** A shell runs in a container of the provider where the client says so, and a tool search at the provider unless it does. */
function runsAtClient({ type, environment, execution }: JsonObject): boolean {
  if (type === 'tool_search') return execution === 'client'
  return type !== 'shell' || !isObject(environment) || environment.type === 'local'
}

/** Returns the tool whose calls or results are items like this one, where the client runs it. */
export function nativeToolOf(item: JsonObject): NativeTool | undefined {
  const { type, execution, environment, call_id } = item
  const tool = typeof type === 'string' ? byItem.get(type) : undefined
  if (!tool || (tool.kind === 'shell' && isObject(environment) && environment.type !== 'local')) return undefined
  const isSearchOfProvider = tool.kind === 'tool_search' && (execution === 'server' || typeof call_id !== 'string')
  return isSearchOfProvider ? undefined : tool
}

const byCall = new Map(all.map((tool) => [tool.call, tool]))

/** Returns a call as an item of its own type; undefined where it is a call by name, or its arguments do not have the form of the item. */
export function nativeCall({
  form,
  arguments: text,
}: ToolCallPart): { tool: NativeTool; members: JsonObject } | undefined {
  const tool = form && byCall.get(form.kind)
  if (!tool) return undefined
  const input = parseJson(text)
  const members = isObject(input) ? tool.membersOf(input) : undefined
  return members && { tool, members }
}

/** Checks whether a call is one of a tool whose calls are items of their own types. */
export function isNativeCall(part: Part): part is ToolCallPart & { form: CallForm } {
  return part.type === 'tool_call' && part.form !== undefined && byCall.has(part.form.kind)
}

/** Returns the events in which a streamed call of a shell has its commands, by their type. */
export function eventsOfCall({ action }: JsonObject): [type: string, members: JsonObject][] {
  const commands = isObject(action) && isListOfStrings(action.commands) ? action.commands : []
  return commands.flatMap((command, command_index): [string, JsonObject][] => [
    ['response.shell_call_command.added', { command_index, command: '' }],
    ['response.shell_call_command.delta', { command_index, delta: command }],
    ['response.shell_call_command.done', { command_index, command }],
  ])
}

function isListOfStrings(value: Json | undefined): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function textPart(value: Json | undefined): Part {
  const text = typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
  return { type: 'text', text }
}

function foundTools(tools: Json | undefined): string {
  const names = (Array.isArray(tools) ? tools : []).filter(isObject).flatMap(namesIn)
  return names.length > 0 ? `Tools found, which can be called now: ${names.join(', ')}` : 'No tool was found.'
}

function namesIn({ type, name, tools }: JsonObject): string[] {
  if (type !== 'namespace') return typeof name === 'string' ? [name] : []
  const inside = (Array.isArray(tools) ? tools : []).filter(isObject)
  return inside.flatMap((tool) => (typeof tool.name === 'string' ? [joinedName(name, tool.name)] : []))
}

/** Returns the name of a function that stands for a tool of a namespace. */
export function joinedName(namespace: Json | undefined, name: string): string {
  if (typeof namespace !== 'string' || namespace === '') return name
  return namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`
}
