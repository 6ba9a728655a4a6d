import { hash } from 'node:crypto'
import { deepest, isObject, type Json, parseJson } from '../core/json.ts'
import type { Part, ToolCallPart } from '../core/parts.ts'
import type { Message } from '../core/request.ts'

/** Returns the calls of a message or reply. */
export function callsIn(parts: readonly Part[]): ToolCallPart[] {
  return parts.filter((part) => part.type === 'tool_call')
}

/** Characters that are compared of one conversation, the last turns first: more than most contexts hold of arguments. */
const maxCompared = 1_000_000

/**
 * The turns of one conversation with tool calls, identified by what clients send back unchanged: the API key, the calls, and the text of
 * the user's message before them. Clients rewrite everything else: instructions, cache marks, earlier turns.
 */
export class TurnKeys {
  readonly #keyId: string
  readonly #messages: readonly Message[]
  /** Digests of user messages by their index: many turns may follow one message. */
  readonly #digests = new Map<number, string>()
  #left = maxCompared

  constructor(keyId: string, messages: readonly Message[]) {
    this.#keyId = keyId
    this.#messages = messages
  }

  /** Returns the part of `key` that needs no digest. Some providers repeat the ids of calls in every conversation. */
  family(calls: readonly ToolCallPart[]): string {
    const ids = calls.map(({ id }) => id)
    return `${this.#keyId} ${ids.reduce((least, id) => (id < least ? id : least))}`
  }

  /**
   * Returns the key of the turn that has these calls and follows the first `before` messages; undefined where too much has been compared
   * already.
   */
  key(before: number, calls: readonly ToolCallPart[]): string | undefined {
    for (const { arguments: text } of calls) this.#left -= text.length
    if (this.#left < 0) return undefined
    const user = this.#userDigest(before)
    if (user === undefined) return undefined
    const named = calls.map(({ id, name, arguments: text }) => JSON.stringify([id, name, canonicalArguments(text)]))
    return `${digest([user, ...named.sort()])} ${this.family(calls)}`
  }

  #userDigest(before: number): string | undefined {
    let index = before - 1
    while (index >= 0 && !isOfUser(this.#messages[index] as Message)) index--
    let known = this.#digests.get(index)
    if (known === undefined) {
      const text = textOf(this.#messages[index])
      this.#left -= text.length
      if (this.#left < 0) return undefined
      known = digest([text])
      this.#digests.set(index, known)
    }
    return known
  }
}

/** Returns the family of a key; undefined for keys of other versions. */
export function familyOf(key: string): string | undefined {
  return /^[\w-]{43} (.+)$/s.exec(key)?.[1]
}

/** Distinguishes messages of the user from tool results, which are user messages too. */
function isOfUser({ role, parts }: Message): boolean {
  return role === 'user' && parts.some(({ type }) => type !== 'tool_result')
}

function textOf(message: Message | undefined): string {
  const texts = (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? part.text : []))
  return texts.join('').trim()
}

function digest(texts: readonly string[]): string {
  return hash('sha256', JSON.stringify(texts), 'base64url')
}

/**
 * Writes arguments in one form, however a client wrote them: with other white space, with members in another order, or, where an API has
 * objects, as `{}` for none and `{input}` for any other value.
 */
export function canonicalArguments(text: string): string {
  if (text.trim() === '') return '{}'
  const value = parseJson(text)
  if (value === null) return '{}'
  const found = isObject(value) ? canonical(value, deepest) : undefined
  return found ?? canonical({ input: text }, 1) ?? ''
}

/** Writes a value with sorted members; undefined for one that is nested too deeply. */
function canonical(value: Json | undefined, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  if (depth === 0) return undefined
  const isList = Array.isArray(value)
  const names = isList ? [] : Object.keys(value).sort()
  const values = isList ? value : names.map((name) => value[name])
  const texts = values.map((member) => canonical(member, depth - 1))
  if (texts.includes(undefined)) return undefined
  return isList ? `[${texts.join()}]` : `{${texts.map((text, at) => `${JSON.stringify(names[at])}:${text}`).join()}}`
}
