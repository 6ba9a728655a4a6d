import { withoutKeys } from '../../core/secrets.ts'
import type { Path } from '../read/position.ts'

/**
 * A fault in a file. `line` and `column` count from 1; an `error` keeps the file from being used. `breaks` is the file that cannot be used
 * because of it, where that is another one.
 */
export type Problem = {
  file: string
  line: number
  column: number
  message: string
  severity: 'error' | 'warning'
  breaks?: string
}

/** A problem of a file while the others are in use: the kind of the file, and the consequence. */
export type FileProblem = Problem & {
  kind: 'config' | 'provider' | 'dialect' | 'catalog' | 'plugin' | 'folder'
  effect: string
}

/** A problem as editors and terminals understand it: `file:line:column: message`. */
export function formatProblem({ file, line, column, message, severity }: Problem): string {
  return `${file}:${line}:${column}: ${severity === 'warning' ? 'warning: ' : ''}${withoutKeys(message)}`
}

/** Checks whether a problem has a consequence for what is in use. */
export function isFileProblem(problem: Problem): problem is FileProblem {
  return 'effect' in problem
}

/** Returns a problem with its consequence, on one line. */
export function formatFileProblem(problem: FileProblem): string {
  return `${formatProblem(problem)} (${problem.effect})`
}

/** The reason why a file cannot be read, without its path: the problem names the file already. */
export function readingFailure(error: unknown): string {
  return (error as Error).message.replace(/, \w+ '.*$/s, '')
}

/** Checks whether any of these problems is an error, so that the file cannot be used. */
export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some(({ severity }) => severity === 'error')
}

/** Returns a path in readable form: `endpoints.chat.unsupported[2]`. */
export function named(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (/^\d+$/.test(String(step))) return `${text}[${step}]`
    return text === '' ? String(step) : `${text}.${step}`
  }, '')
}
