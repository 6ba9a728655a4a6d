import { expect, test } from 'vitest'
import type { Target } from '../../src/manifest/target.ts'
import { Gates } from '../../src/routing/gates.ts'

test('only targets that calls go to are told of: clients may have invented the names of others', async () => {
  const gates = new Gates()
  const target = (model: string) =>
    ({ provider: { slug: 'p', limits: { concurrent: 2, queue: 2 } }, model }) as unknown as Target
  for (let index = 0; index < 100; index++) gates.of(target(`invented-${index}`))
  const leave = await gates.of(target('used'))?.enter({ organization: 'a', isLow: false }, new AbortController().signal)
  expect(gates.standings()).toEqual([{ name: 'p/used', running: 1, waiting: 0, most: 2 }])
  leave?.()
  expect(gates.standings()).toEqual([])
})
