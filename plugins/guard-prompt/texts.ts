import type { PluginRequest } from 'inference-router/plugin'
import { type Chat, mapRequest, type Origin as Place, unreadIn } from '../lib/texts.ts'

/** Origin of the texts that are checked. */
export type Origin = (typeof origins)[number]
export const origins = ['system', 'user', 'assistant', 'tool_result'] as const

/**
 * Texts of users and tools in a request: each alone, those that follow each other as `runs`, and those that are `fresh`, after the last
 * answer.
 */
export type Texts = { all: string[]; runs: string[][]; fresh: string[] }

/** Operations whose texts are asked about, not searched, measured or judged. */
const prompting: ReadonlySet<string> = new Set(['complete', 'decide', 'image', 'image_edit', 'speech', 'transcribe'])

/** Returns the texts that are checked. Parts of unknown kinds are checked wherever they stand. */
export function textsOf(request: PluginRequest, origins: readonly Origin[]): Texts {
  if ('chat' in request) return textsInChat(request.chat, origins)
  const all: string[] = []
  if (prompting.has(request.operation) && origins.includes('user')) mapRequest(request, kept(all))
  return { all, runs: [all], fresh: all }
}

/** Returns the kinds of the parts that would be checked and have no text. */
export function unreadOf(request: PluginRequest, origins: readonly Origin[]): string[] {
  if (!('chat' in request) && !prompting.has(request.operation)) return []
  return unreadIn(request, isCheckedAt(origins))
}

function isCheckedAt(origins: readonly Origin[]): (place: Place) => boolean {
  return (place) => place === 'block' || origins.some((origin) => origin === place)
}

function kept(texts: string[]): (text: string) => string {
  return (text) => {
    texts.push(text)
    return text
  }
}

function textsInChat(chat: Chat, origins: readonly Origin[]): Texts {
  const isChecked = isCheckedAt(origins)
  const texts: Texts = { all: [], runs: [], fresh: [] }
  const ofSystem: string[] = []
  if (chat.system && isChecked('system')) {
    mapRequest({ operation: 'chat', chat: { model: chat.model, system: chat.system, messages: [] } }, kept(ofSystem))
    texts.all.push(...ofSystem)
    texts.fresh.push(...ofSystem)
    texts.runs.push(ofSystem)
  }
  let run: string[] = []
  for (const { role, parts } of chat.messages) {
    for (const part of parts) {
      if (role === 'assistant' && !isOutput(part)) {
        texts.fresh = [...ofSystem]
        if (run.length > 0) texts.runs.push(run)
        run = []
      }
      mapRequest(
        { operation: 'chat', chat: { model: chat.model, messages: [{ role, parts: [part] }] } },
        (text, place) => {
          if (!isChecked(place)) return text
          for (const list of [texts.all, texts.fresh, run]) list.push(text)
          return text
        },
      )
    }
  }
  if (run.length > 0) texts.runs.push(run)
  return texts
}

/** Checks whether a part that a client sends in the place of an answer is the output of a tool. */
function isOutput(part: Chat['messages'][number]['parts'][number]): boolean {
  if (part.type === 'tool_result' || part.type === 'search') return true
  const body: unknown = part.type === 'opaque' ? part.body : undefined
  const type = typeof body === 'object' && body !== null && 'type' in body ? body.type : undefined
  return typeof type === 'string' && /_(?:output|result)$/.test(type)
}
