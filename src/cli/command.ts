import { relative } from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { printableInLine } from '../core/printable.ts'
import { type FileProblem, formatFileProblem, formatProblem, type Problem } from '../manifest/check/problem.ts'

/** The options that a command takes, and how many positional arguments at most (none unless given). */
export type Syntax = { options: NonNullable<ParseArgsConfig['options']>; positionals?: number }

/** Parsed arguments: `text` is the value of an option, `texts` those of a repeatable one, `flag` whether one is given. */
export type Args = {
  positionals: readonly string[]
  text(name: string): string | undefined
  texts(name: string): readonly string[]
  flag(name: string): boolean
}

/** The arguments are wrong: exit code 2. */
export class UsageError extends Error {}

/** The arguments are valid, but the command failed: exit code 1. */
export class CommandError extends Error {}

/**
 * Runs a command: prints its help when requested, and reports UsageError and CommandError on standard error.
 * Returns the exit code.
 */
export async function runCommand(
  args: readonly string[],
  { help, out }: { help: string; out: Out },
  run: () => Promise<number>,
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    out.stdout(help)
    return 0
  }
  try {
    return await run()
  } catch (thrown) {
    if (!(thrown instanceof UsageError || thrown instanceof CommandError)) throw thrown
    const isUsage = thrown instanceof UsageError
    out.stderr(isUsage ? `${thrown.message}\n\n${help}` : `${thrown.message}\n`)
    return isUsage ? 2 : 1
  }
}

/** Parses the arguments of a command. Throws UsageError. */
export function parseArguments(args: string[], { options, positionals: most = 0 }: Syntax): Args {
  const { values, positionals } = parsed(args, options)
  const surplus = positionals[most]
  if (surplus !== undefined) throw new UsageError(`unexpected argument '${surplus}'`)
  return {
    positionals,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    texts: (name) => [values[name] ?? []].flat().filter((value) => typeof value === 'string'),
    flag: (name) => values[name] === true,
  }
}

/** Returns the action that the first argument of a command names. Throws UsageError. */
export function actionNamed<Action>(actions: { readonly [name: string]: Action }, name: string | undefined): Action {
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined
  if (action) return action
  const known = Object.keys(actions).join(', ')
  throw new UsageError(name ? `unknown action '${name}'; actions: ${known}` : `name an action: ${known}`)
}

function parsed(args: string[], options: Syntax['options']) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (thrown) {
    if (thrown instanceof Error && `${(thrown as NodeJS.ErrnoException).code}`.startsWith('ERR_PARSE_ARGS'))
      throw new UsageError(thrown.message)
    throw thrown
  }
}

/** Output of a command. */
export type Out = { stdout: (text: string) => void; stderr: (text: string) => void }

/** Returns a problem as one line; files below the working directory are named relative to it. */
export function problemLine(problem: Problem): string {
  return `${formatProblem({ ...problem, file: relativePath(problem.file) })}\n`
}

/** Returns a problem of a file that is not in use as one line, with the consequence. */
export function fileProblemLine(problem: FileProblem): string {
  return `${formatFileProblem({ ...problem, file: relativePath(problem.file) })}\n`
}

/** Returns a path relative to the working directory when it lies below it, else as it is. */
export function relativePath(file: string): string {
  const path = relative('', file)
  return path.startsWith('..') || path === '' ? file : path
}

/** Writes rows of cells in aligned columns; the first row is the header. */
export function table(unsafe: readonly (readonly string[])[]): string {
  const rows = unsafe.map((row) => row.map(printableInLine))
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => line(row).trimEnd()).join('\n')
}

/** Returns indented JSON with a line break at its end. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
