import { expect, test } from 'vitest'
import { mappingsIn } from '../../src/cli/load-one.ts'
import { shippedFiles } from '../helpers/shipped.ts'

test('every shipped mapping is compiled', async () => {
  const { dialects, providers } = await shippedFiles()
  const placed = mappingsIn([...dialects.map(({ layer }) => layer), ...providers.flatMap(({ layers }) => layers ?? [])])
  expect(placed.length).toBeGreaterThan(100)
  const interpreted = placed.filter(({ mapping }) => !mapping.compiled)
  expect(interpreted.map(({ file, name, mapping }) => `${file} ${name}: ${mapping.fallback}`)).toEqual([])
})
