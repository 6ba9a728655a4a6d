const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The form of a duration such as `500ms`, `60s`, `10m`, `1h` or `7d`. */
export const durationForm = '^[1-9][0-9]{0,8}(ms|s|m|h|d)$'

/** Returns the milliseconds of a duration; NaN for another text. */
export function duration(text: string): number {
  if (!new RegExp(durationForm).test(text)) return Number.NaN
  const unit = text.replace(/^\d+/, '')
  return Number.parseInt(text, 10) * unitsMs[unit as keyof typeof unitsMs]
}
