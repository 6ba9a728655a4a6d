import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { type ChannelToNew, HandedBooks } from '../../src/workers/threads/handed-books.ts'
import type { FromOld } from '../../src/workers/threads/handover-messages.ts'
import { accountsOfCall, refusedPayers, sentRows } from '../../src/workers/threads/sent-rows.ts'
import { plainRecord } from '../store/plain-record.ts'

const september = Date.UTC(2026, 8, 30, 23)
const october = Date.UTC(2026, 9, 1, 1)
const rows = [
  { at: september },
  { at: september, group: 'g' },
  { at: october },
  { at: september },
  { at: september, key: 'key-2' },
].map((facts, index) => {
  const cost = { nanoUsd: 10 ** index, parts: {}, priceVersion: '' }
  return { record: plainRecord({ ...facts, cost }), response: undefined }
})

test('what rows cost is added up by the accounts that pay for them', () => {
  expect(sentRows(rows).payments).toEqual([
    { accounts: ['key key-1 2026-09', 'organization org-1'], cost: 1_001n },
    { accounts: ['key key-1 2026-09', 'organization org-1', 'group g 2026-09'], cost: 10n },
    { accounts: ['key key-1 2026-10', 'organization org-1'], cost: 100n },
    { accounts: ['key key-2 2026-09', 'organization org-1'], cost: 10_000n },
  ])
})

test('a process that has taken over gets each row with its accounts and its response', async () => {
  const sent: FromOld[] = []
  const handed = new HandedBooks({ send: (said: FromOld) => void sent.push(said) } as unknown as ChannelToNew, [])
  const response = { id: 'resp_1', input: '[]' }
  const message = sentRows(rows.map((row, index) => ({ ...row, ...(index === 1 && { response }) })) as typeof rows)
  const settled = handed.settleRows(7, structuredClone(message))
  expect(sent).toMatchObject(
    rows.map(({ record }, index) => ({ kind: 'row', purse: 7, record, cost: BigInt(10 ** index) })),
  )
  expect(sent[1]).toMatchObject({ accounts: message.payments[1]?.accounts, response })
  for (const said of sent) {
    const { id } = said as Extract<FromOld, { kind: 'row' }>
    const error = { code: 'internal', message: 'no', details: {} } as const
    handed.hear({ kind: 'settled', id, ...(id === sent.length && { error }) })
  }
  expect(await settled).toMatchObject([{ index: 4, error: { code: 'internal' } }])
})

test('who pays for a row that cannot be written is known, and nobody else is taken for it', () => {
  const message = sentRows(rows)
  const error = new RouterError('internal', 'no')
  const payers = refusedPayers(
    message,
    [1, 3].map((index) => ({ index, error })),
  )
  const { payments } = message
  expect(payments.map((payment) => payers.includes(accountsOfCall(payment)))).toEqual([true, true, false, false])
})
