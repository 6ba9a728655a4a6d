import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from './program.ts'

/** A package that the program needs, as the lock file has it. `path` is its folder in the project. */
export type Package = { name: string; version: string; license: string; path: string }

type LockFile = {
  packages: { [path: string]: { version: string; license?: string; dev?: boolean; devOptional?: boolean } }
}

/** Lists the packages of a production install, from the lock file. Throws if one is not installed. */
export function productionPackages(): Package[] {
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as LockFile
  return Object.entries(packages).flatMap(([path, { version, license = 'UNKNOWN', dev, devOptional }]) => {
    if (path === '' || dev || devOptional) return []
    if (!existsSync(join(project, path))) throw new Error(`${path} is not installed: run npm ci`)
    return [{ name: path.replace(/^.*node_modules\//, ''), version, license, path }]
  })
}

/** Files that no program loads: of documentation, tests and types, and sources of what is compiled. */
const unused = [
  /(?:^|\/)(?:tests?|__tests__|docs|examples?|benchmarks?|coverage|\.github)\//,
  /\.(?:md|markdown|map|ts|mts|cts|flow|yml|html|tiktoken|txt)$/i,
  /^better-sqlite3\/(?:deps|src|prebuilds|binding\.gyp)/,
  /^gpt-tokenizer\/(?:src|cjs|data)\//,
  /^gpt-tokenizer\/esm\/.*(?:cl100k|p50k|r50k|o200k_harmony|gpt-?\d|model)/i,
  /^amaro\/lib\//,
  /^@smithy\/[^/]+\/dist-(?:es|types)\//,
  /^@opentelemetry\/[^/]+\/build\/(?:esm|esnext)\//,
  /^@secretlint\/.*\/module\//,
]
const licence = /(?:^|\/)(?:licen[cs]e|copying|notice|third.?party)[^/]*$/i

/** Copies the packages of a production install, as far as programs load them, without SQLite. */
export function writePackages(to: string): void {
  const packages = productionPackages()
  for (const { path } of packages) {
    const from = join(project, path)
    cpSync(from, join(to, path), {
      recursive: true,
      filter: (file) => isUsed(file.slice(join(project, 'node_modules').length + 1)),
    })
  }
}

/**
 * Writes the SQLite of a target into the packages of a program, at the place of one that was compiled there, which better-sqlite3 looks at
 * first: it need not find out what the system is.
 */
export function writeSqlite(to: string, target: string): void {
  const folder = 'node_modules/better-sqlite3'
  const place = join(to, folder, 'build/Release/better_sqlite3.node')
  cpSync(join(project, folder, `prebuilds/${target}.node`), place)
}

/** Checks whether a file, by its path in node_modules, is one that programs load, or a licence. */
export function isUsed(path: string): boolean {
  const inPackage = path.replaceAll('\\', '/')
  return licence.test(inPackage) || !unused.some((pattern) => pattern.test(inPackage))
}
