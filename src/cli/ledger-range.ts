import { momentOf } from '../management/read.ts'
import type { Words } from './args.ts'
import { WrongUsage } from './store-command.ts'

/** A day in milliseconds. */
export const dayMs = 24 * 60 * 60 * 1_000

/** From one moment up to another, in Unix milliseconds, as `--from` and `--to` say; undefined where they do not. Throws WrongUsage. */
export function rangeIn({ options: { from, to } }: Words): { from: number | undefined; to: number | undefined } {
  const range = { from: momentIn('--from', from, 0), to: momentIn('--to', to, dayMs) }
  if (range.from !== undefined && range.to !== undefined && range.from >= range.to)
    throw new WrongUsage(`--to ${to} is before --from ${from}`)
  return range
}

/** A moment as text. */
export function timeText(at: number): string {
  return new Date(at).toISOString().replace('.000Z', 'Z')
}

function momentIn(option: string, text: string | undefined, ofDayMs: number): number | undefined {
  if (text === undefined) return undefined
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const moment = momentOf(isDay ? `${text}T00:00:00Z` : text)
  if (Number.isNaN(moment))
    throw new WrongUsage(`${option} is '${text}'; write a day as 2026-11-30, or a time as 2026-11-30T12:00:00Z`)
  return isDay ? moment + ofDayMs : moment
}
