import type { Fields } from './fields.ts'

/** A tool that a request offers. */
export type Tool = {
  name: string
  namespace?: string
  /** A custom tool takes one text instead of arguments. */
  kind: 'function' | 'custom'
  parameters: Fields
}

/** A call of a tool that a request has in its history. */
export type PastCall = { id: string; name: string }

/** A request as a model reads it, whatever its format. */
export type Conversation = {
  tools: readonly Tool[]
  /** All text of the user. */
  user: string
  calls: readonly PastCall[]
  results: readonly { id: string; text: string }[]
}

/** The next step of the model: one call, or the end. */
export type Turn = { call: { tool: Tool; input: Fields | string } } | { text: string }

/** An answer as it is sent: one document, or server-sent events. */
export type Reply = { whole: Fields; events: readonly SentEvent[] }

/** One server-sent event; without a name where the format has none. */
export type SentEvent = { name?: string; data: Fields | '[DONE]' }

/** A wire format as a provider speaks it. */
export type Format = {
  read(body: Fields): Conversation
  write(turn: Turn, request: Fields, thoughts: ThoughtsMember): Reply
  /** The document of an error, and its status where the format has one for refusals. */
  error(message: string, status: number): Fields
}

/** The member of a chat message that holds the thoughts of a model. */
export type ThoughtsMember = 'reasoning' | 'reasoning_content' | undefined

/** The arguments of a call as a text. */
export function argumentsText(input: Fields | string): string {
  return typeof input === 'string' ? input : JSON.stringify(input)
}

/** An identifier of a provider: a prefix and this many random characters. */
export function randomId(prefix: string, length: number): string {
  const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
  const pick = () => letters[Math.floor(Math.random() * letters.length)]
  return prefix + Array.from({ length }, pick).join('')
}
