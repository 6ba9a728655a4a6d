import type { CallRecord } from '../../core/call.ts'
import { withoutSecrets } from '../../core/secrets.ts'
import { fractional, promptClasses, type Usage, type UsageClass, usageClasses } from '../../core/usage.ts'
import type { SqlValue } from '../database.ts'
import { storedJson } from '../store-error.ts'

/** A row of the ledger as a driver returns it, with integers as bigint. */
export type LedgerRow = Record<string, Exclude<SqlValue, Uint8Array>>

type Column = readonly [name: string, of: (record: CallRecord) => SqlValue]

/** The columns that every row fills. */
export const filledColumns: readonly Column[] = [
  ['id', ({ id }) => id],
  ['at', ({ at }) => Math.round(at)],
  ['organization', ({ organization }) => organization],
  ['key', ({ key }) => key],
  ['api', ({ api }) => api],
  ['operation', ({ operation }) => operation],
  ['requested', ({ requested }) => withoutSecrets(requested).slice(0, maxNameLength)],
  ['provider', ({ provider }) => provider],
  ['model', ({ model }) => model],
  ['stream', ({ stream }) => (stream ? 1 : 0)],
  ['outcome', ({ outcome }) => outcome],
  ['status', ({ status }) => status],
  ['attempts', ({ attempts }) => attempts],
  ['duration_ms', ({ durationMs }) => whole(durationMs) ?? 0],
  ['cost_nano', costNano],
  ['cost_parts', ({ cost }) => JSON.stringify(cost.parts)],
  ['price_version', ({ cost }) => cost.priceVersion],
  ['unpriced', ({ cost }) => (cost.unpriced ? 1 : 0)],
  ['estimated', ({ cost }) => (cost.estimated ? 1 : 0)],
  ['dropped', ({ dropped }) => JSON.stringify(dropped)],
]

/** The columns that are null in many rows. Counts come from providers: invalid ones are left out. */
export const otherColumns: readonly Column[] = [
  ['error', ({ error }) => error ?? null],
  ['first_event_ms', ({ firstEventMs }) => whole(firstEventMs)],
  ['reported_nano', ({ usage }) => whole(usage.reported_cost === undefined ? undefined : usage.reported_cost * 1e9)],
  ...usageClasses.map((name): Column => [name, ({ usage }) => count(name, usage)]),
  ['user', ({ user }) => (user === undefined ? null : withoutSecrets(user).slice(0, maxNameLength))],
  ['metadata', ({ metadata }) => (metadata === undefined ? null : withoutSecrets(JSON.stringify(metadata)))],
  ['group_id', ({ group }) => group ?? null],
  ['modes', ({ usage }) => (usage.modes === undefined ? null : JSON.stringify(usage.modes))],
  ['request_id', ({ requestId }) => requestId ?? null],
  ['attempt_of', ({ attemptOf }) => attemptOf ?? null],
  ['damaged', ({ damaged }) => (damaged ? 1 : null)],
  ['failure', ({ failure }) => failure ?? null],
  ['started_ms', ({ startedMs }) => whole(startedMs)],
  [
    'explanation',
    ({ explanation }) => (explanation === undefined ? null : withoutSecrets(JSON.stringify(explanation))),
  ],
  ['message', ({ message }) => message ?? null],
  ['provider_code', ({ providerCode }) => providerCode ?? null],
  ['reserved_nano', ({ reservedNano }) => whole(reservedNano)],
  // Without a client that began one, the id of the trace is that of the call.
  ['trace_id', ({ trace }) => (trace?.parentId === undefined ? null : trace.traceId)],
  ['served', ({ served }) => (served === undefined ? null : withoutSecrets(served).slice(0, maxNameLength))],
]

/** The record that a row was made from. */
export function callRecord(row: LedgerRow): CallRecord {
  const text = (name: string) => row[name] as string
  const number = (name: string) => Number(row[name])
  const has = (name: string) => row[name] !== null
  const cost = {
    nanoUsd: number('cost_nano'),
    parts: storedJson<CallRecord['cost']['parts']>(text('cost_parts')),
    priceVersion: text('price_version'),
  }
  return {
    id: text('id'),
    ...(has('attempt_of') && { attemptOf: text('attempt_of') }),
    ...(has('damaged') && { damaged: true }),
    ...(has('request_id') && { requestId: text('request_id') }),
    ...(has('served') && { served: text('served') }),
    at: number('at'),
    organization: text('organization'),
    key: text('key'),
    ...(has('group_id') && { group: text('group_id') }),
    api: text('api') as CallRecord['api'],
    operation: text('operation') as CallRecord['operation'],
    requested: text('requested'),
    provider: text('provider'),
    model: text('model'),
    stream: row.stream === 1n,
    outcome: text('outcome') as CallRecord['outcome'],
    status: number('status'),
    ...(has('error') && { error: text('error') as NonNullable<CallRecord['error']> }),
    ...(has('message') && { message: text('message') }),
    ...(has('provider_code') && { providerCode: text('provider_code') }),
    ...(has('reserved_nano') && { reservedNano: number('reserved_nano') }),
    ...(has('failure') && { failure: text('failure') }),
    usage: usageOf(row),
    cost: { ...cost, ...(row.unpriced === 1n && { unpriced: true }), ...(row.estimated === 1n && { estimated: true }) },
    dropped: storedJson(text('dropped')),
    attempts: number('attempts'),
    durationMs: number('duration_ms'),
    ...(has('started_ms') && { startedMs: number('started_ms') }),
    ...(has('first_event_ms') && { firstEventMs: number('first_event_ms') }),
    ...(has('explanation') && { explanation: storedJson(text('explanation')) }),
    ...(has('user') && { user: text('user') }),
    ...(has('metadata') && { metadata: storedJson(text('metadata')) }),
  }
}

/** A cost in nano-USD, as bigint: sums of money must stay integers beyond 2^53, and SQLite adds a bound number as a float. */
export function costNano({ cost }: CallRecord): bigint {
  return BigInt(whole(cost.nanoUsd) ?? 0)
}

/** The columns whose sum is the tokens of the output; those of the prompt are `promptClasses`. */
export const outputColumns = ['output', 'reasoning', 'output_audio', 'output_image'] as const

/** The columns whose sum is the tokens of the prompt that were read from a cache. */
export const cachedColumns = ['cache_read', 'cache_read_audio'] as const

/** Tokens of the prompt and of the output, and what of them was cached and was reasoning, as the columns of a row count them. */
export function tokensOf({ usage }: CallRecord): { input: number; output: number; cached: number; reasoning: number } {
  const sum = (names: readonly UsageClass[]) => names.reduce((total, name) => total + (whole(usage[name]) ?? 0), 0)
  return {
    input: sum(promptClasses),
    output: sum(outputColumns),
    cached: sum(cachedColumns),
    reasoning: sum(['reasoning']),
  }
}

/** The length at which names that clients choose are cut off. Characters. */
const maxNameLength = 1_024

function usageOf(row: LedgerRow): Usage {
  const usage: Usage = {}
  for (const name of usageClasses) if (row[name] !== null) usage[name] = Number(row[name])
  if (row.reported_nano !== null) usage.reported_cost = Number(row.reported_nano) / 1e9
  if (row.modes !== null) usage.modes = storedJson(row.modes as string)
  return usage
}

function count(name: UsageClass, usage: Usage): SqlValue {
  const value = usage[name]
  if (fractional.has(name)) return typeof value === 'number' && Number.isFinite(value) ? value : null
  return whole(value)
}

function whole(value: number | undefined): number | null {
  if (typeof value !== 'number' || !Number.isFinite(value)) return null
  return Math.min(Math.max(Math.round(value), 0), Number.MAX_SAFE_INTEGER)
}
