import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blocksOf, guideFolders, guidePages } from './guides.ts'

// The form of the guides; that their commands and configurations work is checked beside this file, by folder.

const root = join(import.meta.dirname, '../..')
const pages = guidePages()
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')

/** Anchors of a page, as GitHub and the site form them. */
function anchorsOf(path: string): string[] {
  const headings =
    textOf(path)
      .replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
      .match(/^#+ .*$/gm) ?? []
  return headings.map((heading) =>
    heading
      .replace(/^#+ /, '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** Links of a page to files of the project, outside of code. */
function linksOf(path: string): { file: string; anchor: string }[] {
  const prose = textOf(path)
    .replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
    .replaceAll(/`[^`]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [file = '', anchor = ''] = target.split('#')
      return { file: file === '' ? path : join(dirname(path), file), anchor }
    })
}

test('every folder of guides has pages', () => {
  const found = new Set(pages.map((page) => page.split('/')[1]))
  expect([...found]).toEqual(guideFolders)
})

describe.each(pages)('%s', (page) => {
  test('begins with its title, the only one', () => {
    const prose = textOf(page).replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
    expect(textOf(page)).toMatch(/^# \S/)
    expect(prose.match(/^# /gm)).toHaveLength(1)
  })

  test('links only what exists', () => {
    const broken = linksOf(page).filter(({ file, anchor }) => {
      if (file === 'docs/install.md') return false
      if (!existsSync(join(root, file))) return true
      return anchor !== '' && file.endsWith('.md') && !anchorsOf(file).includes(anchor)
    })
    expect(broken).toEqual([])
  })

  test('names the language of every block', () => {
    expect(blocksOf(page).filter(({ kind }) => kind === '')).toEqual([])
  })

  test('has JSON that can be read', () => {
    for (const { text } of blocksOf(page).filter(({ kind }) => kind === 'json')) JSON.parse(text)
  })
})
