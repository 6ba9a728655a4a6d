import { dayMs, parseTime } from '../../core/time.ts'
import type { Snapshot } from '../../snapshot/snapshot.ts'
import type { Store } from '../../store/open.ts'
import { type Args, type Syntax, UsageError } from '../command.ts'

/** The database and the files of the configuration. */
export type LedgerSource = { store: Store; snapshot: Snapshot }

/** The result of an action; unless it is `ok` the exit code is 1. */
export type Finding = { json: object; text: string; ok: boolean }

/** An action of `ledger`. `prepare` checks the arguments before anything is opened. Throws UsageError. */
export type LedgerAction =
  | (Syntax & { withoutFiles?: false; prepare(args: Args): Find<LedgerSource> })
  | (Syntax & OnDatabase)

/** An action that needs the database alone: it works with files that have mistakes. */
type OnDatabase = { withoutFiles: true; prepare(args: Args): Find<Pick<LedgerSource, 'store'>> }

type Find<Source> = (source: Source) => Finding | Promise<Finding>

/**
 * Returns the times of `--from` and `--to` in Unix milliseconds, the second exclusive; undefined where they are not given. Throws
 * UsageError.
 */
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
