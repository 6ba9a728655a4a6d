import { afterAll, expect, test } from 'vitest'
import { endOf, requireKey, valueText } from '../../src/plugin/kit.ts'
import { pluginValues } from '../../src/store/plugin-values.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { sqliteDatabase } from '../../src/store/sqlite/driver.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema/migrations.ts'

const connection = connect(':memory:')
migrate(connection, migrations)
afterAll(() => connection.close())
const db = sqliteDatabase(connection)
const soon = Date.now() + 60_000

test('a value belongs to one plugin, until it expires, is set anew or deleted', async () => {
  const values = pluginValues(db)
  await values.set('one', 'k', '1', soon)
  expect([await values.get('one', 'k'), await values.get('two', 'k'), await values.get('one', 'k', soon)]).toEqual([
    '1',
    undefined,
    undefined,
  ])
  await values.set('one', 'k', '2', soon)
  expect(await values.get('one', 'k')).toBe('2')
  expect([await values.add('one', 'k', '3', soon), await values.get('one', 'k')]).toEqual([false, '2'])
  await values.delete('one', 'k')
  expect([await values.add('one', 'k', '3', soon), await values.get('one', 'k')]).toEqual([true, '3'])
  await values.set('one', 'k', '4', Date.now() - 1)
  expect([await values.add('one', 'k', '5', soon), await values.get('one', 'k')]).toEqual([true, '5'])
  await values.delete('one', 'k')
})

test('what has expired is purged, and makes room', async () => {
  const values = pluginValues(db, 3)
  for (const key of ['a', 'b']) await values.set('full', key, '1', Date.now() - 1)
  await values.set('full', 'c', '1', soon)
  await values.set('full', 'd', '1', soon)
  expect(await values.purge(10)).toBe(0)
  await values.set('full', 'e', '1', soon)
  await expect(values.set('full', 'f', '1', soon)).rejects.toThrow(
    'The plugin full stores 3 values, which is the limit',
  )
  await expect(values.add('full', 'f', '1', soon)).rejects.toThrow('The plugin full stores 3 values')
  await values.set('full', 'e', '2', soon)
  await values.set('other', 'a', '1', Date.now() - 1)
  expect([await values.get('full', 'e'), await values.purge(10), await values.purge(10)]).toEqual(['2', 1, 0])
})

test('keys, values and times have bounds', () => {
  expect([valueText({ a: 1 }), requireKey('a'.repeat(512))]).toEqual(['{"a":1}', 'a'.repeat(512)])
  expect(() => valueText('é'.repeat(32 * 1024))).toThrow('65536 bytes')
  expect(() => valueText(undefined as never)).toThrow('must be JSON')
  for (const key of ['', 'a'.repeat(513), 1 as never]) expect(() => requireKey(key)).toThrow('1 to 512 characters')
  expect(() => endOf(0)).toThrow('above 0')
  expect(endOf(1e15) - Date.now()).toBeLessThanOrEqual(90 * 86_400_000)
})
