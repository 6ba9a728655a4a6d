import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../core/json.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import { programFolder } from '../../snapshot/folders.ts'

/** An entry under *Upgrading* of the changelog. `concerns` are the settings, plugins and variables of this installation that it names. */
export type UpgradeNote = { version: string; title: string; text: string; concerns: string[] }

/** Returns what the changelog says about upgrading; nothing where the program has no changelog. */
export function upgradeNotes(used: ReadonlySet<string>, file = join(programFolder, 'CHANGELOG.md')): UpgradeNote[] {
  if (!existsSync(file)) return []
  const releases = readFileSync(file, 'utf8').split(/^## /m).slice(1)
  return releases.flatMap((release) => {
    const version = /^\[?([^\]\s]+)/.exec(release)?.[1] ?? ''
    const section = /^### Upgrading\n([\s\S]*?)(?=^### |$(?![\s\S]))/m.exec(release)?.[1] ?? ''
    return entriesIn(section).map((text) => ({ version, title: titleOf(text), text, concerns: concernsOf(text, used) }))
  })
}

/** Returns the items of a list, each as one line. */
function entriesIn(section: string): string[] {
  const items = section.split(/^- /m).slice(1)
  return items.map((item) => (item.split(/\n(?=\S)|\n\n/)[0] ?? '').replace(/\s*\n\s*/g, ' ').trim())
}

/** Returns the first words of an entry, which say what it is about. */
function titleOf(text: string): string {
  const plain = text.replaceAll('**', '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  const title = (/^(?:`[^`]*`|[^`])*?[.:](?=\s|$)/.exec(plain)?.[0] ?? plain).replace(/[.:]$/, '')
  return title.length <= maxTitle ? title : `${title.slice(0, title.lastIndexOf(' ', maxTitle))} …`
}

/** Maximum length of a title. Characters. */
const maxTitle = 120

function concernsOf(text: string, used: ReadonlySet<string>): string[] {
  const written = [...text.matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) => [code, ...code.split(/[\s:{},]+/)])
  return [...new Set(written)].filter((word) => used.has(word))
}

/** Returns the names that an installation uses: paths of settings, plugins, providers and variables. */
export function usedNames(settings: unknown, env: Environment): Set<string> {
  const names = new Set(Object.keys(env).filter((name) => name.includes('_') && env[name]))
  if (!isObject(settings)) return names
  for (const [section, members] of Object.entries(settings)) {
    if (Array.isArray(members)) {
      for (const member of members) if (isObject(member) && typeof member.name === 'string') names.add(member.name)
    } else if (isObject(members)) {
      for (const member of Object.keys(members)) names.add(section === 'providers' ? member : `${section}.${member}`)
    } else names.add(section)
  }
  return names
}
