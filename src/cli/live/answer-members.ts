import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { usageClasses } from '../../core/usage.ts'
import type { ChatEndpoint } from '../../manifest/provider.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { mentionsOf } from '../../mapping/mentions.ts'

/** Returns the names of all members that the mappings of an endpoint can read of an answer, or of the events of a stream. */
export function readersOf({ reply, events, usage, patch }: ChatEndpoint, streamed: boolean): ReadonlySet<string> {
  const mappings = streamed ? [...events.values(), patch.event, usage] : [reply, patch.reply, usage]
  const known = mappings.filter((mapping): mapping is Mapping => mapping !== undefined)
  const names = known.flatMap(({ tree }) => [...mentionsOf(tree, (last) => [last]).names])
  // Without a mapping of its own the usage is in the router's words.
  return new Set([...names, ...(usage ? [] : usageClasses)])
}

/** Lists the members of answers that none of these names reads, by their paths without positions in lists; of each only the outermost. */
export function unreadIn(payloads: readonly JsonObject[], names: ReadonlySet<string>): string[] {
  const found = new Set<string>()
  for (const payload of payloads)
    visit(payload, '', (path, name) => {
      if (names.has(name)) return true
      if (found.size < maxListed) found.add(path)
      return false
    })
  return [...found]
}

/** Lists the numbers of the usage in answers, by their paths; of several events the last one counts. */
export function usageFieldsIn(payloads: readonly JsonObject[]): { [path: string]: number } {
  const found: { [path: string]: number } = {}
  for (const payload of payloads)
    visit(payload, '', (path, _, value) => {
      const isUsage = aboutUsage.test(path)
      if (isUsage && typeof value === 'number' && (path in found || Object.keys(found).length < maxListed))
        found[path] = value
      return true
    })
  return found
}

/** Members in which providers count: `usage`, `usageMetadata`, `prompt_eval_count` … */
const aboutUsage = /usage|token|billed|eval_count/i
const maxListed = 50

type Visit = (path: string, name: string, value: Json) => boolean

/** Walks the members of an answer; `enter` returns whether the members below are walked as well. */
function visit(value: Json | undefined, path: string, enter: Visit): void {
  if (Array.isArray(value)) for (const item of value) visit(item, path, enter)
  if (!isObject(value)) return
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined || member === null) continue
    const own = path === '' ? name : `${path}.${name}`
    if (enter(own, name, member)) visit(member, own, enter)
  }
}
