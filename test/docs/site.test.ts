import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { apiPages, readOpenapi } from '../../tools/site/api-page.ts'
import { checkSite } from '../../tools/site/check.ts'
import { linked, type Repository } from '../../tools/site/links.ts'
import { type Page, readPages, sectionsOf, sidebarOf } from '../../tools/site/pages.ts'
import { llmsFullText, llmsText, summaryOf } from '../../tools/site/text.ts'
import { folderOf } from '../manifest/files.ts'

const root = join(import.meta.dirname, '../..')
const repository: Repository = (path) => {
  const found = statSync(join(root, path), { throwIfNoEntry: false })
  return found?.isFile() ? 'file' : found?.isDirectory() ? 'folder' : undefined
}
const pages = readPages(root, apiPages(readOpenapi(root)))

describe('the pages of the documentation', () => {
  test('are all in a section of the table of contents, once', () => {
    const listed = sectionsOf(pages).flatMap((section) => section.pages.map(({ path }) => path))
    expect(listed.length).toBeGreaterThan(25)
    expect(listed.sort()).toEqual(pages.map(({ path }) => path).filter((path) => path !== 'index.md'))
  })

  test('have a heading and a summary', () => {
    const poor = pages.filter((page) => !/^# \S/m.test(page.text) || summaryOf(page).length < 10)
    expect(poor.map(({ source }) => source)).toEqual([])
  })

  test('link only to pages, headings and files that exist', () => {
    expect(pages.flatMap((page) => linked(page, pages, repository, (file) => file).dead)).toEqual([])
  })
})

const page = (path: string, text: string): Page => ({ source: `docs/${path}`, path, title: path, text })

describe('the table of contents', () => {
  test('refuses a page that no section has', () => {
    const stray = page('stray.md', '# Stray')
    expect(() => sectionsOf([stray])).toThrow('No section of tools/site/contents.ts has docs/stray.md.')
  })

  test('has the pages of a folder in the order that is listed, then by name', () => {
    const found = ['clients/b.md', 'clients/a.md', 'clients/curl.md'].map((path) => page(path, `# ${path}`))
    const [clients] = sidebarOf(sectionsOf(found))
    expect(clients?.items.map(({ link }) => link)).toEqual(['/clients/curl.html', '/clients/b.html', '/clients/a.html'])
  })
})

describe('links', () => {
  const other = page('deep/other.md', '# Other\n\n## A `code` heading\n\n## Twice\n\n## Twice')
  const readme: Page = { source: 'README.md', path: 'index.md', title: 'x', text: '' }
  const rewritten = (text: string) => {
    const from = page('from.md', text)
    return linked(from, [from, other, readme], repository, (file) => `/files/${file}`)
  }

  test.each([
    ['[o](deep/other.md#twice-1)', '[o](deep/other.md#twice-1)'],
    ['[o](deep/other.md#a-code-heading)', '[o](deep/other.md#a-code-heading)'],
    ['[r](../README.md)', '[r](index.md)'],
    ['[`config`](../config.yaml)', '[`config`](/files/config.yaml)'],
    ['[all tests](../test)', 'all tests'],
    ['![x](console/call.png)', '![x](/files/docs/console/call.png)'],
    ['<img src="console/call.png" alt="x">', '<img src="/files/docs/console/call.png" alt="x">'],
    ['[x](https://example.com/a.md)', '[x](https://example.com/a.md)'],
    ['`[x](nowhere.md)`', '`[x](nowhere.md)`'],
    ['```\n[x](nowhere.md)\n```', '```\n[x](nowhere.md)\n```'],
  ])('%s', (text, expected) => {
    expect(rewritten(text)).toMatchObject({ text: expected, dead: [] })
  })

  test.each([
    '[x](nowhere.md)',
    '[x](deep/other.md#nowhere)',
    '[x](#nowhere)',
    '[x](../../outside)',
    '<img src="no.png">',
  ])('%s is dead', (text) => {
    expect(rewritten(text).dead).toHaveLength(1)
  })
})

describe('the API reference', () => {
  const document = readOpenapi(root)
  const reference = apiPages(document)
  const text = Object.values(reference).join('\n')

  test('has every operation, with an example of its request and its reply', () => {
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item as object)
        .filter((method) => method !== 'parameters')
        .map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(operations.length).toBeGreaterThan(80)
    for (const operation of operations) {
      const section = text.split(`\n## ${operation}\n`)[1]?.split('\n## ')[0] ?? ''
      expect(section, operation).toMatch(/^\| [2-5]\d\d \|/m)
      const examples = [...section.matchAll(/```json\n([\s\S]*?)```/g)].map(([, one = '']) => JSON.parse(one))
      const wanted = [/^Request/m, /^Reply:/m].filter((pattern) => pattern.test(section)).length
      expect(examples.length, operation).toBeGreaterThanOrEqual(wanted)
      expect(examples, operation).not.toContain(null)
    }
  })

  test('has every schema and an example for nearly every field', () => {
    const schemas = reference['reference/schemas.md'] ?? ''
    for (const name of Object.keys(document.components.schemas as object)) expect(schemas).toContain(`\n## ${name}\n`)
    const rows = schemas.split('\n').filter((line) => /^\| (\*\*)?`/.test(line))
    const without = rows.filter((row) => row.endsWith('|  |'))
    expect(rows.length).toBeGreaterThan(500)
    expect(without.length / rows.length).toBeLessThan(0.05)
  })
})

test('text for language models has every page, with links to its Markdown', () => {
  const sections = sectionsOf(pages)
  const short = llmsText('A gateway.', sections)
  const home = pages.find(({ path }) => path === 'index.md')
  const full = llmsFullText(home, sections)
  expect(short).toMatch(/^# inference-router\n\n> A gateway\.\n/)
  for (const { path } of pages.filter(({ path }) => path !== 'index.md')) expect(short).toContain(`](${path})`)
  for (const { text } of pages) expect(full).toContain(text.trim())
})

test('a built site with a dead link, a dead fragment or a foreign host is refused', () => {
  const folder = folderOf({
    'index.html': '<h1 id="top">x</h1><a href="a.html#there">x</a><a href="/a.html#gone">x</a><a href="b.html">x</a>',
    'a.html':
      '<h2 id="there">x</h2><script src="https://cdn.example/x.js"></script><a href="https://example.com">x</a>',
    'style.css': 'a { background: url(//fonts.example/x.woff2) }',
  })
  expect(checkSite(folder)).toEqual(
    [
      'a.html: loads https://cdn.example/x.js',
      'index.html: /a.html#gone has no such heading',
      'index.html: b.html leads nowhere',
      'style.css: loads //fonts.example/x.woff2',
    ].sort((one, other) => order(one) - order(other)),
  )
})

const order = (problem: string) => (problem.startsWith('index') ? 1 : problem.startsWith('style') ? 2 : 0)

test('the generator is pinned, and apart from the packages of the router', () => {
  const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))
  const { devDependencies } = read('docs/.vitepress/package.json')
  expect(Object.values(devDependencies)).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+$/)])
  const { packages } = read('docs/.vitepress/package-lock.json')
  expect(packages['node_modules/vitepress'].version).toBe(devDependencies.vitepress)
  expect(read('package-lock.json').packages['node_modules/vitepress']).toBeUndefined()
})
