import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix, sep } from 'node:path'

const entities: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}
const decoded = (text: string) => text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? entity)

/**
 * Checks a built site: every link leads to a file, and its fragment to an element; nothing is loaded from other hosts. Returns what is
 * wrong.
 */
export function checkSite(folder: string, base = '/'): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll(sep, '/'))
  const pages = new Map(
    names.filter((name) => name.endsWith('.html')).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
  )
  const ids = new Map([...pages].map(([name, html]) => [name, idsOf(html)]))
  const problems = [...pages].flatMap(([name, html]) => [
    ...linksOf(html).flatMap((href) => deadLink(folder, base, name, href, ids) ?? []),
    ...foreign(name, html),
  ])
  const styles = names.filter((name) => name.endsWith('.css'))
  return [...problems, ...styles.flatMap((name) => foreignInStyle(name, readFileSync(join(folder, name), 'utf8')))]
}

function idsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/\bid="([^"]*)"/g)].map(([, id = '']) => decoded(id)))
}

function linksOf(html: string): string[] {
  return [...html.matchAll(/<(?:a|link|img|script)\b[^>]*?\b(?:href|src)="([^"]*)"/g)].map(([, href = '']) =>
    decoded(href),
  )
}

function deadLink(
  folder: string,
  base: string,
  page: string,
  href: string,
  ids: ReadonlyMap<string, ReadonlySet<string>>,
): string | undefined {
  if (/^(?:[a-z][a-z+.-]*:|\/\/)/i.test(href)) return undefined
  const [path = '', fragment] = href.split('#')
  const inSite = path.startsWith('/') ? path.slice(base.length) : posix.join(posix.dirname(page), path)
  const file = path === '' ? page : /(^|\/)$/.test(inSite) ? `${inSite}index.html` : posix.normalize(decodeURI(inSite))
  const full = join(folder, file)
  if (!existsSync(full) || !statSync(full).isFile()) return `${page}: ${href} leads nowhere`
  if (!fragment) return undefined
  return ids.get(file)?.has(decodeURIComponent(fragment)) === false ? `${page}: ${href} has no such heading` : undefined
}

/** Finds what a browser would load from another host: links that a reader follows are no such thing. */
function foreign(page: string, html: string): string[] {
  const loads = html.matchAll(
    /<(?:script|img|iframe|source|video|audio|link)\b[^>]*?\b(?:src|href)="((?:https?:)?\/\/[^"]*)"/g,
  )
  return [...loads].map(([, url]) => `${page}: loads ${url}`)
}

function foreignInStyle(name: string, css: string): string[] {
  return [...css.matchAll(/url\(['"]?((?:https?:)?\/\/[^'")]*)/g)].map(([, url]) => `${name}: loads ${url}`)
}
