import type { Block } from './blocks.ts'

/**
 * Returns the blocks at whose ends it pays to cache, in their order: the last one, which the next call of the conversation finds again, and
 * the largest before it, so that calls which continue differently find it. Between two marks there are at least `least` characters.
 */
export function chosenBlocks(blocks: readonly Block[], { least, most }: { least: number; most: number }): Block[] {
  let start = 0
  const ends = blocks.map((block) => {
    start += block.length
    return { block, end: start }
  })
  const chosen: typeof ends = []
  const last = ends.at(-1)
  const bySize = ends.slice(0, -1).sort((one, other) => other.block.length - one.block.length)
  for (const one of last ? [last, ...bySize] : []) {
    const isApart = one.end >= least && chosen.every(({ end }) => Math.abs(end - one.end) >= least)
    if (isApart && chosen.length < most) chosen.push(one)
  }
  return chosen.sort((one, other) => one.end - other.end).map(({ block }) => block)
}
