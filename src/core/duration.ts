const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const form = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/

/** Milliseconds of a duration such as `500ms`, `5s`, `10m` or `1.5h`; undefined when the text is none. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = form.exec(text) ?? []
  return count === undefined ? undefined : Math.round(Number(count) * unitsMs[unit as keyof typeof unitsMs])
}

/** The longest time that a call, or a part of it, may be given. */
export const longestMs = 24 * unitsMs.h
