import { relative } from 'node:path'
import { formatProblem, type Problem } from '../manifest/check/problem.ts'

/** Where a command prints. */
export type Out = { stdout: (text: string) => void; stderr: (text: string) => void }

/** A problem as one line; files below the working directory are named relative to it. */
export function problemLine(problem: Problem): string {
  return `${formatProblem({ ...problem, file: relativePath(problem.file) })}\n`
}

/** A path relative to the working directory when it lies below it, else as it is. */
export function relativePath(file: string): string {
  const path = relative('', file)
  return path.startsWith('..') || path === '' ? file : path
}

/** Rows of cells in aligned columns; the first row is the header. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => line(row).trimEnd()).join('\n')
}

/** Indented JSON with a line break at its end. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
