import { asFunction, grammarOf, textAsArguments } from '../../core/client-functions.ts'
import type { Part } from '../../core/parts.ts'
import {
  type Api,
  type ClientTool,
  isProviderTool,
  type Message,
  type NeutralRequest,
  type Tool,
  type ToolChoice,
} from '../../core/request.ts'
import type { ChatEndpoint, Support } from '../provider.ts'

/**
 * Returns a request whose tools that the client runs are functions where a provider does not know their kind, with their earlier calls
 * and the tool choice. The original is not changed.
 */
export function withFunctions(request: NeutralRequest, support: Support): NeutralRequest {
  const { tools, messages, tool_choice: choice } = request
  const offered = tools?.some((tool) => isOffered(tool, support))
    ? tools.flatMap((tool) => toolsFor(tool, support))
    : tools
  const changed = mappedMessages(messages, support)
  const chosen = offered === tools && takesChoice(choice, support) ? choice : choiceFor(choice)
  if (offered === tools && changed === messages && chosen === choice) return request
  return {
    ...request,
    messages: changed,
    ...(offered && { tools: offered }),
    ...(chosen !== undefined && { tool_choice: chosen }),
  }
}

/** Checks whether a provider is offered functions in the place of this tool. */
export function isOffered(tool: Tool, support: Support): boolean {
  if (support.tool(tool) || !support.tool({ kind: 'function' })) return false
  return hasFunctions(tool)
}

/**
 * Checks whether an endpoint of the client's own format lacks a tool of a request that it can be offered as a function: then the body is
 * translated instead of edited.
 */
export function needsFunctions({ unsupported }: ChatEndpoint, { tools }: NeutralRequest): boolean {
  if (!tools) return false
  const isLost = (field: string) => unsupported.some((loss) => !loss.when && loss.field === field)
  if (isLost('tools') || isLost('tools.function')) return false
  return tools.some((tool) => hasFunctions(tool) && isLost(`tools.${tool.kind}`))
}

function hasFunctions(tool: Tool): boolean {
  return isProviderTool(tool) ? tool.functions !== undefined : tool.kind === 'custom'
}

/** Returns `tools.format` where the input of a tool must match a grammar that the provider only reads in the description. */
export function unenforcedGrammar({ tools = [] }: NeutralRequest, support: Support): string[] {
  const functions = tools.flatMap((tool): Tool[] =>
    isProviderTool(tool) && isOffered(tool, support) ? (tool.functions ?? []) : [tool],
  )
  const isLost = functions.some((tool) => !isProviderTool(tool) && isOffered(tool, support) && grammarOf(tool.format))
  return isLost ? ['tools.format'] : []
}

function toolsFor(tool: Tool, support: Support): Tool[] {
  if (!isOffered(tool, support)) return [tool]
  if (!isProviderTool(tool)) return [functionFor(tool)]
  const { functions = [], cache } = tool
  return functions.map((one, index) => {
    const made = isOffered(one, support) ? functionFor(one) : withoutForm(one)
    return cache && index === functions.length - 1 ? { ...made, cache } : made
  })
}

function functionFor(tool: ClientTool): ClientTool {
  return withoutForm(asFunction(tool))
}

/** The form of its calls is for the client alone. */
function withoutForm({ form: _form, ...tool }: ClientTool): ClientTool {
  return tool
}

function takesChoice(choice: ToolChoice | undefined, support: Support): boolean {
  return typeof choice !== 'object' || !('definition' in choice) || support.tool(choice)
}

function choiceFor(choice: ToolChoice | undefined): ToolChoice | undefined {
  if (typeof choice !== 'object' || !('definition' in choice) || !choice.functions) return choice
  const { allowed, mode } = choice.functions
  const [name, ...others] = allowed
  return name !== undefined && others.length === 0 && mode === 'required' ? { name } : { allowed, mode }
}

function mappedMessages(messages: Message[], support: Support): Message[] {
  const isKept = (part: Part) => partFor(part, support) === part
  if (messages.every(({ parts }) => parts.every(isKept))) return messages
  return messages.map((message) => ({ ...message, parts: message.parts.map((part) => partFor(part, support)) }))
}

/** A call or result without the client's own JSON, and the input of a custom tool as arguments. */
function partFor(part: Part, support: Support): Part {
  if (part.type !== 'tool_call' && part.type !== 'tool_result') return part
  const { native } = part
  // Kinds of tools that only one API has are known by its name.
  const isUnknown = native !== undefined && !support.tool({ kind: native.kind, by: native.by as Api })
  const bare = isUnknown ? withoutNative(part) : part
  if (bare.type !== 'tool_call' || bare.kind !== 'custom' || support.tool({ kind: 'custom' })) return bare
  const { kind: _custom, ...call } = bare
  return { ...call, arguments: textAsArguments(bare.arguments) }
}

function withoutNative<One extends Part>(part: One): One {
  const { native: _native, ...bare } = part as One & { native?: unknown }
  return bare as unknown as One
}
