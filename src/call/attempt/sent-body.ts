import { isDeepStrictEqual } from 'node:util'
import { restrictedFields, restrictedSearch } from '../../api/restricted-fields.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { jsonLength } from '../../core/json-pieces.ts'
import type { Target } from '../../manifest/target.ts'

const apis = ['chat', 'messages', 'responses'] as const
/** Fields that decide who answers, in what form, and what a provider does for it, in whatever format. */
const fixed: ReadonlySet<string> = new Set([
  ...['stream', 'stream_options', 'candidate_count', 'response_modalities', 'thinking_config', 'mcp_servers'],
  ...restrictedFields.flatMap(({ name, rule }) => (rule === 'read' || rule === 'priced' ? [name] : [])),
])
/** Members whose names are the caller's own. */
const tags: ReadonlySet<string> = new Set(['metadata', 'labels'])

/**
 * Checks a body that a plugin has edited. Throws an Error where the edit decides who serves the call, what it costs or what is stored: the
 * caller has been admitted with the body as it was.
 */
export function requireSameTerms(edited: JsonObject, body: JsonObject, { provider }: Target): void {
  const [terms, before] = [termsOf(edited), termsOf(body)]
  const changed = [...terms.keys(), ...before.keys()].find(
    (path) => !isDeepStrictEqual(terms.get(path), before.get(path)),
  )
  if (changed !== undefined) throw new Error(`the body has another \`${changed}\``)
  for (const api of apis) {
    const search = restrictedSearch(api, provider.slug, provider.restricted ?? [])
    const before = search(body).map(described).sort()
    const after = search(edited).map(described).sort()
    const differing = after.find((use, index) => use !== before[index]) ?? before[after.length]
    if (differing !== undefined)
      throw new Error(`the body has another \`${differing.slice(0, differing.indexOf(':'))}\``)
  }
}

/** Returns the fixed fields of a body by their paths, and those that formats such as Gemini's have one level deeper, by any spelling. */
function termsOf(body: JsonObject): Map<string, Json> {
  const terms = new Map<string, Json>()
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue
    if (fixed.has(snakeCased(name))) terms.set(name, value)
    else if (isObject(value) && !tags.has(name))
      for (const [inner, own] of Object.entries(value))
        if (own !== undefined && fixed.has(snakeCased(inner))) terms.set(`${name}.${inner}`, own)
  }
  return terms
}

function snakeCased(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function described({ path, value }: { path: string; value: unknown }): string {
  return `${path}: ${JSON.stringify(value)}`
}

/** Returns by about how many bytes an edited body is longer; 0 where it is not. */
export function growthOf(edited: JsonObject, body: JsonObject): number {
  return Math.max(0, jsonLength(edited) - jsonLength(body)) * maxBytesPerCharacter
}

const maxBytesPerCharacter = 3
