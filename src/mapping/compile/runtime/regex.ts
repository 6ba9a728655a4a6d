import { setFlagsFromString } from 'node:v8'
import { Fault } from './fault.ts'

/** A regular expression as a mapping sees it: a function from a text to its first match. */
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
        if (following?.match === '') throw new Fault('D1004', position, { value: pattern.source })
        return following
      },
    }
  }
  return (text, from) => next(String(text), from || 0)
}

/**
 * An expression whose time is bounded. Without repetition the engine's backtracking is bounded by the pattern alone.
 * With repetition V8's breadth-first engine takes it, whose time is linear in the text. What that engine cannot run
 * (look-around, back references, ignored case) backtracks: nested repetition is refused, other repetition only gets
 * texts short enough. Throws S0303 here, and the expression D1015 when it runs.
 */
export function boundedPattern(pattern: RegExp, position?: number): RegExp {
  const { repeats, nested, choices } = repetition(pattern.source)
  if (repeats === 0 && choices < 8) return new RegExp(pattern)
  try {
    setFlagsFromString('--enable-experimental-regexp-engine')
    return new RegExp(pattern.source, `${pattern.flags}l`)
  } catch {
    if (nested || choices > 20) throw new Fault('S0303', position, { value: pattern.source })
    return shortTextsOnly(new RegExp(pattern), repeats)
  }
}

/** Each repetition, and the search for a start, can at worst visit the whole text again. */
function shortTextsOnly(expression: RegExp, repeats: number): RegExp {
  const longest = Math.floor(1e8 ** (1 / (repeats + 1)))
  const exec = expression.exec.bind(expression)
  expression.exec = (text) => {
    if (text.length > longest) throw new Fault('D1015', undefined, { value: expression.source })
    return exec(text)
  }
  return expression
}

/** What a pattern may make an engine try again: parts that repeat, parts that may be left out or be one of several. */
type Repetition = { repeats: number; choices: number; nested: boolean }

/** Counts the repetitions of a pattern; `nested` when a part that repeats holds another or a choice. */
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
