import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nanoOf, usdOf, usdText } from '../../src/money/usd.ts'

test('sums of USD are read exactly', () => {
  expect(nanoOf('25')).toBe(25_000_000_000n)
  expect(nanoOf('0.1')).toBe(100_000_000n)
  expect(nanoOf('-0.000000001')).toBe(-1n)
  expect(nanoOf('999999999.999999999')).toBe(999_999_999_999_999_999n)
})

test.each(['', '1e3', '1,5', '.5', '5.', '0.0000000001', '$5', '1 000', 'NaN'])('%j is no sum of USD', (text) => {
  expect(nanoOf(text)).toBeUndefined()
})

test('written amounts can be read back', () => {
  fc.assert(
    fc.property(fc.bigInt(-(10n ** 17n), 10n ** 17n), (nano) => {
      expect(nanoOf(usdText(nano))).toBe(nano)
    }),
  )
})

test('texts have two decimals at least, JSON has numbers', () => {
  expect(usdText(12_500_000_000n)).toBe('12.50')
  expect(usdText(-1n)).toBe('-0.000000001')
  expect(usdText(0n)).toBe('0.00')
  expect(usdOf(1_230_000n)).toBe(0.00123)
})
