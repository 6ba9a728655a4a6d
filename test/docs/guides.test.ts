import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blocksOf, guideFolders, guidePages } from './guides.ts'

// The form of the guides; that their commands and configurations work is checked beside this file, by folder; that
// their links lead somewhere, with those of all pages.

const root = join(import.meta.dirname, '../..')
const pages = guidePages()
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')

test('every folder of guides has pages', () => {
  const found = new Set(pages.map((page) => page.split('/')[1]))
  expect([...found]).toEqual(guideFolders)
})

/** Models of the catalog that a page names in its code, by provider. */
function modelsOf(page: string): { slug: string; model: string }[] {
  const code =
    textOf(page)
      .match(/^ *```[\s\S]*?^ *```$|`[^`\n]+`/gm)
      ?.join('\n') ?? ''
  const found = code.matchAll(/(?<![\w/.-])(anthropic|openai|mistral|bedrock)\/([a-z][\w.-]*\w)(?![\w/*]|\.…)/g)
  return [...found].map(([, slug = '', model = '']) => ({ slug, model }))
}

test('the pages name models', () => expect(pages.flatMap(modelsOf).length).toBeGreaterThan(20))

describe.each(pages)('%s', (page) => {
  test('names only models of the catalog', () => {
    const unknown = modelsOf(page).filter(({ slug, model }) => !textOf(`catalog/${slug}.yaml`).includes(` ${model}:\n`))
    expect(unknown).toEqual([])
  })

  test('begins with its title, the only one', () => {
    const prose = textOf(page).replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
    expect(textOf(page)).toMatch(/^# \S/)
    expect(prose.match(/^# /gm)).toHaveLength(1)
  })

  test('names the language of every block', () => {
    expect(blocksOf(page).filter(({ kind }) => kind === '')).toEqual([])
  })

  test('has JSON that can be read', () => {
    for (const { text } of blocksOf(page).filter(({ kind }) => kind === 'json')) JSON.parse(text)
  })
})
