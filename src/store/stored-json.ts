import { damageError } from './store-error.ts'

/** The value of a column with JSON. Only JSON was ever written there: throws StoreError for damage when it is anything else. */
export function storedJson<T>(text: string): T {
  try {
    return JSON.parse(text)
  } catch {
    throw damageError('a row of the database', 'a column that must be JSON is not')
  }
}
