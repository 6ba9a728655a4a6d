import { posix } from 'node:path'
import type { Page } from './pages.ts'

/** A function that returns whether a path of the repository is a file, a folder or neither. */
export type Repository = (path: string) => 'file' | 'folder' | undefined

/** A page with the links of the site, the files that it links to, and its dead links. */
export type Linked = { text: string; files: string[]; dead: string[] }

const code = /^(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1[^\n]*$|(`+)(?!`)[^\n]*?[^`]\2(?!`)/gm
const link =
  /(!?)\[((?:[^[\]\\]|\\.|\[(?:[^[\]\\]|\\.)*\])*)\]\(<?([^()\s>]+(?:\([^()\s]*\)[^()\s>]*)*)>?((?:\s+"[^"]*")?)\)/g
const attribute = /(<(?:a|img|source)\b[^>]*?\b(?:src|srcset|href)=)"([^"]*)"/g

/**
 * Rewrites the links of a page for the site. Links to pages get the paths of the site; files outside `docs/` and images are copied with the
 * site and found by `address`; links to folders become plain text. What does not exist is dead.
 */
export function linked(
  page: Page,
  pages: readonly Page[],
  repository: Repository,
  address: (file: string) => string,
): Linked {
  const bySource = new Map(pages.map((one) => [one.source, one]))
  const result: Linked = { text: '', files: [], dead: [] }
  const rewrite = (whole: string, image: string, label: string, target: string, title: string): string => {
    if (/^(?:[a-z][a-z+.-]*:|\/\/)/i.test(target)) return whole
    const [path = '', fragment] = target.split('#')
    const misses = (to: Page) => fragment !== undefined && !anchorsOf(to).has(decodeURIComponent(fragment))
    if (path === '') {
      if (misses(page)) result.dead.push(`${page.source}: ${target}`)
      return whole
    }
    const found = posix.normalize(posix.join(posix.dirname(page.source), decodeURI(path))).replace(/\/$/, '')
    const to = (href: string) => `${image}[${label}](${href}${fragment === undefined ? '' : `#${fragment}`}${title})`
    const known = bySource.get(found) ?? bySource.get(`${found}/README.md`) ?? bySource.get(`${found}/index.md`)
    if (known !== undefined) {
      if (misses(known)) result.dead.push(`${page.source}: ${target}`)
      return to(relative(page.path, known.path))
    }
    const kind = found.startsWith('..') ? undefined : repository(found)
    if (kind === 'folder') return label
    if (kind === undefined) {
      result.dead.push(`${page.source}: ${target}`)
      return whole
    }
    result.files.push(found)
    return to(address(found))
  }
  const rewriteTag = (whole: string, before: string, target: string): string => {
    const [, to] = /\]\((.*)\)$/.exec(rewrite('', '!', '', target, '')) ?? []
    return to === undefined ? whole : `${before}"${to}"`
  }
  result.text = outsideCode(page.text, (text) =>
    text.replace(attribute, rewriteTag).replace(link, (whole, image, label, target, title) =>
      // A label may be an image with a link of its own.
      rewrite(whole, image, image ? label : label.replace(link, rewrite), target, title),
    ),
  )
  return result
}

const known = new WeakMap<Page, ReadonlySet<string>>()

/** Returns the anchors of the headings of a page, as the repository and the site make them. */
export function anchorsOf(page: Page): ReadonlySet<string> {
  const before = known.get(page)
  if (before) return before
  const anchors = new Set<string>()
  const text = page.text.replace(/^(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1[^\n]*$/gm, '')
  for (const [, heading = ''] of text.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const anchor = slug(heading.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, ''))
    let name = anchor
    for (let count = 1; anchors.has(name); count++) name = `${anchor}-${count}`
    anchors.add(name)
  }
  for (const [, id = ''] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id)
  known.set(page, anchors)
  return anchors
}

/** Returns the anchor of a heading. */
function slug(heading: string): string {
  const kept = heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
  return kept.replaceAll(' ', '-')
}

/** Extensions of files that browsers show and the generator takes for files: all others are copied as text. */
const shown = /\.(?:csv|gif|jpe?g|json|pdf|png|svg|txt|webp|ya?ml)$/

/** Returns the path of the copy of a file of the repository. */
export function copyOf(file: string): string {
  return `files/${file}${shown.test(file) ? '' : '.txt'}`
}

/** Returns the path from one page to another. */
export function relative(from: string, to: string): string {
  return posix.relative(posix.dirname(from), to)
}

/** Changes what is not code. Links whose labels are code are kept whole: code is replaced by marks of the private use area meanwhile. */
function outsideCode(text: string, change: (text: string) => string): string {
  const pieces: string[] = []
  const marked = text.replace(code, (piece) => `\ue000${pieces.push(piece) - 1}\ue001`)
  return change(marked).replace(/\ue000(\d+)\ue001/g, (_, index) => pieces[Number(index)] ?? '')
}
