import { expect, test } from 'vitest'
import { type ErrorCode, type ErrorDetails, RouterError } from '../../src/core/errors.ts'
import { targetFailures } from '../../src/core/routing/target-failures.ts'
import { failureClass } from '../../src/routing/health/failure-class.ts'

const cases: [code: ErrorCode, details: ErrorDetails, name: string][] = [
  // Of a provider.
  ['provider_unreachable', { provider: 'acme' }, 'connection'],
  ['provider_overloaded', { provider: 'acme' }, 'failed'],
  ['provider_timeout', { provider: 'acme' }, 'timeout'],
  ['rate_limited', { provider: 'acme' }, 'rate_limited'],
  ['rate_limited', { provider: 'acme', concernsSize: true }, 'too_large'],
  ['quota_exhausted', { provider: 'acme' }, 'credential'],
  ['provider_refused', { provider: 'acme' }, 'credential'],
  ['provider_refused', { provider: 'acme', concernsModel: true }, 'forbidden'],
  ['model_not_found', { provider: 'acme' }, 'gone'],
  ['context_length', { provider: 'acme' }, 'too_large'],
  ['content_blocked', { provider: 'acme' }, 'blocked'],
  ['invalid_request', { provider: 'acme' }, 'refused'],
  // Of the router itself: what it refuses the caller is no failure of a target.
  ['invalid_request', {}, 'refused'],
  ['loss_refused', {}, 'refused'],
  ['model_not_found', {}, 'refused'],
  ['rate_limited', {}, 'own'],
  ['provider_refused', { concernsModel: true }, 'own'],
  ['rate_limited', { concernsSize: true }, 'own'],
  ['context_length', {}, 'own'],
  ['budget_exhausted', {}, 'own'],
  ['client_gone', { provider: 'acme' }, 'own'],
]

test.each(cases)('%s %o is a failure of the class %s', (code, details, name) => {
  const { health, ...found } = failureClass(new RouterError(code, 'No.', details))
  expect(found.name).toBe(name)
  if (details.provider === undefined) expect(health).toBeUndefined()
  expect(targetFailures.has(name)).toBe(health !== undefined)
})

test('a model that this router does not have may be had by a target that can do more', () => {
  expect(failureClass(new RouterError('model_not_found', 'No.'))).toMatchObject({ same: 'never', next: 'abler' })
})
