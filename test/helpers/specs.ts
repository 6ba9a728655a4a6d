import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { load } from 'js-yaml'
import type { JsonObject } from '../../src/core/json.ts'

const folder = resolve(process.env.SPECS ?? join(import.meta.dirname, '../../../shared/specs'))
const documents = new Map<string, JsonObject>()

/** A published description of an API, read once per worker; undefined where there is none. */
export function publishedSpec(name: string): JsonObject | undefined {
  const file = join(folder, name)
  const known = documents.get(name)
  if (known || !existsSync(file)) return known
  const text = readFileSync(file, 'utf8')
  const document = (name.endsWith('.yaml') ? load(text) : JSON.parse(text)) as JsonObject
  documents.set(name, document)
  return document
}

/** Why a published description cannot be read here, printed once; undefined when it can. */
export function specMissing(name: string): string | undefined {
  if (existsSync(join(folder, name))) return undefined
  const reason = `no ${join(folder, name)} (set SPECS)`
  console.warn(`skipped: ${reason}`)
  return reason
}
