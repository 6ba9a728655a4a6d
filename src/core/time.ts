export const minuteMs = 60_000

export const hourMs = 60 * minuteMs

export const dayMs = 24 * hourMs

/** Parses an RFC 3339 time to Unix milliseconds; undefined for any other text, or when there is no such day or hour. */
export function parseTime(text: string): number | undefined {
  const [, date, clock, zone] =
    /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$/.exec(text) ?? []
  if (date === undefined || zone === undefined) return undefined
  // Date.parse takes the 30th of February for a day of March.
  const day = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(day) || !new Date(day).toISOString().startsWith(date)) return undefined
  const at = Date.parse(`${date}T${clock}${zone.toUpperCase()}`)
  return Number.isNaN(at) ? undefined : at
}

/** Unix milliseconds as RFC 3339, without fractions of a second where they are zero. */
export function formatTime(at: number): string {
  return new Date(at).toISOString().replace('.000Z', 'Z')
}

/** The beginning of the month (UTC) that a time is in, or of one that many months later. */
export function monthStart(at: number, later = 0): number {
  const date = new Date(at)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later)
}

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

const form = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/

/** Parses a duration such as `500ms`, `5s`, `10m` or `1.5h` to milliseconds; undefined for any other text. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = form.exec(text) ?? []
  return count === undefined ? undefined : Math.round(Number(count) * unitsMs[unit as keyof typeof unitsMs])
}

/** Writes a duration in the largest unit that has no fraction: `90s`, `2m`. */
export function durationText(ms: number): string {
  const units = Object.entries(unitsMs).reverse()
  const [unit, size] = units.find(([, size]) => ms % size === 0 && ms >= size) ?? ['ms', 1]
  return `${ms / size}${unit}`
}

/** The longest time that a call, or a part of it, may be given. */
export const maxMs = 24 * unitsMs.h
