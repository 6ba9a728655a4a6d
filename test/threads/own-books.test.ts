import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { Handover } from '../../src/workers/handover.ts'
import { sentRows } from '../../src/workers/threads/sent-rows.ts'
import { plainRecord } from '../store/plain-record.ts'

test('of rows that are settled together only what can never be written stays unwritten in the bank', async () => {
  const said: string[] = []
  const bank = {
    spend(purse: number, [key]: readonly string[], cost: bigint) {
      said.push(`${purse} spends ${cost} of ${key}`)
      return () => void said.push(`${key} is written`)
    },
  }
  const error = new RouterError('internal', 'It cannot be written.')
  const refused = [{ index: 1, error }]
  const ledger = { settleSent: async () => refused }
  const handover = new Handover({ openBank: () => bank, books: { ledger, writeFailure() {} } } as never)
  const rows = ['a', 'b', 'a'].map((key) => ({ record: plainRecord({ key }), response: undefined }))
  expect(await handover.money().settleRows(7, sentRows(rows))).toEqual(refused)
  expect(said).toEqual(['7 spends 2000 of key a 2026-11', '7 spends 1000 of key b 2026-11', 'key a 2026-11 is written'])
})
