import { relative } from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { formatProblem, type Problem } from '../manifest/problem.ts'

/** Where a command prints. */
export type Out = { stdout: (text: string) => void; stderr: (text: string) => void }

/** A command's words: its options by name, and what stands without a dash. */
export type Words = {
  options: { readonly [name: string]: string | undefined }
  flags: ReadonlySet<string>
  positionals: string[]
}

/** How many words without a dash a command takes, its options with a value, and those without. */
export type Form = { positionals: number; options: readonly string[]; flags: readonly string[] }

/** Parses a command's words. Help and wrong usage are answered here: then the result is the exit code, 0 or 2. */
export function readWords(args: string[], form: Form, help: string, out: Out): Words | 0 | 2 {
  if (args.includes('--help') || args.includes('-h')) {
    out.stdout(help)
    return 0
  }
  const options: NonNullable<ParseArgsConfig['options']> = {
    ...Object.fromEntries(form.options.map((name) => [name, { type: 'string' }] as const)),
    ...Object.fromEntries(form.flags.map((name) => [name, { type: 'boolean' }] as const)),
  }
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    const surplus = positionals[form.positionals]
    if (surplus !== undefined) return wrongUsage(`'${surplus}' is one word too many`, help, out)
    const texts = Object.entries(values).filter(([, value]) => typeof value === 'string')
    return {
      options: Object.fromEntries(texts) as Words['options'],
      flags: new Set(form.flags.filter((name) => values[name] === true)),
      positionals,
    }
  } catch (error) {
    return wrongUsage((error as Error).message, help, out)
  }
}

/** Says what is wrong with the words, and what would be right. Returns the exit code. */
export function wrongUsage(message: string, help: string, out: Out): 2 {
  out.stderr(`${message}\n\n${help}`)
  return 2
}

/** A problem as one line; files below the working folder are named as seen from there. */
export function problemLine(problem: Problem): string {
  return `${formatProblem({ ...problem, file: seenFrom(problem.file) })}\n`
}

/** A file as seen from the working folder when it lies below it. */
export function seenFrom(file: string): string {
  const seen = relative('', file)
  return seen.startsWith('..') || seen === '' ? file : seen
}

/** Rows of text in columns, the first row being the head. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return `${rows.map((row) => line(row).trimEnd()).join('\n')}\n`
}
