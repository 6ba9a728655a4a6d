import { setFlagsFromString } from 'node:v8'
import { EvaluationError } from './evaluation-error.ts'

/** A regular expression as a value of JSONata: a function from a string to its first match. */
export function matcher(pattern: RegExp, position: number): (text: unknown, from?: number) => unknown {
  const expression = boundedPattern(pattern, position)
  const next = (text: string, from: number): unknown => {
    expression.lastIndex = from
    const found = expression.exec(text)
    if (found === null) return undefined
    const end = expression.lastIndex
    return {
      match: found[0],
      start: found.index,
      end: found.index + found[0].length,
      groups: found.slice(1),
      next: () => {
        if (end >= text.length) return undefined
        const following = next(text, end) as { match: string } | undefined
        if (following?.match === '') throw new EvaluationError('D1004', position, { value: pattern.source })
        return following
      },
    }
  }
  return (text, from) => next(String(text), from || 0)
}

/**
 * A regular expression with bounded running time. Without repetition, backtracking is bounded by the pattern alone.
 * With repetition, V8's linear-time engine runs it. Patterns that this engine does not support (look-around, back
 * references, ignored case) backtrack: with nested repetition they are refused, otherwise they only accept short
 * strings. Throws S0303 here, and D1015 when the expression runs.
 */
export function boundedPattern(pattern: RegExp, position?: number): RegExp {
  const bounded = bound(pattern)
  if (!bounded) throw new EvaluationError('S0303', position, { value: pattern.source })
  const { expression, longest } = bounded
  return longest === Number.POSITIVE_INFINITY ? expression : shortStringsOnly(expression, longest)
}

/** An expression, and the longest string that it can search in bounded time; undefined when there is no such length. */
export function bound(pattern: RegExp): { expression: RegExp; longest: number } | undefined {
  const { repeats, nested, choices } = repetition(pattern.source)
  if (repeats === 0 && choices < 8) return { expression: new RegExp(pattern), longest: Number.POSITIVE_INFINITY }
  try {
    setFlagsFromString('--enable-experimental-regexp-engine')
    return { expression: new RegExp(pattern.source, `${pattern.flags}l`), longest: Number.POSITIVE_INFINITY }
  } catch {
    if (nested || choices > 20) return undefined
    // In the worst case each repetition, and the search for a start, visits the whole string again.
    return { expression: new RegExp(pattern), longest: Math.floor(1e8 ** (1 / (repeats + 1))) }
  }
}

function shortStringsOnly(expression: RegExp, longest: number): RegExp {
  const exec = expression.exec.bind(expression)
  expression.exec = (text) => {
    if (text.length > longest) throw new EvaluationError('D1015', undefined, { value: expression.source })
    return exec(text)
  }
  return expression
}

/** Causes of backtracking: repeated parts, and optional or alternative parts. */
type Repetition = { repeats: number; choices: number; nested: boolean }

/** Analyzes a pattern; `nested` if a repeated part contains a repetition or a choice. */
function repetition(source: string): Repetition {
  const bare = source
    .replace(/\\(?:[1-9]|k<)/g, '(*)')
    .replace(/\\./g, 'x')
    .replace(/\[[^\]]*\]/g, 'x')
    .replace(/\(\?(?:[:=!]|<[=!]|<\w+>)/g, '(')
    .replace(/(?<=[*+?}])\?/g, '')
  const found: Repetition = { repeats: 0, choices: 0, nested: false }
  const groups: boolean[] = [false]
  for (let at = 0; at < bare.length; at++) {
    const sign = bare[at]
    if (sign === '(') groups.push(false)
    else if (sign === ')') {
      const inside = groups.pop() ?? false
      if (inside && quantifies(bare, at + 1)) found.nested = true
      if (inside) groups.push(groups.pop() !== undefined)
    } else if (sign === '?' || sign === '|' || quantifies(bare, at)) {
      if (sign === '?' || sign === '|') found.choices++
      else found.repeats++
      groups.push(groups.pop() !== undefined)
    }
  }
  return found
}

function quantifies(bare: string, at: number): boolean {
  return /^(?:[*+]|\{\d+(?:,\d*)?\})/.test(bare.slice(at, at + 20))
}
