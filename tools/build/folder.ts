import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CLibrary, fetchCLibrary } from './c-library.ts'
import { portable } from './elf.ts'
import { licencesOf } from './licences.ts'
import { fetchNode } from './node-binary.ts'
import { writePackages, writeSqlite } from './packages.ts'
import { filesBelow, writeProgram } from './program.ts'
import type { Entry } from './tar.ts'
import type { Target } from './targets.ts'
import { warmCache } from './warm.ts'

/** Contents of a folder besides the project and its packages. */
export type Parts = { node: { version: string; licence: Buffer }; debian: CLibrary['packages'] }

/**
 * Writes everything that runs on a target into an empty folder: `node/` with its C library, `program/` with its packages, and `cache/`, what
 * a first start would have to find out.
 */
export async function writeFolder(to: string, target: Target): Promise<Parts> {
  writeProgram(join(to, 'program'))
  writePackages(join(to, 'program'))
  // What a start finds out is the same on every system: it is found out on this one.
  writeSqlite(join(to, 'program'), `${process.platform}-${process.arch}`)
  await warmCache(join(to, 'program'), join(to, 'cache'))
  writeSqlite(join(to, 'program'), target.name)
  const { version, program, licence } = fetchNode(target)
  const { files, packages } = target.debian ? fetchCLibrary(target.debian) : { files: [], packages: [] }
  mkdirSync(join(to, 'node/lib'), { recursive: true })
  for (const { name, bytes } of files) writeProgramFile(join(to, 'node/lib', name), bytes)
  const name = target.go.os === 'windows' ? 'node.exe' : 'node'
  writeProgramFile(join(to, 'node', name), target.debian ? portable(program, 'lib') : program)
  writeFileSync(join(to, 'LICENCES'), licencesOf({ node: { version, licence }, debian: packages }))
  return { node: { version, licence }, debian: packages }
}

function writeProgramFile(path: string, bytes: Buffer): void {
  writeFileSync(path, bytes)
  chmodSync(path, 0o755)
}

/** Returns the files of a folder as entries of an archive, below `prefix`, with their folders. */
export function entriesOf(folder: string, prefix = '', owner = 0): Entry[] {
  const files = filesBelow(folder)
  const folders = new Set(files.flatMap((path) => parentsOf(prefix + path)))
  return [
    ...[...folders].map((path) => ({ path: `${path}/`, mode: 0o755, owner })),
    ...files.map((path) => ({
      path: prefix + path,
      mode: (statSync(join(folder, path)).mode & 0o111) === 0 ? 0o644 : 0o755,
      bytes: readFileSync(join(folder, path)),
      owner,
    })),
  ].sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** Returns the folders that a path is in, the outermost first. */
function parentsOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}
