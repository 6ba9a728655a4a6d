import { expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { ModelEntry } from '../../src/core/model.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { Admission } from '../../src/line/admission.ts'
import { wholeReply } from '../../src/line/client-reply.ts'
import type { Asked } from '../../src/line/provider-call.ts'
import { Settlement } from '../../src/line/settlement.ts'
import type { Provider } from '../../src/manifest/provider.ts'

const entry: ModelEntry = {
  api: 'chat',
  pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }],
}
const request: NeutralRequest = { model: 'maker/m1', messages: [], origin: { api: 'chat', body: {} } }
const reply: Reply = { id: 'r', created: 1, parts: [], finish: 'stop', usage: { input: 5, output: 10 } }

/** A whole answer whose reply is written and kept by these; what was settled, and the rows. */
async function answered(writeReply: () => object, keep: () => undefined = () => undefined) {
  const settled: bigint[] = []
  const rows: CallRecord[] = []
  const admission: Admission = { settle: (nano) => void settled.push(nano), written() {}, headers: {} }
  const ledger = { settle: async (record: CallRecord) => void rows.push(record) }
  const opening = {
    id: 'c',
    at: 1,
    begun: 0,
    organization: 'o',
    key: 'k',
    requested: 'maker/m1',
    stream: false,
    request,
  }
  const settlement = new Settlement({ ...opening, api: 'chat', operation: 'chat' }, { ledger, admission })
  settlement.target = { provider: { slug: 'maker' } as Provider, model: 'm1', entry }
  const asked = { call: { id: 'c', face: { api: 'chat', writeReply } }, request, turn: { keep }, settlement }
  const text = wholeReply({ kind: 'whole', body: {}, reply }, asked as unknown as Asked, () => {})
  await expect(text).rejects.toThrow()
  // As the line does with all that is thrown.
  await settlement.fail(new RouterError('internal', 'It failed.'))
  return { settled, rows: rows.map(({ outcome, status, cost }) => ({ outcome, status, nano: cost.nanoUsd })) }
}

test('what a provider has answered is paid, even when it cannot be written for the client or kept', async () => {
  const broken = () => {
    throw new TypeError('no such part')
  }
  const paid = { settled: [25_000n], rows: [{ outcome: 'partial', status: 500, nano: 25_000 }] }
  expect(await answered(broken)).toEqual(paid)
  expect(await answered(() => ({}), broken)).toEqual(paid)
})
