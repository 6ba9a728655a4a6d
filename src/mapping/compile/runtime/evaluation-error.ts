import { messages } from './messages.ts'

/** An error of a compiled mapping; `code` is JSONata's where JSONata has one. */
export class EvaluationError extends Error {
  readonly code: string
  position: number | undefined
  token: string | undefined

  constructor(code: string, position?: number, facts: Facts = {}) {
    super(describe(code, facts))
    this.name = 'EvaluationError'
    this.code = code
    this.position = position
    this.token = facts.token
  }
}

/** Values for the placeholders of a message. */
export type Facts = { token?: string | undefined; [name: string]: unknown }

/** The message for an error code, with its placeholders filled in. */
export function describe(code: string, facts: Facts): string {
  const template = messages[code] ?? code
  return template
    .replace(/\{\{\{([^}]+)\}\}\}/g, (_, name: string) => String(facts[name]))
    .replace(/\{\{([^}]+)\}\}/g, (_, name: string) => shorten(facts[name]))
}

/** Values come from clients and providers: a message quotes at most 200 characters of them. */
function shorten(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 200))
  if (value === null || typeof value !== 'object') return String(value)
  return Array.isArray(value) ? `an array of ${value.length}` : 'an object'
}
