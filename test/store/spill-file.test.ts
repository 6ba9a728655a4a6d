import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { newSecret } from '../../src/access/secrets.ts'
import type { CallRecord } from '../../src/core/call.ts'
import { openStore } from '../../src/store/open.ts'
import { clearSpilled, openSpillFile, spilledRecords } from '../../src/store/sqlite/ledger/spill-file.ts'
import { plainRecord } from './plain-record.ts'
import { temporaryFile } from './temporary.ts'

function open() {
  const path = temporaryFile('router.sqlite')
  const spill = openSpillFile(path)
  onTestFinished(() => spill.close())
  return { path, file: `${path}-spill`, spill }
}

test('spilled records are found by another process, in order, until they are cleared', async () => {
  const { path, spill } = open()
  expect(spilledRecords(path)).toEqual([])
  const records = [plainRecord({ user: 'ü' }), plainRecord(), plainRecord()] as const
  await Promise.all([spill.append([records[0]]), spill.append([records[1], records[2]])])
  expect(spilledRecords(path)).toEqual(records)
  await spill.clear()
  expect(spilledRecords(path)).toEqual([])
  await spill.append([records[2]])
  expect(spilledRecords(path)).toEqual([records[2]])
})

test('cleared records are overwritten; a thousand records fit into the reserved space', async () => {
  const { path, file, spill } = open()
  await spill.clear()
  const { size } = statSync(file)
  await spill.append(Array.from({ length: 1_000 }, () => plainRecord({ user: 'somebody' })))
  expect(statSync(file).size).toBe(size)
  expect(spilledRecords(path)).toHaveLength(1_000)
  await spill.clear()
  expect(readFileSync(file).every((byte) => byte === 0)).toBe(true)
})

test('a line that was cut off is skipped; anything that looks like a key is hidden', async () => {
  const { path, file, spill } = open()
  const secret = newSecret()
  const [one, two] = [plainRecord({ user: secret }), plainRecord()]
  await spill.append([one, two])
  truncateSync(file, JSON.stringify(one).length + 40)
  expect(spilledRecords(path)).toEqual([{ ...one, user: '[secret]' }])
})

test('a start writes them into the ledger, each once', async () => {
  const { path, spill } = open()
  const store = await openStore(`sqlite:${path}`)
  onTestFinished(() => store.close())
  const records = [plainRecord(), plainRecord()] as const
  const writer = store.ledger.openWriter()
  await writer.write([records[0]])
  await writer.close()
  await spill.append(records)
  expect(await store.ledger.recover()).toBe(2)
  expect(await store.ledger.recover()).toBe(0)
  expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toEqual(records)
  expect(await store.spend.ofKey('key-1', records[0].at)).toBe(2_000n)
})

test('records that can never be written are reported, and do not prevent the others', async () => {
  const { path, spill } = open()
  const store = await openStore(`sqlite:${path}`)
  onTestFinished(() => store.close())
  const [good, bad] = [plainRecord(), { ...plainRecord(), organization: null }]
  await spill.append([bad as unknown as CallRecord, good])
  const lost: [unknown, string][] = []
  expect(await store.ledger.recover((record, reason) => lost.push([record, reason]))).toBe(1)
  expect(lost).toEqual([[bad, expect.stringContaining('ledger.organization')]])
  expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toEqual([good])
})

test('without a folder only spilling fails', async () => {
  const path = temporaryFile('gone/router.sqlite')
  const spill = openSpillFile(path)
  await expect(spill.append([plainRecord()])).rejects.toThrow('ENOENT')
  await spill.close()
  expect(spilledRecords(path)).toEqual([])
  const odd = temporaryFile('router.sqlite')
  writeFileSync(`${odd}-spill`, 'something else')
  expect(spilledRecords(odd)).toEqual([])
  clearSpilled(odd)
  expect(readFileSync(`${odd}-spill`).every((byte) => byte === 0)).toBe(true)
})
