import { dayMs, parseTime } from '../core/time.ts'
import type { Words } from './args.ts'
import { WrongUsage } from './store-command.ts'

/** From one moment up to another, in Unix milliseconds, as `--from` and `--to` say; undefined where they do not. Throws WrongUsage. */
export function rangeIn({ options: { from, to } }: Words): { from: number | undefined; to: number | undefined } {
  const range = { from: timeIn('--from', from, 0), to: timeIn('--to', to, dayMs) }
  if (range.from !== undefined && range.to !== undefined && range.from >= range.to)
    throw new WrongUsage(`--to ${to} is before --from ${from}`)
  return range
}

function timeIn(option: string, text: string | undefined, dayOffsetMs: number): number | undefined {
  if (text === undefined) return undefined
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const time = parseTime(isDay ? `${text}T00:00:00Z` : text)
  if (time === undefined)
    throw new WrongUsage(`${option} is '${text}'; write a day as 2026-11-30, or a time as 2026-11-30T12:00:00Z`)
  return isDay ? time + dayOffsetMs : time
}
