import { afterAll, expect, test } from 'vitest'
import { endOf, requireKey, valueText } from '../../src/plugin/kit.ts'
import { pluginValues } from '../../src/store/plugin-values.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema/migrations.ts'

const db = connect(':memory:')
migrate(db, migrations)
afterAll(() => db.close())
const soon = Date.now() + 60_000

test('a value belongs to one plugin, until it expires, is set anew or deleted', () => {
  const values = pluginValues(db)
  values.set('one', 'k', '1', soon)
  expect([values.get('one', 'k'), values.get('two', 'k'), values.get('one', 'k', soon)]).toEqual([
    '1',
    undefined,
    undefined,
  ])
  values.set('one', 'k', '2', soon)
  expect(values.get('one', 'k')).toBe('2')
  expect([values.add('one', 'k', '3', soon), values.get('one', 'k')]).toEqual([false, '2'])
  values.delete('one', 'k')
  expect([values.add('one', 'k', '3', soon), values.get('one', 'k')]).toEqual([true, '3'])
  values.set('one', 'k', '4', Date.now() - 1)
  expect([values.add('one', 'k', '5', soon), values.get('one', 'k')]).toEqual([true, '5'])
  values.delete('one', 'k')
})

test('what has expired is purged, and makes room', () => {
  const values = pluginValues(db, 3)
  for (const key of ['a', 'b']) values.set('full', key, '1', Date.now() - 1)
  values.set('full', 'c', '1', soon)
  values.set('full', 'd', '1', soon)
  expect(values.purge(10)).toBe(0)
  values.set('full', 'e', '1', soon)
  expect(() => values.set('full', 'f', '1', soon)).toThrow('The plugin full stores 3 values, which is the limit')
  expect(() => values.add('full', 'f', '1', soon)).toThrow('The plugin full stores 3 values')
  values.set('full', 'e', '2', soon)
  values.set('other', 'a', '1', Date.now() - 1)
  expect([values.get('full', 'e'), values.purge(10), values.purge(10)]).toEqual(['2', 1, 0])
})

test('keys, values and times have bounds', () => {
  expect([valueText({ a: 1 }), requireKey('a'.repeat(512))]).toEqual(['{"a":1}', 'a'.repeat(512)])
  expect(() => valueText('é'.repeat(32 * 1024))).toThrow('65536 bytes')
  expect(() => valueText(undefined as never)).toThrow('must be JSON')
  for (const key of ['', 'a'.repeat(513), 1 as never]) expect(() => requireKey(key)).toThrow('1 to 512 characters')
  expect(() => endOf(0)).toThrow('above 0')
  expect(endOf(1e15) - Date.now()).toBeLessThanOrEqual(90 * 86_400_000)
})
