import { createHash } from 'node:crypto'
import type { Part } from '../../core/parts.ts'
import { isProviderTool, type Message, type NeutralRequest, type Tool, type ToolChoice } from '../../core/request.ts'
import type { TextLimit } from '../limits.ts'
import { mapped } from './repair-turns.ts'

/** The client's name of each tool that has another name at the provider. */
export type ClientNames = ReadonlyMap<string, string>

/** Checks whether a text is within a limit. */
export function fits(text: string, { pattern, max = Number.POSITIVE_INFINITY }: TextLimit): boolean {
  return text.length <= max && (pattern === undefined || pattern.test(text))
}

/** A text as hexadecimal digits, which every pattern allows: always the same ones for a text, so that caches keep working. */
export function digest(text: string, { max = Number.POSITIVE_INFINITY }: TextLimit): string {
  return createHash('sha256').update(text).digest('hex').slice(0, Math.min(max, 64))
}

/** A name within a limit that still reads like the given one: other characters become `_`, and its digest keeps it apart from similar ones. */
export function shortName(name: string, limit: TextLimit): string {
  if (fits(name, limit)) return name
  const { max = 64 } = limit
  const end = `_${digest(name, { max: 8 })}`
  const plain = name.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, Math.max(0, max - end.length)) + end
  if (fits(plain, limit)) return plain
  const lettered = `t_${plain.replaceAll('-', '_')}`.slice(0, max - end.length) + end
  return fits(lettered, limit) ? lettered : digest(name, limit)
}

/** A request in which all tools have names that the provider takes, wherever they are named, and the client's names of those changed. */
export function withShortNames(
  request: NeutralRequest,
  limit: TextLimit,
): { request: NeutralRequest; names: ClientNames } | undefined {
  const named = namesIn(request)
  if (named.every((name) => fits(name, limit))) return undefined
  const short = new Map<string, string>()
  const clientNames = new Map<string, string>()
  // A name that fits stays, whoever else would get it.
  const taken = new Set(named.filter((name) => fits(name, limit)))
  const rename = (name: string): string => {
    const known = short.get(name)
    if (known !== undefined) return known
    let made = shortName(name, limit)
    for (let count = 2; made !== name && taken.has(made); count++) made = shortName(`${name} ${count}`, limit)
    taken.add(made)
    short.set(name, made)
    if (made !== name) clientNames.set(made, name)
    return made
  }
  const messages = mapped(request.messages, (message) => renamedMessage(message, rename))
  const tools = request.tools && mapped(request.tools, (tool) => renamedTool(tool, rename))
  const choice = request.tool_choice && renamedChoice(request.tool_choice, rename)
  return {
    request: { ...request, messages, ...(tools && { tools }), ...(choice && { tool_choice: choice }) },
    names: clientNames,
  }
}

type Rename = (name: string) => string

/** Returns the names of tools in a request: of those defined, chosen, called and answered. */
function namesIn({ tools = [], messages, tool_choice: choice }: NeutralRequest): string[] {
  const names: string[] = []
  for (const tool of tools) if (!isProviderTool(tool)) names.push(tool.name)
  if (typeof choice === 'object' && 'name' in choice) names.push(choice.name)
  if (typeof choice === 'object' && 'allowed' in choice) names.push(...choice.allowed)
  for (const { parts } of messages) for (const part of parts) if ('name' in part && part.name) names.push(part.name)
  return names
}

function renamedTool(tool: Tool, rename: Rename): Tool {
  if (isProviderTool(tool)) return tool
  const name = rename(tool.name)
  return name === tool.name ? tool : { ...tool, name }
}

function renamedChoice(choice: ToolChoice, rename: Rename): ToolChoice {
  if (typeof choice === 'string' || 'definition' in choice) return choice
  if ('name' in choice) return { ...choice, name: rename(choice.name) }
  return { ...choice, allowed: choice.allowed.map(rename) }
}

function renamedMessage(message: Message, rename: Rename): Message {
  const parts = mapped(message.parts, (part) => renamedPart(part, rename))
  return parts === message.parts ? message : { ...message, parts }
}

function renamedPart(part: Part, rename: Rename): Part {
  if ((part.type !== 'tool_call' && part.type !== 'tool_result') || part.name === undefined) return part
  const name = rename(part.name)
  return name === part.name ? part : { ...part, name }
}
