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

async function memory() {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  return store
}

describe('a stored response', () => {
  test('comes back as it was written', async () => {
    const { responses } = await memory()
    const storedResponse = response({
      previous: 'resp_0',
      native: true,
      input: '[{"role":"user","content":"ä\\u0000🙂"}]',
    })
    await responses.write(storedResponse)
    expect(await responses.find('acme', 'resp_1')).toEqual(storedResponse)
  })

  test('belongs to one organization, also when another one has the same id', async () => {
    const { responses } = await memory()
    await responses.write(response())
    expect(await responses.find('other', 'resp_1')).toBeUndefined()
    expect(await responses.delete('other', 'resp_1')).toBe(false)
    await responses.write(response({ organization: 'other', response: '{}' }))
    expect((await responses.find('acme', 'resp_1'))?.response).toBe('{"id":"resp_1"}')
    expect((await responses.find('other', 'resp_1'))?.response).toBe('{}')
  })

  test('is unknown once deleted, and can be deleted once', async () => {
    const { responses } = await memory()
    await responses.write(response())
    expect(await responses.delete('acme', 'resp_1')).toBe(true)
    expect(await responses.find('acme', 'resp_1')).toBeUndefined()
    expect(await responses.delete('acme', 'resp_1')).toBe(false)
  })

  test('is unknown after its expiry, purged or not', async () => {
    const { responses } = await memory()
    const storedResponse = response()
    await responses.write(storedResponse)
    expect(await responses.find('acme', 'resp_1', storedResponse.expiresAt - 1)).toBeDefined()
    expect(await responses.find('acme', 'resp_1', storedResponse.expiresAt)).toBeUndefined()
    expect(await responses.delete('acme', 'resp_1', storedResponse.expiresAt)).toBe(false)
  })

  test('leaves no trace in the file when it is deleted', async () => {
    const path = temporaryFile('router.sqlite')
    const store = await openStore(`sqlite:${path}`)
    await store.responses.write(response({ response: '{"text":"the secret of the sphinx"}' }))
    await store.responses.delete('acme', 'resp_1')
    await store.close()
    expect(readFileSync(path).includes('the secret of the sphinx')).toBe(false)
  })
})

describe('retention', () => {
  test('is 30 days unless set, and none for an unknown organization', async () => {
    const { organizations } = await memory()
    const { id } = await organizations.create('acme')
    expect(await organizations.retention(id)).toEqual({ stores: true, days: 30 })
    expect(await organizations.retention('nobody')).toEqual({ stores: false, days: 0 })
    expect(await organizations.setRetention(id, { stores: false })).toEqual({ stores: false, days: 30 })
    expect(await organizations.setRetention(id, { days: 2 })).toEqual({ stores: false, days: 2 })
    expect(await organizations.retention(id)).toEqual({ stores: false, days: 2 })
  })

  test('applies to stored responses, of that organization only', async () => {
    const { organizations, responses } = await memory()
    const { id } = await organizations.create('acme')
    const storedResponse = response({ organization: id, expiresAt: Date.now() + 30 * day })
    await responses.write(storedResponse)
    await responses.write({ ...storedResponse, organization: 'other' })
    await organizations.setRetention(id, { days: 7 })
    expect((await responses.find(id, 'resp_1'))?.expiresAt).toBe(storedResponse.createdAt + 7 * day)
    expect((await responses.find('other', 'resp_1'))?.expiresAt).toBe(storedResponse.expiresAt)
  })

  test('purges only expired responses, in batches, periodically', async () => {
    const { responses } = await memory()
    const past = Date.now() - 1
    for (let index = 0; index < 250; index++) await responses.write(response({ id: `old_${index}`, expiresAt: past }))
    await responses.write(response({ id: 'young' }))
    const batches: number[] = []
    const purge = vi.fn(async (most: number) => {
      const deleted = await responses.purge(most)
      batches.push(deleted)
      return deleted
    })
    const purging = startPurge({ purge }, () => {}, 10)
    onTestFinished(() => purging.stop())
    await eventually(() => expect(batches.slice(0, 4)).toEqual([100, 100, 50, 0]))
    expect(await responses.find('acme', 'young')).toBeDefined()
  })

  test('continues after a failure, which is reported', async () => {
    const broken = new Error('the disk is gone')
    const onError = vi.fn()
    const purge = vi.fn(async () => 0).mockRejectedValueOnce(broken)
    const purging = startPurge({ purge }, onError, 5)
    onTestFinished(() => purging.stop())
    await eventually(() => expect(purge.mock.calls.length).toBeGreaterThan(1))
    expect(onError.mock.calls).toEqual([[broken]])
  })
})

describe('a response that is settled with its call', () => {
  test('is on disk when the call is', async () => {
    const store = await openStore(`sqlite:${temporaryFile('router.sqlite')}`)
    const ledger = openLedger(store.ledger.openWriter(), { onError: () => {} })
    const record = plainRecord()
    const storedResponse = response()
    await ledger.settle(record, storedResponse)
    expect(await store.responses.find('acme', 'resp_1')).toEqual(storedResponse)
    expect(await store.ledger.find(record.id)).toBeDefined()
    await ledger.close()
    await store.close()
  })

  test.each(['a', 'ü€'])(
    'is the same text when its input is long and comes from another thread: %s',
    async (letter) => {
      const path = temporaryFile('router.sqlite')
      const store = await openStore(`sqlite:${path}`)
      const ledger = openLedger(store.ledger.openWriter(), { onError: () => {} })
      const storedResponse = { ...response(), input: JSON.stringify([letter.repeat(100_000)]) }
      const sent = sentResponse(storedResponse)
      expect((sent.input as Uint8Array).buffer).toBeInstanceOf(SharedArrayBuffer)
      await ledger.settle(plainRecord(), deserialize(serialize(sent)))
      await ledger.settle(plainRecord(), { ...sent, id: 'resp_2' })
      expect(await store.responses.find('acme', 'resp_1')).toEqual(storedResponse)
      expect(await store.responses.find('acme', 'resp_2')).toEqual({ ...storedResponse, id: 'resp_2' })
      await ledger.close()
      await store.close()
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
    const store = await openStore(`sqlite:${temporaryFile('router.sqlite')}`)
    const onError = vi.fn()
    const ledger = openLedger(store.ledger.openWriter(), { onError })
    const record = plainRecord()
    await ledger.settle(record, { ...response(), model: null as never })
    expect(await store.ledger.find(record.id)).toBeDefined()
    expect(await store.responses.find('acme', 'resp_1')).toBeUndefined()
    await ledger.close()
    await store.close()
  })
})

describe('the responses of an organization that stores too many', () => {
  const few = { responses: 2, responseBytes: 1_000_000 }

  test('are deleted, the oldest first, as long as there are more than its limit', async () => {
    const { responses } = await memory()
    for (let at = 0; at < 5; at++) await responses.write(response({ id: `resp_${at}`, createdAt: at }))
    for (let at = 0; at < 2; at++) await responses.write(response({ organization: 'other', id: `resp_${at}` }))
    let rounds = 0
    while ((await responses.trim(few, 1)) === 'acme') rounds++
    expect(rounds).toBe(3)
    const left: number[][] = []
    for (const organization of ['acme', 'other']) {
      const found: number[] = []
      for (const at of [0, 1, 2, 3, 4]) if (await responses.find(organization, `resp_${at}`, 0)) found.push(at)
      left.push(found)
    }
    expect(left).toEqual([
      [3, 4],
      [0, 1],
    ])
  })

  test('count by their bytes as well, and those that are replaced, deleted or expired do not count', async () => {
    const { responses } = await memory()
    const long = { responses: 100, responseBytes: 1_000 }
    const input = `["${'ä'.repeat(300)}"]`
    await responses.write(response({ input }))
    await responses.write(response({ input }))
    expect(await responses.trim(long, 10)).toBeUndefined()
    await responses.write(response({ id: 'resp_2', input }))
    expect(await responses.delete('acme', 'resp_2')).toBe(true)
    await responses.write(response({ id: 'resp_3', input, expiresAt: 1 }))
    await responses.purge(10)
    expect(await responses.trim(long, 10)).toBeUndefined()
    await responses.write(response({ id: 'resp_4', input }))
    expect(await responses.trim(long, 1)).toBe('acme')
    expect(await responses.trim(long, 1)).toBeUndefined()
    expect(await responses.find('acme', 'resp_4')).toBeDefined()
  })
})
