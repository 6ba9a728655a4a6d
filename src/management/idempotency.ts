import { RouterError } from '../core/errors.ts'
import type { Store } from '../store/open.ts'
import type { ManageRequest } from './manage.ts'
import { invalid } from './read.ts'

/**
 * Runs a change that returns its answer, in one transaction. With the header `Idempotency-Key` it is made once: the same
 * request gets the same answer again, another one with the same key 409. `asked` is the request in a form that is the same for the
 * same request.
 */
export function madeOnce(
  { headers, organization }: ManageRequest,
  { store, asked }: { store: Store; asked: string },
  change: () => string,
): string {
  const key = headers['idempotency-key']
  if (key === undefined) return store.atomically(change)
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) throw invalid(wrongKey, 'Idempotency-Key')
  return store.atomically(() => {
    const earlier = store.idempotency.find(organization, key)
    if (earlier && earlier.request !== asked)
      throw new RouterError('idempotency_conflict', usedKey, { param: 'Idempotency-Key' })
    if (earlier) return earlier.answer
    const answer = change()
    store.idempotency.keep(organization, key, { request: asked, answer })
    return answer
  })
}

const wrongKey =
  "'Idempotency-Key' must be one text of 1 to 255 letters, digits and punctuation without spaces, as a UUID is."
const usedKey =
  "This 'Idempotency-Key' was used for another request. Choose a new key for each change, and repeat it only with the same body."
