import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { boundedPattern, matchesIn, withoutMatches } from '../../plugins/lib/bounded-pattern.ts'

const found = (text: string, source: string) => {
  const ranges = matchesIn(text, boundedPattern('p', source, 'giu'))
  return Array.from(ranges, ({ start, end }) => text.slice(start, end))
}

describe('a long text, which is searched piece by piece,', () => {
  test.each([
    ['a word', 'EMP-12345', String.raw`EMP-\d{4,6}`],
    ['a word between borders', 'heron', String.raw`(?<![\p{L}\p{N}])heron(?![\p{L}\p{N}])`],
    ['a repeated group', 'ab;ab;ab;', '(?:ab;){3}'],
    ['what follows a long context', `x${'-'.repeat(40)}y`, '(?<=x-{40})y'],
  ])('has the same matches: %s, wherever it stands', (_, word, source) => {
    for (let at = 16_384 - 60; at <= 16_384 + 10; at++) {
      const text = `${' '.repeat(at)}${word}${' '.repeat(16_400)}${word}.`
      expect([at, found(text, source)]).toEqual([
        at,
        [...text.matchAll(new RegExp(source, 'giu'))].map(([match]) => match),
      ])
    }
  })

  test('loses nothing and repeats nothing where something else is written instead', () => {
    const text = 'é12 '.repeat(20_000)
    expect(withoutMatches(text, boundedPattern('p', String.raw`\d{1,3}`, 'gu'), '#')).toBe('é# '.repeat(20_000))
  })
})

test('patterns that take long give up after a time, however the text is divided, and begin anew when other work has run', async () => {
  const pattern = boundedPattern('p', '[a-z]{1,400}!', 'giu')
  const texts = Array.from({ length: 500 }, () => 'a'.repeat(20_000))
  const began = performance.now()
  expect(() => texts.map((text) => Array.from(matchesIn(text, pattern)))).toThrow('shorten their repetitions')
  expect(performance.now() - began).toBeLessThan(30_000)
  await setImmediate()
  expect(Array.from(matchesIn('Well!', pattern))).toEqual([{ start: 0, end: 5 }])
})
