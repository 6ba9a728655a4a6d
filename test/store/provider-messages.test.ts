import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { plainRecord } from './plain-record.ts'

const at = Date.UTC(2026, 10, 21, 12)
const failed = { outcome: 'failed', status: 502, error: 'provider_failed', providerMessage: 'no GPU is left' } as const

/** A store with an organization and these failed calls of it. */
async function storeWith(...times: number[]) {
  const store = await openStore('sqlite::memory:')
  const writer = store.ledger.openWriter()
  onTestFinished(async () => {
    await writer.close()
    await store.close()
  })
  const { id: organization } = await store.organizations.create('acme')
  const records = times.map((time) => plainRecord({ ...failed, organization, at: time }))
  await writer.write(records)
  const messages = async () =>
    await Promise.all(records.map(async ({ id }) => (await store.calls.find(id, organization))?.call.providerMessage))
  return { store, writer, organization, records, messages }
}

test('a message is stored with its row, and belongs to it alone', async () => {
  const { store, writer, organization, messages } = await storeWith(at)
  expect(await messages()).toEqual(['no GPU is left'])
  const { providerMessage: _, ...other } = plainRecord({ ...failed, organization })
  await writer.write([other])
  expect((await store.calls.find(other.id, organization))?.call).not.toHaveProperty('providerMessage')
})

test('messages as old as a time are deleted, at most so many at once, the oldest first', async () => {
  const { store, messages } = await storeWith(at, at + 1, at + 2, at + 3)
  expect(await store.providerMessages.purge(2, at + 2)).toBe(2)
  expect(await messages()).toEqual([undefined, undefined, 'no GPU is left', 'no GPU is left'])
  expect(await store.providerMessages.purge(2, at + 2)).toBe(1)
  expect((await messages())[3]).toBe('no GPU is left')
})

test('messages of an organization are no longer shown, and are deleted, once its data must not be retained', async () => {
  const { store, organization, messages } = await storeWith(at, at, at)
  await store.organizations.setDataRules(organization, { data_retention: false })
  expect(await messages()).toEqual([undefined, undefined, undefined])
  expect(await store.providerMessages.purge(2, 0)).toBe(2)
  expect(await store.providerMessages.purge(2, 0)).toBe(1)
  await store.organizations.setDataRules(organization, {})
  expect(await messages()).toEqual([undefined, undefined, undefined])
})
