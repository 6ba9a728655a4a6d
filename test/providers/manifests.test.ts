import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

// What all shipped manifests have in common: they are short, proven, and no copies of each other.

const folder = join(import.meta.dirname, '../../providers')

type Manifest = { slug: string; examples?: { name: string }[]; variants?: { examples?: object[] }[] }

const manifests = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => {
    const text = readFileSync(join(folder, name), 'utf8')
    return { name, text, value: parse(text) as Manifest }
  })

/** The members of a manifest that are mappings or hold them. */
const mapped = new Set(['define', 'usage', 'failure', 'request', 'reply', 'event', 'events', 'query', 'done', 'failed'])

/** The lines of JSONata in a value, without blanks around them and lines that say nothing by themselves. */
function mappingLines(value: unknown, isMapping = false): string[] {
  if (typeof value === 'string') {
    const lines = isMapping ? value.split('\n').map((line) => line.trim()) : []
    return lines.filter((line) => /\w.*\W.*\w/.test(line))
  }
  if (value === null || typeof value !== 'object') return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === 'examples' ? [] : mappingLines(member, isMapping || mapped.has(name)),
  )
}

test('there are at least fifty, of at most forty lines in the middle', () => {
  const lengths = manifests.map(({ text }) => text.split('\n').length).sort((one, other) => one - other)
  expect(lengths.length).toBeGreaterThanOrEqual(50)
  expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThan(40)
})

test('no two share more than eight lines of mappings: what is common is in dialects', () => {
  const lines = manifests.map(({ name, value }) => ({ name, lines: new Set(mappingLines(value)) }))
  expect(lines.flatMap(({ lines }) => [...lines]).length).toBeGreaterThan(400)
  const copies = lines.flatMap((one, index) =>
    lines.slice(index + 1).flatMap((other) => {
      const shared = [...one.lines].filter((line) => other.lines.has(line))
      return shared.length > 8 ? [`${one.name} and ${other.name}: ${shared.join(' ')}`] : []
    }),
  )
  expect(copies).toEqual([])
})

test('each says where its API is described, and has examples', () => {
  const isSourced = (text: string) => /^# .*https:\/\//m.test(text.slice(0, text.indexOf('\nslug:')))
  const own = manifests.filter(({ value }) => value.slug !== 'demo')
  expect(own.filter(({ text }) => !isSourced(text)).map(({ name }) => name)).toEqual([])
  const few = own.filter(({ value: { examples = [], variants = [] } }) => {
    return examples.length + variants.flatMap((one) => one.examples ?? []).length < 2
  })
  expect(few.map(({ name }) => name)).toEqual([])
})
