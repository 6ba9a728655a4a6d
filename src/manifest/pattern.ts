import type { Path } from './position.ts'
import type { Problem } from './problem.ts'
import type { Source } from './source.ts'

/** A regular expression of a file; undefined, with a problem, when it is none. */
export function readPattern(
  { source, problems }: { source: Source; problems: Problem[] },
  path: Path,
  pattern: string,
): RegExp | undefined {
  try {
    return new RegExp(pattern)
  } catch (error) {
    problems.push(source.problem(path, `not a regular expression: ${(error as Error).message}`))
    return undefined
  }
}
