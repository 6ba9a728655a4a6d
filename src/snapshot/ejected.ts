import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Problem } from '../manifest/check/problem.ts'
import type { Source } from '../manifest/read/source.ts'
import { programFolder } from './folders.ts'

/** First line of a copy of a shipped file: the version that it comes from, and the digest of what was copied. */
const mark = /^# Ejected from inference-router (\S+): (\S+) (\w+)\n/

/** Returns the copy of a shipped file that an operator may change. `path` is the file's in the program. */
export function ejectedText(path: string, text: string, version: string): string {
  return `# Ejected from inference-router ${version}: ${path} ${digestOf(text)}\n${text}`
}

/** Finds copies of shipped files that are older than the files of this version. */
export function ejectedProblems(sources: Iterable<Source>): Problem[] {
  return [...sources].flatMap((source) => {
    const [, version, path, digest] = mark.exec(source.text) ?? []
    if (version === undefined || path === undefined || digest === undefined) return []
    const message = ageOf({ version, path, digest })
    return message === undefined
      ? []
      : [{ file: source.file, line: 1, column: 1, message, severity: 'warning' as const }]
  })
}

function ageOf({ version, path, digest }: { version: string; path: string; digest: string }): string | undefined {
  const file = join(programFolder, path)
  if (!isShippedPath(path) || !existsSync(file)) return `${path} is no longer shipped: this copy is of ${version}`
  const now = digestOf(readFileSync(file, 'utf8'))
  if (now === digest) return undefined
  return `older than the shipped ${path}, which has changed since ${version}: carry the changes over and write ${now} instead of ${digest} here, or replace this file with \`inference-router eject ${path} --force\``
}

/** Checks whether a path in the program is one of a manifest, a dialect or a catalog file. */
export function isShippedPath(path: string): boolean {
  return /^(?:providers(?:\/dialects)?|catalog)\/[\w.-]+\.yaml$/.test(path)
}

/** Digest of a file's text: enough of it to distinguish two versions. */
function digestOf(text: string): string {
  return hash('sha256', text).slice(0, 16)
}
