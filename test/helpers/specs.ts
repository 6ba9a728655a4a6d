import { existsSync, readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import type { JsonObject } from '../../src/core/json.ts'
import { dataPath, missingData } from './optional-data.ts'

const documents = new Map<string, JsonObject>()

/** A published description of an API, read once per worker; undefined where there is none. */
export function publishedSpec(name: string): JsonObject | undefined {
  const file = dataPath('SPECS', name)
  const known = documents.get(name)
  if (known || !existsSync(file)) return known
  const text = readFileSync(file, 'utf8')
  const document = (name.endsWith('.yaml') ? load(text) : JSON.parse(text)) as JsonObject
  documents.set(name, document)
  return document
}

/** The reason why a published description cannot be read; undefined when it can. */
export function specMissing(name: string): string | undefined {
  return missingData('SPECS', name)
}
