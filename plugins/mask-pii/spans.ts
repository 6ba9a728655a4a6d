/** Range of a text and the kind of value in it, in UTF-16 code units. */
export type Span = { kind: string; start: number; end: number }

/** Returns the spans that overlap none before them, in the order of the text. */
export function withoutOverlaps(spans: readonly Span[]): Span[] {
  const kept: Span[] = []
  let rank = 0
  const ranked = spans.map((span) => ({ ...span, rank: rank++ }))
  const taken: typeof ranked = []
  for (const span of ranked.sort((one, other) => one.start - other.start || one.rank - other.rank)) {
    const last = taken.at(-1)
    if (!last || span.start >= last.end) taken.push(span)
    else if (span.rank < last.rank) taken[taken.length - 1] = span
  }
  for (const { kind, start, end } of taken) kept.push({ kind, start, end })
  return kept
}
