import type { Frame } from './rooms.ts'

/** A thread and what a call takes of it, in microseconds. */
export type DrawnThread = { name: string; frames: Frame; us: number }

const [width, rowHeight, least] = [1_200, 18, 0.3]
const headHeight = 30

/** A flame graph as SVG: each thread beside the others, as wide as what it takes; above a room those that it calls. */
export function flameGraph(title: string, threads: readonly DrawnThread[]): string {
  const all = threads.reduce((sum, { us }) => sum + us, 0)
  const depth = Math.max(...threads.map(({ frames }) => depthOf(frames)))
  const height = headHeight + depth * rowHeight
  const boxes: string[] = []
  let left = 0
  for (const { name, frames, us } of threads) {
    const pixels = (us / all) * width
    const perSample = us / frames.total
    const draw = ({ room, total, calls }: Frame, at: number, level: number) => {
      const wide = (total * perSample * width) / all
      if (wide < least) return
      boxes.push(box(level === 0 ? name : room, total * perSample, { at, wide, top: height - (level + 1) * rowHeight }))
      let next = at
      for (const called of [...calls.values()].sort((one, other) => other.total - one.total)) {
        draw(called, next, level + 1)
        next += (called.total * perSample * width) / all
      }
    }
    draw(frames, left, 0)
    left += pixels
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    `<text x="4" y="18" font-size="14">${escaped(title)}: ${all.toFixed(0)} in all</text>`,
    ...boxes,
    '</svg>\n',
  ].join('\n')
}

function depthOf({ calls }: Frame): number {
  return 1 + Math.max(0, ...[...calls.values()].map(depthOf))
}

function box(name: string, us: number, { at, wide, top }: { at: number; wide: number; top: number }): string {
  const label = `${name} ${us.toFixed(1)}`
  const shown = label.slice(0, Math.floor(wide / 6))
  const text = shown.length < 3 ? '' : `<text x="${(at + 2).toFixed(1)}" y="${top + 13}">${escaped(shown)}</text>`
  const place = `x="${at.toFixed(1)}" y="${top}" width="${wide.toFixed(1)}" height="${rowHeight - 1}"`
  return `<g><title>${escaped(label)} µs</title><rect ${place} fill="hsl(${hueOf(name)},70%,78%)"/>${text}</g>`
}

/** A room has the same colour wherever it is. */
function hueOf(name: string): number {
  let hue = 0
  for (const character of name) hue = (hue * 31 + (character.codePointAt(0) ?? 0)) % 360
  return hue
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
