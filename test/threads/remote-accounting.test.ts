import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Accounts } from '../../src/accounts/accounts.ts'
import type { Payment } from '../../src/accounts/table.ts'
import type { JsonRequest } from '../../src/http/types.ts'
import type { KeptFinding } from '../../src/routing/findings.ts'
import type { MainMessage, WorkerMessage } from '../../src/workers/threads/messages.ts'
import { sharedCounter, ThreadPort } from '../../src/workers/threads/port.ts'
import { RemoteAccounting } from '../../src/workers/threads/remote-accounting.ts'
import { plainRecord } from '../store/plain-record.ts'

/** The accounting of a worker, and the other end of the connection, which keeps what it receives; and what is known to be on disk. */
function connected() {
  const { port1, port2 } = new MessageChannel()
  const [sentByMain, sentByWorker] = [sharedCounter(), sharedCounter()]
  const counters = { ownSent: sentByWorker, otherSent: sentByMain }
  const written: { payments: readonly Payment[]; messages: number | undefined }[] = []
  const accounts: Pick<Accounts, 'written'> = {
    written: (payments, messages) => void written.push({ payments, messages }),
  }
  const accounting = new RemoteAccounting(port1, { counters, accounts, onMessage() {} })
  const received: WorkerMessage[] = []
  const main = new ThreadPort<MainMessage, WorkerMessage>(port2, {
    counters: { ownSent: sentByMain, otherSent: sentByWorker },
    onItem: (one) => void received.push(one),
  })
  onTestFinished(() => {
    accounting.port.close()
    main.close()
  })
  return { accounting, main, received, written }
}

test('of rows that are answered together those that can never be written are told apart, and stay unwritten', async () => {
  const { accounting, main, received, written } = connected()
  const settling = ['a', 'b', 'a'].map((key) => accounting.ledger.settle(plainRecord({ key }), undefined))
  const all = Promise.allSettled(settling)
  const whole = accounting.allSettled()
  accounting.port.flush()
  main.catchUp()
  const [message] = received as Extract<WorkerMessage, { kind: 'rows' }>[]
  const error = { code: 'internal', message: 'It cannot be written.', details: {} } as const
  main.sendNow({ kind: 'settled', ids: [message?.id ?? 0], refused: [{ index: 1, error }] })
  accounting.port.catchUp()
  expect((await all).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  const payments = [{ accounts: ['org-1\nkey a 2026-11', 'org-1\norganization'], cost: 2_000n }]
  expect(written).toEqual([{ payments, messages: 1 }])
  await expect(settling[1]).rejects.toMatchObject({ code: 'internal', message: 'It cannot be written.' })
  await whole
})

test('a crowd of rows is several messages, each answered by itself', async () => {
  const { accounting, main, received } = connected()
  const record = plainRecord({})
  let open = 0
  for (let row = 0; row < 2_500; row++) {
    open++
    void accounting.ledger.settle(record, undefined)?.then(() => void open--)
  }
  accounting.port.flush()
  main.catchUp()
  const messages = received as Extract<WorkerMessage, { kind: 'rows' }>[]
  expect(messages.map(({ rows }) => [rows.count, JSON.parse(rows.text).length])).toEqual([
    [1_000, 1_000],
    [1_000, 1_000],
    [500, 500],
  ])
  main.sendNow({ kind: 'settled', ids: messages.slice(1).map(({ id }) => id) })
  accounting.port.catchUp()
  await new Promise(setImmediate)
  expect(open).toBe(1_000)
})

describe('many messages', () => {
  test('contain each finding and each row once', () => {
    const { accounting, main, received } = connected()
    const finding = (key: string): KeptFinding => ({ kind: 'kept', at: 1, key, target: 'p/m', until: 2 })
    for (let round = 0; round < 5; round++) {
      accounting.found(finding(`${round}`))
      accounting.found(finding(`${round}, too`))
      void accounting.ledger.settle(plainRecord({ id: `${round}` }), undefined)
      accounting.port.flush()
      accounting.port.flush()
      main.catchUp()
      const [rows, found, ...others] = received.splice(0) as [WorkerMessage, WorkerMessage, ...WorkerMessage[]]
      expect(rows).toMatchObject({ kind: 'rows', rows: { count: 1 } })
      expect(found).toEqual({ kind: 'found', findings: [finding(`${round}`), finding(`${round}, too`)] })
      expect(others).toEqual([])
    }
  })

  test('of rows are a few milliseconds apart while each has several, and at once from the first that has one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { accounting, main, received } = connected()
    const settle = () => void accounting.ledger.settle(plainRecord({}), undefined)
    /** The rows of each message that has been posted since. */
    const posted = async () => {
      await new Promise(setImmediate)
      main.catchUp()
      return received.splice(0).map((one) => (one.kind === 'rows' ? one.rows.count : one.kind))
    }
    vi.advanceTimersByTime(1_000)
    for (let round = 0; round < 3; round++) {
      settle()
      expect(await posted()).toEqual([1])
      settle()
      settle()
      expect(await posted()).toEqual([2])
      settle()
      vi.advanceTimersByTime(3)
      settle()
      expect(await posted()).toEqual([])
      vi.advanceTimersByTime(1)
      expect(await posted()).toEqual([2])
      settle()
      vi.advanceTimersByTime(3)
      expect(await posted()).toEqual([])
      vi.advanceTimersByTime(1)
      expect(await posted()).toEqual([1])
      // That one was alone: the next ones wait for nobody.
      settle()
      expect(await posted()).toEqual([1])
    }
  })
})

test('a request that was answered is no longer referenced', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const { accounting, main, received } = connected()
  const route = accounting.remote({ path: '/v1/manage/keys', answer: async () => undefined } as never)
  const ask = async (answered: boolean) => {
    const request = { headers: {}, params: {}, query: {}, readBody: async () => undefined } as unknown as JsonRequest
    const asking = Promise.resolve(route.answer(request)).catch(() => {})
    main.catchUp()
    const [question] = received.splice(0) as Extract<WorkerMessage, { kind: 'ask' }>[]
    main.sendNow({ kind: 'answer', id: question?.id ?? 0, ...(answered && { answer: { text: '{}' } }) })
    accounting.port.catchUp()
    if (answered) await asking
    return new WeakRef(request)
  }
  const references = [await ask(true), await ask(true)]
  await new Promise(setImmediate)
  collectGarbage()
  expect(references.map((one) => one.deref())).toEqual([undefined, undefined])
})
