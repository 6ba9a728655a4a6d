import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { coveragePage } from './guard-coverage.ts'

test('the page of what guard-output covers is what calls to the router show', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/guard-coverage.md'), 'utf8')
  expect(await coveragePage(), 'npm run docs:guards').toBe(page)
})
