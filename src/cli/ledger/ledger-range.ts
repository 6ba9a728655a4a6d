import { dayMs, parseTime } from '../../core/time.ts'
import { type Args, UsageError } from '../args.ts'

/** The times of `--from` and `--to` in Unix milliseconds, the second exclusive; undefined where they are not given. Throws UsageError. */
export function rangeFrom(args: Args): { from: number | undefined; to: number | undefined } {
  const [from, to] = [args.text('from'), args.text('to')]
  const range = { from: timeIn('--from', from, 0), to: timeIn('--to', to, dayMs) }
  if (range.from !== undefined && range.to !== undefined && range.from >= range.to)
    throw new UsageError(`--to ${to} is before --from ${from}`)
  return range
}

function timeIn(option: string, text: string | undefined, dayOffsetMs: number): number | undefined {
  if (text === undefined) return undefined
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const time = parseTime(isDay ? `${text}T00:00:00Z` : text)
  if (time === undefined)
    throw new UsageError(`${option} is '${text}'; write a day as 2026-11-30, or a time as 2026-11-30T12:00:00Z`)
  return isDay ? time + dayOffsetMs : time
}
