import type { Json } from '../core/json.ts'

/** The width when that of the terminal is unknown. Characters. */
const usualWidth = 120

/** Two values as JSON, the left one beside the right one; long lines are broken. */
export function sideBySide(left: Json, right: Json, width = usualWidth): string {
  const half = Math.max(20, Math.floor((width - 3) / 2))
  const [one, other] = [left, right].map((value) => linesOf(value, half)) as [string[], string[]]
  const count = Math.max(one.length, other.length)
  const rows = Array.from({ length: count }, (_, row) =>
    `${(one[row] ?? '').padEnd(half)} │ ${other[row] ?? ''}`.trimEnd(),
  )
  return `${rows.join('\n')}\n`
}

function linesOf(value: Json, width: number): string[] {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return text.split('\n').flatMap((line) => line.match(new RegExp(`.{1,${width}}`, 'gu')) ?? [''])
}
