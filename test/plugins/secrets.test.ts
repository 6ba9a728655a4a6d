import { describe, expect, test } from 'vitest'
import { mapData } from '../../plugins/lib/json-texts.ts'
import { plain, skeleton } from '../../plugins/lib/plain-text.ts'
import { type SecretRule, scannerIn, scannerOf } from '../../plugins/lib/secret-rules.ts'
import { findAssignedSecrets, findKnownSecrets } from '../../plugins/lib/secrets.ts'
import { keyFinder } from '../../plugins/mask-pii/keys.ts'
import { expectLinear } from '../helpers/time.ts'

/** A rule in the form of secretlint that finds a word; `fails` throws. */
function rule(word: string, { id = 'word', fails = false } = {}): SecretRule & { lengths: number[] } {
  const lengths: number[] = []
  return {
    meta: { id },
    messages: {},
    lengths,
    create: (context) => ({
      file(source) {
        const { content } = source as { content: string }
        lengths.push(content.length)
        if (fails) throw new Error('no')
        for (const { index } of content.matchAll(new RegExp(word, 'g')))
          context.report({ range: [index, index + word.length] })
      },
    }),
  }
}

describe('rules of others', () => {
  const word = 'plumplumplumplum'

  test('find secrets wherever they are in a long text, on parts of it of bounded length', () => {
    const finding = rule(word)
    const scan = scannerOf([finding])
    for (const at of [0, 16_000, 16_380, 31_000, 100_000]) {
      const text = `${' '.repeat(at)}${word}${' '.repeat(50_000)}`
      const found = scan(text)
      expect(new Set(found.map(({ start, end }) => text.slice(start, end))), `${at}`).toEqual(new Set([word]))
    }
    expect(Math.max(...finding.lengths)).toBeLessThanOrEqual(16_384)
  })

  test('that fail do not keep others from finding', () => {
    const scan = scannerOf([rule(word, { fails: true }), rule(word)])
    expect(scan(word)).toEqual([{ start: 0, end: word.length }])
  })

  test('are read from a package, without the one that excuses secrets', () => {
    expect(scannerIn({})).toBeUndefined()
    expect(scannerIn({ rules: [] })).toBeUndefined()
    const scan = scannerIn({ rules: [rule(word, { id: 'x-filter-comments' }), rule('token-token-token')] })
    expect(scan?.(`${word} token-token-token`)).toEqual([{ start: word.length + 1, end: word.length + 18 }])
  })

  test('and patterns that overlap hide both ranges', () => {
    const text = 'aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCY'
    const find = keyFinder(() => [{ start: 0, end: 30 }])
    expect(find(text)).toEqual([{ kind: 'key', start: 0, end: text.length }])
  })
})

test.each([
  'password',
  'secret=',
  'eyJabc.',
  'basic ',
  '://a:',
  '-----BEGIN PRIVATE KEY-----',
  '?sig=',
  'api ',
  '\\',
  '[',
  'a',
])('secrets are found in linear time in texts of %j', (unit) => {
  const find = (size: number) => {
    const text = unit.repeat(size / unit.length)
    findKnownSecrets(text)
    findAssignedSecrets(text)
  }
  expectLinear(find, { small: 65_536, large: 1_048_576, slack: 5, floorMs: 750 })
})

test.each([
  ['i\u0301gnore', 'ignore'],
  ['\u0456gn\u043er\u0435', 'ignore'],
  ['𝗶𝗴𝗻𝗼𝗿𝗲', 'ignore'],
  ['i\u200dg\u00adn\u2063ore', 'ignore'],
  ['ìgnórë', 'ignore'],
  ['Ⅰgnore \n  all', 'Ignore all'],
])('the shape of %j is %s', (text, shape) => expect(skeleton(text)).toBe(shape))

test('accents that belong to a letter are kept in the plain text', () =>
  expect(plain('sa\u0308mtlich')).toBe('sämtlich'))

test.each([
  ['data:text/plain,a%20b', 'data:text/plain,A%20B'],
  [
    `data:text/plain;base64,${Buffer.from('a b').toString('base64')}`,
    `data:text/plain;base64,${Buffer.from('A B').toString('base64')}`,
  ],
  ['data:image/png;base64,AAAA', 'data:image/png;base64,AAAA'],
  ['a b', 'A B'],
])('the text in %s is changed', (data, changed) => {
  const text = (given: string) => given.toUpperCase()
  expect(mapData(data, undefined, { text, json: text })).toBe(changed)
})
