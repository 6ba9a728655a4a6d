import { expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { Settlement } from '../../src/call/admission/settlement.ts'
import type { StreamTranslation, Translation } from '../../src/call/attempt/types.ts'
import type { AnsweredAttempt } from '../../src/call/reply/answered-attempt.ts'
import { wholeReply } from '../../src/call/reply/client-reply.ts'
import { giveUp } from '../../src/call/reply/other-targets.ts'
import { streamedReply } from '../../src/call/reply/streamed-reply.ts'
import type { Admission } from '../../src/call/types.ts'
import type { CallRecord } from '../../src/core/call.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { CallPlugins } from '../../src/plugin/call-plugins.ts'
import type { Hooks } from '../../src/plugin/contract.ts'
import { PluginFaults } from '../../src/plugin/faults.ts'
import { PluginRecords } from '../../src/plugin/records.ts'

const entry: ModelEntry = {
  api: 'chat',
  pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }],
}
const target = { provider: { slug: 'maker', signer: 'maker' } as Provider, model: 'm1', entry }
const request: NeutralRequest = { model: 'maker/m1', messages: [], origin: { api: 'chat', body: {} } }
const reply: Reply = { id: 'r', created: 1, parts: [], finish: 'stop', usage: { input: 5, output: 10 } }

/** An answered attempt with this translation; the settled cost, and the rows. */
function answeredWith(translation: Partial<Translation>) {
  const settled: bigint[] = []
  const rows: CallRecord[] = []
  const admission: Admission = {
    settle: (nano) => void settled.push(nano),
    headers: {},
    promptTokens: 0,
    lengthAt: () => undefined,
    cover() {},
    grow() {},
    mostAt: () => ({ prompt: Infinity, output: Infinity }),
    maxNano: () => 0n,
    charge() {},
    keep: () => false,
    costAt: () => undefined,
    caches: undefined,
    choices: 1,
    overtimeAt: () => undefined,
    hiddenUsage: () => ({}),
    abandonedUsage: { input: 0 },
  }
  const start = {
    id: 'c',
    at: 1,
    monotonicMs: 0,
    organization: 'o',
    key: 'k',
    api: 'chat' as const,
    operation: 'chat' as const,
    requested: 'maker/m1',
    stream: false,
  }
  const ledger = { settle: async (record: CallRecord) => void rows.push(record) }
  const settlement = new Settlement(start, { ledger, admission })
  const handle = { succeeded() {}, failed() {}, ended() {} }
  const answered: AnsweredAttempt = {
    target,
    attempts: 1,
    dropped: [],
    untried: [],
    overtime: undefined,
    handle,
    translation: translation as Translation,
    prepared: {
      answerBounds: { bytes: 1_000_000, eventBytes: 1_000_000, values: 1_000_000 },
      admission,
      call: { id: 'c', clientApi: chat, outlive() {} },
      request,
      turn: {},
    } as unknown as AnsweredAttempt['prepared'],
    settlement,
    served: undefined,
    servedBy: () => undefined,
    begunMs: 0,
    giveUp: (received, thrown) => giveUp(received, thrown, { settlement, handle, others: () => undefined }),
    remember() {},
  }
  return { answered, settled, rows }
}

test('an answer that has come is paid, even when it cannot be written for the client or stored', async () => {
  const broken = () => {
    throw new TypeError('no such part')
  }
  for (const translation of [{ whole: broken }, { whole: () => ({}), responseToStore: broken }]) {
    const { answered, settled, rows } = answeredWith(translation)
    await expect(wholeReply({ kind: 'whole', body: {}, reply }, answered)).rejects.toThrow('no such part')
    expect(settled).toEqual([25_000n])
    expect(rows).toMatchObject([{ outcome: 'partial', status: 500, cost: { nanoUsd: 25_000 } }])
  }
})

test('an answer that a plugin looks at and that cannot be read ends the call, is paid, and is no fault of the plugin', async () => {
  const facts = {
    id: 'c',
    organization: 'o',
    key: 'k',
    api: 'chat',
    operation: 'chat' as const,
    requested: 'm',
    stream: false,
    names: { key: 'k', organization: 'o' },
    labels: {},
  }
  const plugins = (hooks: Hooks) => {
    const plugin = {
      name: 'p',
      hooks,
      onError: 'open' as const,
      timeoutMs: 1_000,
      enabled: true,
      organizations: 'all' as const,
    }
    const call = { ...facts, headers: {}, body: () => ({}), signal: new AbortController().signal }
    return new CallPlugins([plugin], call, { faults, records: new PluginRecords(faults) })
  }
  const faults = new PluginFaults({ warn() {} })
  const unreadable = () => {
    throw new RouterError('provider_unreadable', 'no such part')
  }
  const answer = { kind: 'whole' as const, body: {}, reply, whole: unreadable }
  const { answered, settled } = answeredWith({ whole: () => ({}), responseToStore: () => undefined })
  const looking = {
    ...answered,
    prepared: { ...answered.prepared, plugins: plugins({ reply: (seen) => ({ ...seen }) }) },
  }
  await expect(wholeReply(answer, looking)).rejects.toMatchObject({ code: 'provider_unreadable' })
  expect(settled).toEqual([25_000n])
  expect(faults.counts()).toEqual([])
  const idle = answeredWith({ whole: () => ({ own: true }), responseToStore: () => undefined }).answered
  const passing = { ...idle, prepared: { ...idle.prepared, plugins: plugins({ reply: () => undefined }) } }
  expect(await wholeReply(answer, passing)).toBe('{"own":true}')
})

test('a stream whose reader has left is settled with the part so far: its row is written, nothing stays reserved', async () => {
  const stream: StreamTranslation = {
    translate({ events }, fold) {
      for (const event of events) fold.take(event)
      return 'word'
    },
    close: () => '',
    end: () => '',
    fail: () => '',
  }
  const { answered, settled, rows } = answeredWith({ stream: () => stream })
  let closed = false
  async function* words() {
    try {
      for (;;) yield [{ payload: {}, events: [{ text: 'word' }] }]
    } finally {
      closed = true
    }
  }
  let read = 0
  // A client that disconnects in the middle ends the stream here, and not in the wait for the provider.
  for await (const _ of await streamedReply({ kind: 'stream', batches: words() }, answered)) if (++read === 3) break
  expect(closed).toBe(true)
  expect(settled).toEqual([6_000n])
  expect(rows).toMatchObject([
    { outcome: 'partial', status: 499, error: 'client_gone', usage: { output: 3 }, cost: { estimated: true } },
  ])
})
