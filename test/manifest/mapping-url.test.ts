import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { openFileCache } from '../../src/manifest/read/file-cache.ts'
import { keepSound, readSourceFile } from '../../src/manifest/read/folder.ts'
import { readLayer } from '../../src/manifest/read/layer.ts'
import { mappingUrl } from '../../src/manifest/read/mapping-reader.ts'
import { memberOf, readSource } from '../../src/manifest/read/source.ts'
import { runMapping } from '../../src/manifest/run/run-mapping.ts'
import { folderOf, loadedDialect, plainDialect } from './files.ts'

const pathOf = (file: string, ...path: (string | number)[]) => mappingUrl({ file, path: [] }, path)

test('the URL of a mapping is its file and its path', () => {
  const file = join(process.cwd(), 'providers/dialects/plain.yaml')
  expect(pathOf(file, 'endpoints', 'chat', 'request')).toBe(
    'mapping://providers/dialects/plain.yaml/endpoints.chat.request',
  )
  expect(pathOf('/etc/router/acme.yaml', 'usage')).toBe('mapping:///etc/router/acme.yaml/usage')
  expect(pathOf('/a b/\n"c.yaml', 'events', 'x/\u2028y', '\ud800')).toBe(
    'mapping:///a%20b/%0A%22c.yaml/events.x%2F%E2%80%A8y.%EF%BF%BD',
  )
})

test('mappings of variants are told apart', () => {
  const source = readSource('/p/acme.yaml', 'variants: [{}, { usage: "input" }]')
  const { layer } = readLayer(memberOf(source, ['variants', 1]))
  expect(layer.usage?.url).toBe('mapping:///p/acme.yaml/variants.1.usage')
})

/** The stack below the error of a mapping of the invented format. */
function failingStack(text: string): string {
  const dialect = loadedDialect(text)
  const mapping = dialect.layer.chat?.reply
  if (!mapping) throw new Error('no mapping')
  try {
    runMapping({ slug: 'acme' } as never, 'reply', mapping, { said: 'a' })
  } catch (error) {
    const cause = error instanceof RouterError ? error.cause : undefined
    return String(((cause as Error).cause as Error).stack)
  }
  throw new Error('it did not fail')
}

test('a call that a mapping fails keeps the stack that names the mapping', () => {
  const stack = failingStack(plainDialect.replace('"text": said', '"text": said + 1'))
  expect(stack).toContain('mapping://providers/dialects/plain.yaml/endpoints.chat.reply:')
})

test('a file that was checked by an earlier start has the same code under the same names', async () => {
  const folder = folderOf({ 'plain.yaml': plainDialect })
  const cache = openFileCache(join(folder, 'cache'))
  const read = async () => {
    const source = await readSourceFile(join(folder, 'plain.yaml'), { cache, kind: 'dialect' })
    if (!source) throw new Error('no source')
    return { source, mapping: readLayer(source).layer.chat?.request?.mapping }
  }
  const first = await read()
  keepSound(first.source, { cache, kind: 'dialect' })
  await cache.written()
  const second = await read()
  expect(second.source.sound).toBe('')
  expect(second.mapping?.url).toBe(`mapping://${join(folder, 'plain.yaml')}/endpoints.chat.request`)
  expect(second.mapping?.url).toBe(first.mapping?.url)
  expect(second.mapping?.explain()).toBe(first.mapping?.explain())
})
