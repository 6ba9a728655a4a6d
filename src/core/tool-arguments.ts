import type { StreamEvent } from './events.ts'
import { deepest, exceededTogether, isObject, type JsonBounds, maxMembers, parseJson } from './json.ts'
import type { Part, ToolCallPart } from './parts.ts'

/**
 * The arguments of a finished tool call. Some models write nothing where they mean no arguments, but clients parse JSON;
 * arguments that were cut off stay as they are.
 */
export function finishedArguments(text: string, isCut: boolean): string {
  return text === '' && !isCut ? '{}' : text
}

/**
 * Returns the bound that the arguments of calls exceed: JSON inside strings, which counts as one value each where all of a body is
 * counted, and is parsed where a format has arguments as objects.
 */
export function exceededByCalls(
  messages: readonly { parts: readonly Part[] }[],
  values: number,
): keyof JsonBounds | undefined {
  const texts: string[] = []
  for (const { parts } of messages) {
    for (const part of parts) if (part.type === 'tool_call' && part.kind !== 'custom') texts.push(part.arguments)
  }
  return exceededTogether(texts, { values, depth: deepest, members: maxMembers })
}

/** Sets the input of a tool that the provider ran, which came as fragments of JSON text, on its part. */
export function setInput(part: Part, text: string): void {
  const input = parseJson(text)
  if (!isObject(input)) return
  if (part.type === 'search' && typeof input.query === 'string') part.query = input.query
  if (part.type === 'opaque' && isObject(part.body)) part.body = { ...part.body, input }
}

/** Finishes the arguments of a call, and writes what that adds. */
export function completeCall(index: number, part: ToolCallPart, isCut: boolean, out: StreamEvent[]): void {
  const finished = part.kind === 'custom' ? part.arguments : finishedArguments(part.arguments, isCut)
  if (finished === part.arguments) return
  part.arguments = finished
  out.push({ type: 'delta', index, part: 'tool_call', arguments: finished })
}

/** An id for a call that came without one, in the form of OpenAI's. */
export function callId(unique: string): string {
  return `call_${unique.replace(/[^a-zA-Z0-9]/g, '').slice(-24)}`
}
