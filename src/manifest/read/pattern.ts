import { bound } from '../../mapping/compile/runtime/regex.ts'
import type { Problem } from '../check/problem.ts'
import type { Pattern } from '../types.ts'
import type { Path } from './position.ts'
import type { Source } from './source.ts'

/** Use of a pattern: on texts of at most `longest` characters (default: of any length), on whole texts, case-insensitively. */
type Use = { maxLength?: number; whole?: boolean; anyCase?: boolean }

/**
 * Reads a regular expression of a file. Returns undefined, with a problem, when it is not one, or when its time is not bounded: clients'
 * texts are searched with it.
 */
export function readPattern(
  { source, problems }: { source: Source; problems: Problem[] },
  path: Path,
  pattern: string,
  { maxLength = Number.POSITIVE_INFINITY, whole = false, anyCase = false }: Use = {},
): Pattern | undefined {
  try {
    const letters = anyCase && new RegExp(pattern) ? ofAnyCase(pattern) : pattern
    const bounded = bound(new RegExp(whole ? `^(?:${letters})$` : letters))
    if (bounded && bounded.longest >= maxLength) return bounded.expression
    problems.push(source.problem(path, unbounded))
  } catch (error) {
    problems.push(source.problem(path, `not a regular expression: ${(error as Error).message}`))
  }
  return undefined
}

const unbounded =
  'a regular expression that can run for very long: use repetition without look-around, back references and large counts'

/** Finds letters of ASCII in either case: V8's engine with linear time cannot ignore case, so each becomes a class of both. */
function ofAnyCase(pattern: string): string {
  let inClass = false
  return pattern.replace(tokens, (token) => {
    if (token === '[' || token === ']') inClass = token === '['
    const text = /^\\[ux]/.test(token) ? String.fromCharCode(Number.parseInt(token.slice(2), 16)) : token
    if (!/^[a-z](?:-[a-z])?$/i.test(text)) return token
    return inClass ? bothCases(text) : text.replace(/[a-z]/gi, (letter) => `[${bothCases(letter)}]`)
  })
}

function bothCases(text: string): string {
  return text.toLowerCase() + text.toUpperCase()
}

/** Escapes and the heads of groups, whose letters are not literal text; brackets; ranges and single letters. */
const tokens = /\\(?:u[\da-f]{4}|x[\da-f]{2}|c[a-z]|k<[^>]*>|.)|\(\?(?:<\w+>|[a-z-]*:)|[[\]]|[a-z]-[a-z]|[a-z]/gis
