import { isObject } from '../../core/json.ts'
import type { Path } from '../read/position.ts'

/** The first place where a value is not what was expected, and what is wrong there. */
export type Difference = { path: Path; message: string }

/** Compares JSON values; the order of members does not matter, missing and undefined are the same. */
export function difference(expected: unknown, actual: unknown, path: Path = []): Difference | undefined {
  if (isObject(expected) && isObject(actual)) {
    const extra = Object.keys(actual).find((name) => actual[name] !== undefined && expected[name] === undefined)
    return (
      membersDifference(expected, actual, path, difference) ??
      (extra === undefined ? undefined : { path, message: `unexpected \`${extra}\`: ${shown(actual[extra])}` })
    )
  }
  return otherDifference(expected, actual, path, difference)
}

/** Compares only the members that are expected, at any depth; lists must be as long, and `usage` is compared whole. */
export function partialDifference(expected: unknown, actual: unknown, path: Path = []): Difference | undefined {
  if (path.at(-1) === 'usage') return difference(expected, actual, path)
  if (isObject(expected) && isObject(actual)) return membersDifference(expected, actual, path, partialDifference)
  return otherDifference(expected, actual, path, partialDifference)
}

type Compare = (expected: unknown, actual: unknown, path: Path) => Difference | undefined

function membersDifference(expected: object, actual: object, path: Path, compare: Compare): Difference | undefined {
  for (const [name, value] of Object.entries(expected)) {
    if (value === undefined) continue
    const found = compare(value, (actual as { [name: string]: unknown })[name], [...path, name])
    if (found) return found
  }
  return undefined
}

function otherDifference(expected: unknown, actual: unknown, path: Path, compare: Compare): Difference | undefined {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    for (const [index, item] of expected.entries()) {
      const found = index < actual.length ? compare(item, actual[index], [...path, index]) : undefined
      if (found) return found
    }
    if (expected.length === actual.length) return undefined
    return { path, message: `expected ${expected.length} items, got ${actual.length}: ${shown(actual)}` }
  }
  if (Object.is(expected, actual)) return undefined
  return { path, message: `expected ${shown(expected)}, got ${shown(actual)}` }
}

/** Maximum length of a value in a message: a longer one only hides what matters. Characters. */
const excerpt = 300

function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = JSON.stringify(value)
  return text.length > excerpt ? `${text.slice(0, excerpt)}…` : text
}
