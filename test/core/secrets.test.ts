import { expect, test } from 'vitest'
import { newSecret } from '../../src/access/secrets.ts'
import { withoutSecrets } from '../../src/core/secrets.ts'

const secret = newSecret()

test.each([
  [`model '${secret}' not found`, "model '[secret]' not found"],
  [`${secret},${secret}`, '[secret],[secret]'],
  [`/v1/manage/apikey/${secret}/rotate`, '/v1/manage/apikey/[secret]/rotate'],
  [
    `${JSON.stringify({ message: `not known:\n${secret}\u001f${secret}` })}`,
    '{"message":"not known:\\n[secret]\\u001f[secret]"}',
  ],
  [`KEY_${secret}`, 'KEY_[secret]'],
  [`cut off: ${secret.slice(0, 37)}…`, 'cut off: [secret]…'],
  ['their-own words, ir-, ir-test and pair-of-words-that-are-longer-than-a-secret', undefined],
])('%s: what looks like a key is hidden, words are not', (text, left) => {
  expect(withoutSecrets(text)).toBe(left ?? text)
})

test('the key that came with the request is hidden whatever it looks like, unless it would match ordinary text', () => {
  expect(withoutSecrets('is chosen-by-hand known?', 'chosen-by-hand')).toBe('is [secret] known?')
  expect(withoutSecrets('a key is missing', 'key')).toBe('a key is missing')
})
