import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mappingsIn } from '../../src/cli/mappings.ts'
import { readLayer } from '../../src/manifest/layer.ts'
import { readSource } from '../../src/manifest/source.ts'

const providers = join(import.meta.dirname, '../../providers')
const files = readdirSync(providers, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.yaml'))

test.each(files)('every mapping of %s compiles', (file) => {
  const { layer, problems } = readLayer(readSource(file, readFileSync(join(providers, file), 'utf8')))
  expect(problems).toEqual([])
  for (const { name, mapping } of mappingsIn([layer])) {
    expect({ name, fallback: mapping.fallback }).toEqual({ name, fallback: undefined })
  }
})
