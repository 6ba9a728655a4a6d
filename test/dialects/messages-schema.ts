import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Ajv } from 'ajv'
import type { JsonObject } from '../../src/core/json.ts'

const specs = resolve(process.env.SPECS ?? join(import.meta.dirname, '../../../shared/specs'))
const file = join(specs, 'anthropic.messages.schema.json')

/** Why the published schema of Messages cannot be read here; undefined when it can. */
export const messagesSchemaMissing = existsSync(file) ? undefined : `no ${file} (set SPECS)`
if (messagesSchemaMissing) console.warn(`skipped: ${messagesSchemaMissing}`)

const validate = messagesSchemaMissing ? undefined : published()

/** What is wrong with a request for Messages by its published schema; an empty list when nothing is. */
export function messagesViolations(request: JsonObject): string[] {
  // The newest schema no longer knows these; families before 4.7 still take them.
  const { temperature, top_p, top_k, ...body } = request
  validate?.(body)
  return (validate?.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

function published() {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  ajv.addSchema(JSON.parse(readFileSync(file, 'utf8')), 'messages')
  const validator = ajv.getSchema('messages#/definitions/MessageCreateParams')
  if (!validator) throw new Error('the schema has no MessageCreateParams')
  return validator
}
