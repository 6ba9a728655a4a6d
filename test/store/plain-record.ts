import { randomUUIDv7 } from 'node:crypto'
import type { CallRecord } from '../../src/core/call.ts'

/** A settled call that cost 1,000 nano-USD, with changes. */
export function plainRecord(changes: Partial<CallRecord> = {}): CallRecord {
  return {
    id: randomUUIDv7(),
    at: Date.UTC(2026, 10, 21, 12),
    organization: 'org-1',
    key: 'key-1',
    api: 'chat',
    operation: 'chat',
    requested: 'maker/m1',
    provider: 'maker',
    model: 'm1',
    stream: false,
    outcome: 'complete',
    status: 200,
    usage: { input: 10, output: 5 },
    cost: { nanoUsd: 1_000, parts: { input: 500, output: 500 }, priceVersion: '0123456789ab' },
    dropped: [],
    attempts: 1,
    durationMs: 12,
    ...changes,
  }
}
