/** The lines around a change that are shown with it. */
const context = 3

/** Writes a unified diff of two texts that have the same lines but for some that are changed: `patch -p1` and `git apply` take it. */
export function lineDifference(path: string, before: string, after: string): string {
  const [old, changed] = [before.split('\n'), after.split('\n')]
  const numbers = old.flatMap((line, index) => (line === changed[index] ? [] : [index]))
  if (numbers.length === 0) return ''
  return `--- a/${path}\n+++ b/${path}\n${hunksOf(numbers, old.length)
    .map((hunk) => written(hunk, old, changed))
    .join('')}`
}

type Hunk = { from: number; to: number }

/** Changes whose surroundings touch are one hunk. */
function hunksOf(numbers: readonly number[], count: number): Hunk[] {
  const hunks: Hunk[] = []
  for (const number of numbers) {
    const last = hunks.at(-1)
    const [from, to] = [Math.max(0, number - context), Math.min(count, number + context + 1)]
    if (last && from <= last.to) last.to = to
    else hunks.push({ from, to })
  }
  return hunks
}

function written({ from, to }: Hunk, old: readonly string[], changed: readonly string[]): string {
  const lines = old.slice(from, to).flatMap((line, index) => {
    const other = changed[from + index]
    return line === other ? [` ${line}`] : [`-${line}`, `+${other}`]
  })
  const size = to - from
  // The text after the last line break is not a line.
  if (lines.at(-1) === ' ' && to === old.length) {
    lines.pop()
    return `@@ -${from + 1},${size - 1} +${from + 1},${size - 1} @@\n${lines.join('\n')}\n`
  }
  return `@@ -${from + 1},${size} +${from + 1},${size} @@\n${lines.join('\n')}\n`
}
