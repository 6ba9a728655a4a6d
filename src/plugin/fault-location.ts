import type { Problem } from '../manifest/check/problem.ts'
import type { Place } from '../manifest/read/position.ts'
import { ImportError, pluginFile } from './modules.ts'

/** What went wrong in a plugin, at the place in its files that an error names; else at the beginning of `file`. */
export function problemOf(thrown: unknown, file: string, files: ReadonlyMap<string, string>, what = ''): Problem {
  const blame = (place: Place & { file: string }, message: string): Problem => ({
    file: place.file,
    line: place.line,
    column: place.column,
    message: what + firstLine(message),
    severity: 'error',
  })
  if (thrown instanceof ImportError) {
    const text = files.get(thrown.file) ?? ''
    return blame({ file: thrown.file, ...placeOf(text, importIn(text, thrown.specifier)) }, thrown.message)
  }
  if (!(thrown instanceof Error)) return blame({ file, ...start }, `it threw ${String(thrown)}`)
  return blame(syntaxPlace(thrown) ?? framePlace(thrown) ?? { file, ...start }, thrown.message)
}

/** A problem at what a pattern finds in a text first; else at its beginning. */
export function problemAt(file: string, text: string, pattern: RegExp, message: string): Problem {
  return { file, ...placeOf(text, Math.max(0, text.search(pattern))), message, severity: 'error' }
}

const start: Place = { line: 1, column: 1 }
const longest = 300

function firstLine(message: string): string {
  const line = message.split('\n', 1)[0] ?? ''
  return line.length > longest ? `${line.slice(0, longest)}…` : line
}

/** Where Node stumbled over the text itself: the first line of the stack is the place, and a caret points to the column. */
function syntaxPlace({ stack = '' }: Error): (Place & { file: string }) | undefined {
  const [, url = '', line] = /^(file:\S+):(\d+)\n/.exec(stack) ?? []
  const file = pluginFile(url)
  if (file === undefined) return undefined
  const column = (/^( *)\^+ *$/m.exec(stack)?.[1]?.length ?? 0) + 1
  return { file, line: Number(line), column }
}

/** The innermost frame that is in a file of a plugin. */
function framePlace({ stack = '' }: Error): (Place & { file: string }) | undefined {
  for (const [, url = '', line, column] of stack.matchAll(/(file:[^\s()]+):(\d+):(\d+)/g)) {
    const file = pluginFile(url)
    if (file !== undefined) return { file, line: Number(line), column: Number(column) }
  }
  return undefined
}

function importIn(text: string, specifier: string): number {
  const quoted = ["'", '"', '`'].map((quote) => text.indexOf(quote + specifier + quote)).filter((at) => at >= 0)
  return specifier === '' ? 0 : Math.min(...quoted, text.length)
}

function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}
