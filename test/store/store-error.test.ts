import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { damageError, isDamage, isRowFault, StoreError, storeError, unavailable } from '../../src/store/store-error.ts'

const engineError = (code: string) => new Database.SqliteError('message of the engine', code)
const wrapped = (cause: unknown) => new Error('A call failed.', { cause })

test.each<[string, boolean, unknown]>([
  ['an error of the engine about damage', true, engineError('SQLITE_CORRUPT')],
  ['a more exact one', true, engineError('SQLITE_CORRUPT_INDEX')],
  ['a file that is no database', true, engineError('SQLITE_NOTADB')],
  ['the same with its path and its remedy', true, storeError(engineError('SQLITE_CORRUPT'), '/data/router.sqlite')],
  ['damage that the engine cannot see', true, damageError('/data/router.sqlite', 'the sums are wrong')],
  ['an error that was caused by damage', true, wrapped(wrapped(engineError('SQLITE_CORRUPT')))],
  ['a full disk', false, engineError('SQLITE_FULL')],
  ['an error that was caused by a full disk', false, wrapped(storeError(engineError('SQLITE_FULL'), '/data'))],
  ['an error of the store without a reason', false, new StoreError('No.')],
  ['a text', false, 'SQLITE_CORRUPT'],
])('%s is damage: %s', (_, expected, thrown) => {
  expect(isDamage(thrown)).toBe(expected)
})

test('an error of the engine becomes one with the path, the remedy, and a reason without the path', () => {
  const error = storeError(engineError('SQLITE_FULL'), '/data/router.sqlite')
  expect(error.message).toBe('/data/router.sqlite: the disk is full; free some space (message of the engine)')
  expect(error.reason).toBe('the disk is full')
  expect(storeError(error, '/other')).toBe(error)
  const other = storeError(new Error('a bug'), '/data/router.sqlite')
  expect(other.message).toBe('/data/router.sqlite: the database cannot be used (a bug)')
  expect(other.reason).toBeUndefined()
})

test('clients are told of failures of the database, not of its path', () => {
  const error = unavailable(storeError(engineError('SQLITE_BUSY'), '/data/router.sqlite'))
  expect(error).toMatchObject({ code: 'unavailable', retryAfterMs: 1_000 })
  expect(error?.message).toContain('the database is locked by another process')
  expect(error?.message).not.toContain('/data')
  expect(unavailable(engineError('SQLITE_CONSTRAINT_UNIQUE'))).toBeUndefined()
  expect(unavailable(new Error('a bug'))).toBeUndefined()
})

test.each<[string, boolean, unknown]>([
  ['a constraint', true, engineError('SQLITE_CONSTRAINT_NOTNULL')],
  ['a value that is too large', true, engineError('SQLITE_TOOBIG')],
  ['a value of another type', true, new TypeError('No.')],
  ['a full disk', false, engineError('SQLITE_FULL')],
])('%s is the fault of the row: %s', (_, expected, thrown) => {
  expect(isRowFault(thrown)).toBe(expected)
})
