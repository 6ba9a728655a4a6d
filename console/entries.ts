import type { Permissions } from './session.ts'

/** A key in the list. */
export type KeyEntry = {
  id: string
  name: string
  monthly_limit: number
  monthly_spend: number
  permissions: Permissions
  labels: Record<string, string>
  created_by: { id: string; email: string }
}

export function permissionsText(permissions: Permissions): string {
  const has = Object.entries(permissions).filter(([, level]) => level !== 'none')
  return has.map(([area, level]) => `${area}: ${level}`).join(', ') || 'none'
}

/** A group of keys. */
export type Group = { id: string; name: string; monthly_limit: number; monthly_spend: number }

/** A settled call in the list. */
export type CallEntry = {
  id: string
  request_id?: string
  at: string
  key: { id: string; name?: string }
  group?: { id: string; name?: string }
  operation: string
  api: string
  asked: string
  provider?: string
  model?: string
  served?: string
  streamed: boolean
  outcome: string
  code?: string
  class?: string
  status?: number
  duration_ms: number
  first_event_ms?: number
  input_tokens: number
  cached_tokens: number
  output_tokens: number
  reasoning_tokens: number
  cost: number
  estimated: boolean
  unpriced: boolean
  labels?: Record<string, string>
  extra?: Record<string, unknown>
  user?: string
  attempts: number
}

/** A call that was refused before a provider was asked; `message` is the reason, where it may be repeated. */
export type RefusedEntry = Pick<
  CallEntry,
  'id' | 'request_id' | 'at' | 'key' | 'group' | 'operation' | 'api' | 'asked' | 'streamed' | 'code' | 'status'
> & {
  outcome: 'refused'
  message?: string
}
