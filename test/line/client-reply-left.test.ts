import { expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { CallRecord } from '../../src/core/call.ts'
import type { ModelEntry } from '../../src/core/model.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { Admission } from '../../src/line/admission.ts'
import { streamedReply } from '../../src/line/client-reply.ts'
import type { Asked } from '../../src/line/provider-call.ts'
import { Settlement } from '../../src/line/settlement.ts'
import type { Provider } from '../../src/manifest/provider.ts'

const entry: ModelEntry = {
  api: 'chat',
  pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 1e-6 }],
}

test('a stream that nobody reads on is settled with what has passed: its row is written, nothing stays held', async () => {
  const settled: bigint[] = []
  const rows: CallRecord[] = []
  const admission: Admission = { settle: (nano) => void settled.push(nano), written() {}, headers: {} }
  const request: NeutralRequest = { model: 'maker/m1', messages: [], origin: { api: 'chat', body: {} } }
  const settlement = new Settlement(
    {
      id: 'c',
      at: 1,
      begun: 0,
      organization: 'o',
      key: 'k',
      api: 'chat',
      operation: 'chat',
      requested: 'maker/m1',
      stream: true,
      request,
    },
    { ledger: { settle: async (record) => void rows.push(record) }, admission },
  )
  settlement.target = { provider: { slug: 'maker' } as Provider, model: 'm1', entry }
  const asked = { call: { id: 'c', face: chat }, request, turn: {}, settlement } as unknown as Asked
  let closed = false
  async function* words() {
    try {
      for (;;) yield [{ payload: {}, events: [{ text: 'word' }] }]
    } finally {
      closed = true
    }
  }
  let read = 0
  // A client that leaves while there is more to say ends the stream here, and not in the wait for the provider.
  for await (const _ of streamedReply({ kind: 'stream', batches: words() }, asked, () => {})) if (++read === 3) break
  expect(closed).toBe(true)
  expect(settled).toEqual([3_000n])
  expect(rows).toMatchObject([
    { outcome: 'partial', status: 499, error: 'client_gone', usage: { output: 3 }, cost: { estimated: true } },
  ])
})
