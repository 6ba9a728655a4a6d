import { damageError } from './store-error.ts'

/** The value of a column with JSON. Only JSON was ever written there: throws StoreError for damage when it is anything else. */
// biome-ignore lint/suspicious/noExplicitAny: what the router wrote has the type that it wrote.
export function storedJson(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    throw damageError('a row of the database', 'a column that must be JSON is not')
  }
}
