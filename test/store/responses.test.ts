import { readFileSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startPurge } from '../../src/app/accounting.ts'
import { openLedger } from '../../src/money/ledger.ts'
import { openStore } from '../../src/store/open.ts'
import { type StoredResponse, sentResponse } from '../../src/store/responses.ts'
import { eventually } from '../helpers/time.ts'
import { plainRecord } from './plain-record.ts'
import { temporaryFile } from './temporary.ts'

const day = 24 * 60 * 60 * 1_000

function response(changes: Partial<StoredResponse> = {}): StoredResponse {
  const createdAt = Date.now()
  return {
    id: 'resp_1',
    organization: 'acme',
    createdAt,
    expiresAt: createdAt + day,
    previous: null,
    model: 'p/m',
    provider: 'p',
    native: false,
    input: '[]',
    response: '{"id":"resp_1"}',
    ...changes,
  }
}

function memory() {
  const store = openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  return store
}

describe('a stored response', () => {
  test('comes back as it was written', () => {
    const { responses } = memory()
    const storedResponse = response({
      previous: 'resp_0',
      native: true,
      input: '[{"role":"user","content":"ä\\u0000🙂"}]',
    })
    responses.write(storedResponse)
    expect(responses.find('acme', 'resp_1')).toEqual(storedResponse)
  })

  test('belongs to one organization, also when another one has the same id', () => {
    const { responses } = memory()
    responses.write(response())
    expect(responses.find('other', 'resp_1')).toBeUndefined()
    expect(responses.delete('other', 'resp_1')).toBe(false)
    responses.write(response({ organization: 'other', response: '{}' }))
    expect(responses.find('acme', 'resp_1')?.response).toBe('{"id":"resp_1"}')
    expect(responses.find('other', 'resp_1')?.response).toBe('{}')
  })

  test('is unknown once deleted, and can be deleted once', () => {
    const { responses } = memory()
    responses.write(response())
    expect(responses.delete('acme', 'resp_1')).toBe(true)
    expect(responses.find('acme', 'resp_1')).toBeUndefined()
    expect(responses.delete('acme', 'resp_1')).toBe(false)
  })

  test('is unknown after its expiry, purged or not', () => {
    const { responses } = memory()
    const storedResponse = response()
    responses.write(storedResponse)
    expect(responses.find('acme', 'resp_1', storedResponse.expiresAt - 1)).toBeDefined()
    expect(responses.find('acme', 'resp_1', storedResponse.expiresAt)).toBeUndefined()
    expect(responses.delete('acme', 'resp_1', storedResponse.expiresAt)).toBe(false)
  })

  test('leaves no trace in the file when it is deleted', () => {
    const path = temporaryFile('router.sqlite')
    const store = openStore(`sqlite:${path}`)
    store.responses.write(response({ response: '{"text":"the secret of the sphinx"}' }))
    store.responses.delete('acme', 'resp_1')
    store.close()
    expect(readFileSync(path).includes('the secret of the sphinx')).toBe(false)
  })
})

describe('retention', () => {
  test('is 30 days unless set, and none for an unknown organization', () => {
    const { organizations } = memory()
    const { id } = organizations.create('acme')
    expect(organizations.retention(id)).toEqual({ stores: true, days: 30 })
    expect(organizations.retention('nobody')).toEqual({ stores: false, days: 0 })
    expect(organizations.setRetention(id, { stores: false })).toEqual({ stores: false, days: 30 })
    expect(organizations.setRetention(id, { days: 2 })).toEqual({ stores: false, days: 2 })
    expect(organizations.retention(id)).toEqual({ stores: false, days: 2 })
  })

  test('applies to stored responses, of that organization only', () => {
    const { organizations, responses } = memory()
    const { id } = organizations.create('acme')
    const storedResponse = response({ organization: id, expiresAt: Date.now() + 30 * day })
    responses.write(storedResponse)
    responses.write({ ...storedResponse, organization: 'other' })
    organizations.setRetention(id, { days: 7 })
    expect(responses.find(id, 'resp_1')?.expiresAt).toBe(storedResponse.createdAt + 7 * day)
    expect(responses.find('other', 'resp_1')?.expiresAt).toBe(storedResponse.expiresAt)
  })

  test('purges only expired responses, in batches, periodically', async () => {
    const { responses } = memory()
    const past = Date.now() - 1
    for (let index = 0; index < 250; index++) responses.write(response({ id: `old_${index}`, expiresAt: past }))
    responses.write(response({ id: 'young' }))
    const batches: number[] = []
    const purge = vi.fn((most: number) => {
      const deleted = responses.purge(most)
      batches.push(deleted)
      return deleted
    })
    const purging = startPurge({ purge }, () => {}, 10)
    onTestFinished(() => purging.stop())
    expect(batches).toEqual([100])
    await eventually(() => expect(batches.slice(0, 4)).toEqual([100, 100, 50, 0]))
    expect(responses.find('acme', 'young')).toBeDefined()
  })

  test('continues after a failure, which is reported', async () => {
    const broken = new Error('the disk is gone')
    const onError = vi.fn()
    const purge = vi
      .fn(() => 0)
      .mockImplementationOnce(() => {
        throw broken
      })
    const purging = startPurge({ purge }, onError, 5)
    onTestFinished(() => purging.stop())
    await eventually(() => expect(purge.mock.calls.length).toBeGreaterThan(1))
    expect(onError.mock.calls).toEqual([[broken]])
  })
})

describe('a response that is settled with its call', () => {
  test('is on disk when the call is', async () => {
    const store = openStore(`sqlite:${temporaryFile('router.sqlite')}`)
    const ledger = openLedger(store.ledger.openWriter(), { onError: () => {} })
    const record = plainRecord()
    const storedResponse = response()
    await ledger.settle(record, storedResponse)
    expect(store.responses.find('acme', 'resp_1')).toEqual(storedResponse)
    expect(store.ledger.find(record.id)).toBeDefined()
    await ledger.close()
    store.close()
  })

  test.each(['a', 'ü€'])(
    'is the same text when its input is long and comes from another thread: %s',
    async (letter) => {
      const path = temporaryFile('router.sqlite')
      const store = openStore(`sqlite:${path}`)
      const ledger = openLedger(store.ledger.openWriter(), { onError: () => {} })
      const storedResponse = { ...response(), input: JSON.stringify([letter.repeat(100_000)]) }
      const sent = sentResponse(storedResponse)
      expect((sent.input as Uint8Array).buffer).toBeInstanceOf(SharedArrayBuffer)
      await ledger.settle(plainRecord(), deserialize(serialize(sent)))
      await ledger.settle(plainRecord(), { ...sent, id: 'resp_2' })
      expect(store.responses.find('acme', 'resp_1')).toEqual(storedResponse)
      expect(store.responses.find('acme', 'resp_2')).toEqual({ ...storedResponse, id: 'resp_2' })
      await ledger.close()
      store.close()
    },
  )

  test('is retried with its call when the commit failed: the client has its id', async () => {
    const write = vi.fn(async () => [] as { index: number; reason: string }[])
    write.mockRejectedValueOnce(new Error('the disk is full'))
    const ledger = openLedger({ write, ready: async () => {}, close: async () => {} }, { onError: () => {} })
    const record = plainRecord()
    const storedResponse = response()
    await ledger.settle(record, storedResponse)
    await eventually(() => expect(write).toHaveBeenCalledTimes(2))
    expect(write.mock.calls).toEqual([
      [[record], [storedResponse], []],
      [[record], [storedResponse], []],
    ])
    await ledger.close()
  })

  test('that can never be written does not prevent the row of its call', async () => {
    const store = openStore(`sqlite:${temporaryFile('router.sqlite')}`)
    const onError = vi.fn()
    const ledger = openLedger(store.ledger.openWriter(), { onError })
    const record = plainRecord()
    await ledger.settle(record, { ...response(), model: null as never })
    expect(store.ledger.find(record.id)).toBeDefined()
    expect(store.responses.find('acme', 'resp_1')).toBeUndefined()
    await ledger.close()
    store.close()
  })
})

describe('the responses of an organization that stores too many', () => {
  const few = { responses: 2, responseBytes: 1_000_000 }

  test('are deleted, the oldest first, as long as there are more than its limit', () => {
    const { responses } = memory()
    for (let at = 0; at < 5; at++) responses.write(response({ id: `resp_${at}`, createdAt: at }))
    for (let at = 0; at < 2; at++) responses.write(response({ organization: 'other', id: `resp_${at}` }))
    let rounds = 0
    while (responses.trim(few, 1) === 'acme') rounds++
    expect(rounds).toBe(3)
    const left = ['acme', 'other'].map((organization) =>
      [0, 1, 2, 3, 4].filter((at) => responses.find(organization, `resp_${at}`, 0)),
    )
    expect(left).toEqual([
      [3, 4],
      [0, 1],
    ])
  })

  test('count by their bytes as well, and those that are replaced, deleted or expired do not count', () => {
    const { responses } = memory()
    const long = { responses: 100, responseBytes: 1_000 }
    const input = `["${'ä'.repeat(300)}"]`
    responses.write(response({ input }))
    responses.write(response({ input }))
    expect(responses.trim(long, 10)).toBeUndefined()
    responses.write(response({ id: 'resp_2', input }))
    expect(responses.delete('acme', 'resp_2')).toBe(true)
    responses.write(response({ id: 'resp_3', input, expiresAt: 1 }))
    responses.purge(10)
    expect(responses.trim(long, 10)).toBeUndefined()
    responses.write(response({ id: 'resp_4', input }))
    expect(responses.trim(long, 1)).toBe('acme')
    expect(responses.trim(long, 1)).toBeUndefined()
    expect(responses.find('acme', 'resp_4')).toBeDefined()
  })
})
