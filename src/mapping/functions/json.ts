/** The value of a JSON text; missing when the text is not JSON. */
export function parseJson(text?: string): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The JSON text of a value, digits untouched. */
export function toJson(value?: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value)
}

/** The arguments of a tool call as the object that a provider expects: nothing is `{}`, anything else is wrapped. */
export function jsonArguments(value?: unknown): object {
  const text = typeof value === 'string' ? value.trim() : undefined
  const parsed = text === undefined ? value : parseJson(text)
  if (text === '' || parsed === null || (text ?? parsed) === undefined) return {}
  return typeof parsed === 'object' && !Array.isArray(parsed) ? parsed : { input: value }
}

/** A copy of a value without members that are null, at any depth. */
export function withoutNulls(value?: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (value === null || typeof value !== 'object') return value
  const kept = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutNulls(member)]))
}
