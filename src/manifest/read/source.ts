import { createRequire } from 'node:module'
import type { Problem } from '../check/problem.ts'
import { type FoundOldName, oldNameMessage, withNewNames } from '../renamed-keys.ts'
import type { Parsed, Path, Place } from './position.ts'
import { isTooDeep, parseYaml, tooDeep } from './read-yaml.ts'

/** A parsed YAML file: its value, and the positions of everything in it. */
export type Source = {
  file: string
  text: string
  /** The place of the value in the file; empty for a whole file. */
  path: Path
  /** Plain JSON, with the new names of keys that were renamed; undefined when the text is not YAML. */
  value: unknown
  /** The syntax errors of the text, and keys that have both their old and their new name. */
  problems: Problem[]
  /** Keys with an old name. */
  warnings: readonly Problem[]
  /**
   * Definitions of its dialects that the mappings of this very text saw when it passed all checks of its own: its schema, its mappings.
   * They need not run again while that is the same. Undefined when they did not pass.
   */
  sound: string | undefined
  /** The position of a member's value or name; of its closest existing parent when it does not exist. */
  at(path: Path, what?: 'value' | 'name'): Place
  /** The position of a character of a string, however the YAML writes that string. */
  inText(path: Path, offset: number): Place
  problem(path: Path, message: string, what?: 'value' | 'name'): Problem
}

/** The value of a text that is sound, and what its mappings see of its dialects. */
export type KnownValue = { value: unknown; seen: string }

const require = createRequire(import.meta.url)

/** Loads the package that parses positions, when something is wrong with a file, or js-yaml cannot read it. */
function positions(): typeof import('./position.ts') {
  return require('./position.ts')
}

/** Parses a YAML text, unless its value is `known` to be sound. Never throws: problems are part of the result. */
export function readSource(file: string, text: string, known?: KnownValue): Source {
  let parsed: Parsed | undefined
  // Parsed on demand: positions are needed only for problems.
  const nodes = () => {
    parsed ??= positions().parseNodes(text)
    return parsed
  }
  const read = known ? { value: known.value, problems: [] } : readValue(file, text)
  // What is known to be sound has no old names.
  const { value, found } = known ? { value: read.value, found: [] } : withNewNames(read.value)
  const at: Source['at'] = (path, what = 'value') => positions().placeOf(nodes(), path, what)
  const asWritten: Source = {
    file,
    text,
    path: [],
    value,
    problems: read.problems,
    warnings: [],
    sound: known?.seen,
    at,
    inText: (path, offset) => positions().placeInText(nodes(), text, path, offset),
    problem: (path, message, what) => ({ file, ...at(path, what), message, severity: 'error' }),
  }
  return found.length === 0 ? asWritten : withOldNames(asWritten, found)
}

/** Returns a source whose value has new names of keys for those in its text, with warnings about the old ones. */
export function withOldNames(source: Source, found: readonly FoundOldName[]): Source {
  const about = found.map((one) => ({
    ...source.problem([...one.in, one.from], oldNameMessage(one), 'name'),
    severity: one.isDouble ? ('error' as const) : ('warning' as const),
  }))
  const written = writtenPaths(found)
  return {
    ...source,
    problems: [...source.problems, ...about.filter(({ severity }) => severity === 'error')],
    warnings: [...source.warnings, ...about.filter(({ severity }) => severity === 'warning')],
    at: (path, what) => source.at(written(path), what),
    inText: (path, offset) => source.inText(written(path), offset),
    problem: (path, message, what) => source.problem(written(path), message, what),
  }
}

/** Returns a function from a path of the value to the path in the text, where keys may have their old names. */
function writtenPaths(found: readonly FoundOldName[]): (path: Path) => Path {
  const key = (path: Path) => JSON.stringify(path.map(String))
  const oldNames = new Map(found.flatMap((one) => (one.isDouble ? [] : [[key([...one.in, one.to]), one.from]])))
  return (path) => path.map((step, index) => oldNames.get(key(path.slice(0, index + 1))) ?? step)
}

/** A member of a file as a source of its own; its problems have positions in the whole file. */
export function memberOf(source: Source, path: Path): Source {
  const value = path.reduce<unknown>(
    (inner, step) => (inner as { [step: string]: unknown } | undefined)?.[step],
    source.value,
  )
  const whole = (inner: Path): Path => [...path, ...inner]
  return {
    ...source,
    path: whole([]),
    value,
    at: (inner, what) => source.at(whole(inner), what),
    inText: (inner, offset) => source.inText(whole(inner), offset),
    problem: (inner, message, what) => source.problem(whole(inner), message, what),
  }
}

/** Returns the source of a file that has no text that could be used. */
export function unusableSource(file: string, message: string): Source {
  const source = readSource(file, '')
  return { ...source, problems: [{ file, line: 1, column: 1, message, severity: 'error' }] }
}

function readValue(file: string, text: string): Pick<Source, 'value' | 'problems'> {
  try {
    return parsedValue(file, text)
  } catch (error) {
    // Aliases without an anchor, or more of them than a file written by hand would have.
    return refused(file, `this YAML cannot be used: ${unquoted((error as Error).message)}`)
  }
}

function parsedValue(file: string, text: string): Pick<Source, 'value' | 'problems'> {
  const read = parseYaml(text)
  if (read && 'message' in read) return refused(file, `not YAML: ${read.message}`, read.place)
  if (read) return { value: read.value, problems: [] }
  const parsed = positions().parseNodes(text)
  const problems = syntaxProblems(file, text, parsed)
  if (problems.length > 0) return { value: undefined, problems }
  const value = parsed.document.toJS()
  return isTooDeep(value) ? refused(file, `not YAML: ${tooDeep}`) : { value, problems: [] }
}

function refused(file: string, message: string, place: Place = { line: 1, column: 1 }) {
  return { value: undefined, problems: [{ file, ...place, message, severity: 'error' as const }] }
}

/** All duplicate keys, and the first other error: further ones are mostly its consequences. */
function syntaxProblems(file: string, text: string, { document, lines }: Parsed): Problem[] {
  const doubled = document.errors.filter(({ code }) => code === 'DUPLICATE_KEY')
  const other = document.errors.find(({ code }) => code !== 'DUPLICATE_KEY')
  return (other ? [other, ...doubled] : doubled).map((error) => {
    const [offset] = error.pos
    const { line, col } = lines.linePos(offset)
    const message =
      error.code === 'DUPLICATE_KEY'
        ? doubledName(text, offset)
        : `not YAML: ${unquoted(error.message)}${hint(text, offset)}`
    return { file, line, column: col, message, severity: 'error' }
  })
}

/** Removes the quotation of the file from the end of a parser's message: it may be a secret, or from a file that is not ours. */
function unquoted(message: string): string {
  return message.replace(/(?:(?<=\w):| escape sequence| plain scalar| directive)\s.*$/s, '')
}

function doubledName(text: string, offset: number): string {
  const name = /^[^\s:]+/.exec(text.slice(offset, offset + 200))?.[0] ?? ''
  return `\`${name}\` appears twice here; remove one of them`
}

function hint(text: string, offset: number): string {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1
  const line = text.slice(lineStart, text.indexOf('\n', offset) >>> 0)
  const bare = /[{[,].*(?<!["'])\$\{\w+/.exec(line)?.[0].match(/\$\{\w+$/)?.[0]
  return bare === undefined ? '' : `; inside { } or [ ] write "${bare}}" with quotes`
}
