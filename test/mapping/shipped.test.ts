import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readMapping } from '../../src/mapping/mapping.ts'

const providers = join(import.meta.dirname, '../../providers')

const files = existsSync(providers)
  ? readdirSync(providers, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.yaml'))
  : []

test.skipIf(files.length === 0).each(files)('every mapping of %s compiles', (file) => {
  for (const [place, text] of mappings(parse(readFileSync(join(providers, file), 'utf8')))) {
    expect({ place, fallback: readMapping(text).fallback }).toEqual({ place, fallback: undefined })
  }
})

/** Texts under the members that hold mappings, with where they stand. */
function mappings(node: unknown, place = '', inside = false): [string, string][] {
  // An empty text stands for an event that means nothing.
  if (typeof node === 'string') return inside && node.trim() !== '' ? [[place, node]] : []
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return []
  return Object.entries(node).flatMap(([name, member]) => {
    if (name === 'examples') return []
    const holds = ['request', 'reply', 'events', 'patch'].includes(name)
    return mappings(member, `${place}/${name}`, holds || (inside && typeof member === 'string'))
  })
}
