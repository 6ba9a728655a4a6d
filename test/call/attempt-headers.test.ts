import { expect, test } from 'vitest'
import { attemptHeaders } from '../../src/call/reply/attempt-headers.ts'
import type { Provider } from '../../src/manifest/provider.ts'

const target = { provider: { slug: 'maker' } as Provider, model: 'm' }

test('the headers of a reply name the model, the attempts, and what was left out', () => {
  expect(attemptHeaders({ target, attempts: 2, dropped: [] }, undefined)).toEqual({
    'x-router-model': 'maker/m',
    'x-router-attempts': '2',
  })
  expect(attemptHeaders({ target, attempts: 1, dropped: ['seed', 'top_k'] }, undefined)).toMatchObject({
    'x-router-dropped': 'seed,top_k',
  })
})

test.each([505, 506, 507])('a name of a model with %d characters is at most 512 long with its provider', (length) => {
  const { 'x-router-model': name = '' } = attemptHeaders(
    { target: { ...target, model: 'x'.repeat(length) }, attempts: 1, dropped: [] },
    undefined,
  )
  expect(name).toBe(`maker/${'x'.repeat(Math.min(length, 506))}`)
})
