import type { Json, JsonObject } from './json.ts'
import type { Part } from './parts.ts'
import type { Usage } from './usage.ts'

/** Reason why a reply ended. */
export type Finish = (typeof finishes)[number]

const finishes = ['stop', 'length', 'tool_calls', 'content_filter', 'refusal', 'pause', 'error'] as const

/** Checks whether a text is a neutral finish reason. */
export function isFinish(text: string): text is Finish {
  return (finishes as readonly string[]).includes(text)
}

/** One whole reply. `finish_raw` is the provider's own finish reason; `created` is in Unix seconds. */
export type Reply = {
  id: string
  model?: string
  created: number
  parts: Part[]
  finish: Finish
  finish_raw?: string
  stop_sequence?: string
  usage: Usage
  logprobs?: Json
  extensions?: JsonObject
}
