import { isObject, type JsonObject } from '../../core/json.ts'
import { printableInLine } from '../../core/printable.ts'
import { callDetail, ownIdIn } from '../../management/calls/call-entry.ts'
import { type Args, CommandError, table, UsageError } from '../command.ts'
import type { Finding, LedgerAction, LedgerSource } from './ledger-action.ts'

export const options: LedgerAction['options'] = {}
export const positionals = 1
/** Set because this is needed most while files have mistakes. */
export const withoutFiles = true

/** Prepares `ledger show`: everything recorded about one call, as in the console. */
export function prepare({ positionals: [id] }: Args): (source: Pick<LedgerSource, 'store'>) => Promise<Finding> {
  if (!id) throw new UsageError('name the call: ledger show <id of the call, from the log or x-request-id>')
  return async ({ store }) => {
    const found = await store.calls.findAnywhere(ownIdIn(id) ?? id)
    if (!found) throw new CommandError(`The ledger has no call '${id}'.`)
    const detail = callDetail(found)
    return { json: { organization: found.call.organization, ...detail }, text: asText(detail), ok: true }
  }
}

function asText({ rows, cost_parts, usage, error, key, group, explanation, ...call }: JsonObject): string {
  const facts = Object.entries({ ...call, key: named(key), group: named(group), error: errorText(error) })
  const width = Math.max(...facts.map(([name]) => name.length))
  const lines = facts.flatMap(([name, value]) => {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) return []
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return [`${name.padEnd(width)}  ${printableInLine(text)}`]
  })
  const head = ['#', 'MODEL', 'OUTCOME', 'STATUS', 'MS', 'COST USD', 'THE PROVIDER WROTE']
  return `${lines.join('\n')}\n\n${table([head, ...listOf(rows).map(attemptCells)])}\n`
}

function attemptCells(row: JsonObject): string[] {
  const { attempt, model = '', outcome, code, status, duration_ms = '', cost, provider_code, provider_message } = row
  const words = [provider_code, provider_message].filter((text) => text !== undefined).join(': ')
  return [attempt, model, code ?? outcome, status, duration_ms, cost, words].map(String)
}

function named(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  return value.name === undefined ? String(value.id) : `${value.name} (${value.id})`
}

function errorText(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  const { code, message } = value
  return message === undefined ? String(code) : `${code}: ${message}`
}

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
