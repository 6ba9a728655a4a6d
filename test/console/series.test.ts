import { expect, test } from 'vitest'
import { spendSeries } from '../../console/series.ts'

const groups = (spends: Record<string, number>) => ({
  spend: Object.values(spends).reduce((sum, spend) => sum + spend, 0),
  grouped_data: Object.entries(spends).map(([key, spend]) => ({ spend, group_by_values: { key: key || null } })),
})

test('the largest groups have a series each with their names, the others are one, and every time has its sum', () => {
  const found = new Map([
    [0, groups({ a: 5, b: 4, c: 3, d: 2 })],
    [2, groups({ e: 1, f: 0.5, g: 0.25, b: 1 })],
  ])
  const series = spendSeries(found, [0, 1, 2], { by: 'key', names: new Map([['a', 'web']]) })
  expect(series).toEqual([
    { label: 'web', values: [5, 0, 0] },
    { label: 'b', values: [4, 0, 1] },
    { label: 'c', values: [3, 0, 0] },
    { label: 'd', values: [2, 0, 0] },
    { label: 'e', values: [0, 0, 1] },
    { label: 'others', values: [0, 0, 0.75] },
  ])
  const sums = [0, 1, 2].map((at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  expect(sums).toEqual([14, 0, 2.75])
})

test('without spend there is one series, of nothing', () => {
  expect(spendSeries(new Map(), [0, 1], { by: 'key' })).toEqual([{ label: 'spend', values: [0, 0] }])
  expect(spendSeries(new Map([[0, groups({ a: 0 })]]), [0], { by: 'key' })).toEqual([{ label: 'spend', values: [0] }])
})

test('calls without a value are a group of their own', () => {
  const series = spendSeries(new Map([[0, groups({ '': 2, a: 1 })]]), [0], { by: 'key' })
  expect(series.map(({ label }) => label)).toEqual(['(none)', 'a'])
})
