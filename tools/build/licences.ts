import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CLibrary } from './c-library.ts'
import { productionPackages } from './packages.ts'
import { project, projectManifest } from './program.ts'

/** Contents of a build from elsewhere, besides the packages of npm. */
export type Foreign = { node?: { version: string; licence: Buffer }; debian: CLibrary['packages'] }

const licenceFile = /^(?:licen[cs]e|copying|notice)/i

/** Returns the licences of the project and of everything that a build contains, as one text. */
export function licencesOf({ node, debian }: Foreign): string {
  const { name, version } = projectManifest()
  const sections: [title: string, text: string][] = [
    [`${name} ${version}`, readFileSync(join(project, 'LICENSE'), 'utf8')],
    ...(node ? [[`Node.js ${node.version}`, node.licence.toString()] as [string, string]] : []),
    ...debian.map((one): [string, string] => [`${one.name} ${one.version} (Debian)`, one.copyright.toString()]),
    ...productionPackages().map((one): [string, string] => [
      `${one.name} ${one.version} (${one.license})`,
      textsIn(join(project, one.path)) || `Its package contains no text; its licence is ${one.license}.`,
    ]),
  ]
  const rule = '='.repeat(80)
  return sections.map(([title, text]) => `${rule}\n${title}\n${rule}\n\n${text.trim()}\n`).join('\n')
}

function textsIn(folder: string): string {
  if (!existsSync(folder)) return ''
  return readdirSync(folder)
    .filter((name) => licenceFile.test(name))
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8').trim())
    .join('\n\n')
}
