import { isObject } from '../core/json.ts'
import { referencesIn } from '../manifest/read/environment.ts'
import type { Source } from '../manifest/read/source.ts'

/** The variables that hold credentials of providers, or the first key of this router: those that manifests and settings name. */
export function credentialNames(manifests: readonly Source[], settings: unknown): Set<string> {
  const found = new Set(['INFERENCE_ROUTER_ADMIN_KEY'])
  for (const { value } of manifests) collect(value, false, found)
  collect(settings, false, found)
  return found
}

/** Members under which credentials stand. */
const secretMembers: ReadonlySet<string> = new Set(['auth', 'headers', 'secret'])

function collect(value: unknown, isSecret: boolean, found: Set<string>): void {
  if (typeof value === 'string') {
    if (isSecret) for (const name of referencesIn(value)) found.add(name)
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, isSecret, found)
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) collect(member, isSecret || secretMembers.has(name), found)
  }
}
