import { beforeEach, expect, test } from 'vitest'
import { createValidators } from '../../src/manifest/check/schema.ts'
import { type FileCache, noCache } from '../../src/manifest/read/file-cache.ts'

const kept = new Map<string, unknown>()
const cache: FileCache = {
  ...noCache,
  read: (about) => kept.get(about.join()),
  write: (about, value) => kept.set(about.join(), value),
}
beforeEach(() => kept.clear())

const kinds = ['catalog', 'provider', 'dialect', 'config'] as const
const wrong = {
  slug: 'A B',
  auth: { scheme: 'none' },
  endpoints: { chat: { path: 'x', history: { alternate: 1 } } },
  models: 3,
  colour: 'red',
}

test.each(kinds)('a kept schema of %s finds what a compiled one finds', (kind) => {
  const compiled = createValidators(cache)(kind)
  expect([...kept.keys()]).toEqual([`validator,${kind}`])
  const full: FileCache = { ...cache, write: () => expect.fail('it was compiled again') }
  const again = createValidators(full)(kind)
  expect(again(wrong)).toBe(compiled(wrong))
  expect(again.errors?.length).toBeGreaterThan(2)
  expect(again.errors).toEqual(compiled.errors)
})

test('what the cache has lost is compiled again', () => {
  const validatorOf = createValidators(noCache)
  expect(
    validatorOf('provider')({ slug: 'a', name: 'A', base_url: 'https://a.example', auth: { scheme: 'none' } }),
  ).toBe(true)
})
