import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { contents, outside } from './contents.ts'

/** A page: `source` is its path in the repository, `path` its path in the site. */
export type Page = { source: string; path: string; title: string; text: string }

/** An entry of the sidebar. */
export type Entry = { text: string; link: string }

/** A section of the sidebar. */
export type SidebarSection = { text: string; items: Entry[] }

const fence = /^(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1[^\n]*$/gm

/** Reads every page of the documentation. `generated` are pages that exist only in the site, by path. */
export function readPages(root: string, generated: Readonly<Record<string, string>> = {}): Page[] {
  const names = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  const inDocs = names
    .map((name) => name.replaceAll(sep, '/'))
    .filter((name) => name.endsWith('.md') && !name.startsWith('.'))
    .map((name) => [`docs/${name}`, name.replace(/(^|\/)README\.md$/, '$1index.md')] as const)
  const others = Object.entries(outside).filter(([source]) => existsSync(join(root, source)))
  const read = [...inDocs, ...others].map(([source, path]) => {
    return pageOf(source, path, readFileSync(join(root, source), 'utf8').replace(/^---\n[\s\S]*?\n---\n/, ''))
  })
  const made = Object.entries(generated).map(([path, text]) => pageOf(`docs/${path}`, path, text))
  return [...read, ...made].sort((one, other) => (one.path < other.path ? -1 : 1))
}

function pageOf(source: string, path: string, text: string): Page {
  const heading = /^# (.+)$/m.exec(text.replace(fence, ''))?.[1] ?? posix.basename(path, '.md')
  return { source, path, title: heading.replaceAll('`', '').trim(), text }
}

/** Sorts pages into the sections of the table of contents. Throws for a page that belongs to none. */
export function sectionsOf(pages: readonly Page[]): { title: string; pages: Page[] }[] {
  const byName = new Map(pages.map((page) => [page.path.replace(/\.md$/, ''), page]))
  byName.delete('index')
  const sections = contents.map(({ title, folder, pages: listed }) => {
    const more = [...byName.keys()].filter((name) => folder !== undefined && name.startsWith(`${folder}/`))
    const found = [...new Set([...listed, ...more])].flatMap((name) => byName.get(name) ?? [])
    for (const { path } of found) byName.delete(path.replace(/\.md$/, ''))
    return { title, pages: found }
  })
  if (byName.size > 0) {
    const left = [...byName.values()].map(({ source }) => source).join(', ')
    throw new Error(`No section of tools/site/contents.ts has ${left}.`)
  }
  return sections.filter(({ pages: found }) => found.length > 0)
}

/** Returns the sidebar: the table of contents with the titles of the pages. */
export function sidebarOf(sections: ReturnType<typeof sectionsOf>): SidebarSection[] {
  return sections.map(({ title, pages }) => ({
    text: title,
    items: pages.map((page) => ({ text: page.title, link: `/${page.path.replace(/\.md$/, '.html')}` })),
  }))
}
