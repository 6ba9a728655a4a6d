import { dayMs, hourMs, minuteMs, parseTime } from '../time.ts'
import type { ModelEntry, PriceChange, WeekDay } from './model.ts'

/** A period of time in Unix milliseconds: `from` is inclusive, `until` exclusive. */
export type Period = { from: number; until: number }

/**
 * Returns the entry with the prices at a moment (Unix milliseconds): those of the last price change in force then, or its own. Where the
 * prices are the same it is the same object, so that values derived from it can be cached by it.
 */
export function entryAt(entry: ModelEntry, at: number): ModelEntry {
  return entry.price_changes ? inForceAt(entry, at).entry : entry
}

/** The period around a moment in which the prices of all these models do not change. */
export function pricePeriod(entries: readonly ModelEntry[], at: number): Period {
  return common(entries.filter(({ price_changes }) => price_changes).map((entry) => inForceAt(entry, at)))
}

/** The begin and end of hours such as `09:00-12:00`, in milliseconds of the day; undefined for other texts. */
export function hoursOf(text: string): { begin: number; end: number } | undefined {
  const [begin, end, ...more] = text.split('-').map(clockOf)
  if (begin === undefined || end === undefined || more.length > 0) return undefined
  return begin < end ? { begin, end } : undefined
}

const weekMs = 7 * dayMs
/** The first Monday after 1970-01-01, a Thursday. */
const firstMonday = 4 * dayMs
const weekDays: readonly WeekDay[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const always: Period = { from: -Infinity, until: Infinity }

/** The times of one change; windows are in milliseconds since Monday 0:00 in the time zone of `offset`. */
type Times = Period & { weekly?: { offset: number; windows: readonly { begin: number; end: number }[] } }

/** The entries by the change in force, starting with the one without a change; `last` caches the latest result. */
type Schedule = { times: readonly Times[]; entries: readonly ModelEntry[]; last?: Period & { entry: ModelEntry } }

/** Entries never change, since a reload makes new ones: each is read once. */
const schedules = new WeakMap<ModelEntry, Schedule>()

function inForceAt(entry: ModelEntry, at: number): Period & { entry: ModelEntry } {
  let schedule = schedules.get(entry)
  if (!schedule) {
    schedule = readSchedule(entry)
    schedules.set(entry, schedule)
  }
  const { last, times, entries } = schedule
  if (last && last.from <= at && at < last.until) return last
  const current = times.findLastIndex((one) => isInForce(one, at))
  const around = times.flatMap((one) => [edgesAround([one.from, one.until], at), weekAround(one, at)])
  schedule.last = { entry: entries[current + 1] as ModelEntry, ...common(around) }
  return schedule.last
}

function common(periods: readonly Period[]): Period {
  return {
    from: Math.max(-Infinity, ...periods.map(({ from }) => from)),
    until: Math.min(Infinity, ...periods.map(({ until }) => until)),
  }
}

function readSchedule({ price_changes: changes = [], ...own }: ModelEntry): Schedule {
  const changed = changes.map(({ from, until, weekly, ...prices }) => ({ ...own, ...prices }))
  return { times: changes.map(timesOf), entries: [own, ...changed] }
}

function timesOf({ from, until, weekly }: PriceChange): Times {
  return {
    from: from === undefined ? -Infinity : (parseTime(from) ?? Infinity),
    until: until === undefined ? Infinity : (parseTime(until) ?? -Infinity),
    ...(weekly && { weekly: { offset: offsetOf(weekly.utc_offset), windows: windowsOf(weekly) } }),
  }
}

function windowsOf({ days = weekDays, hours }: NonNullable<PriceChange['weekly']>) {
  return days.flatMap((day) => {
    const midnight = weekDays.indexOf(day) * dayMs
    return hours.flatMap((text) => {
      const found = hoursOf(text)
      return found ? [{ begin: midnight + found.begin, end: midnight + found.end }] : []
    })
  })
}

function isInForce({ from, until, weekly }: Times, at: number): boolean {
  if (at < from || at >= until) return false
  if (!weekly) return true
  const now = inWeek(at, weekly.offset)
  return weekly.windows.some(({ begin, end }) => begin <= now && now < end)
}

/** The edges around a moment; one at the moment itself is before it. */
function edgesAround(edges: readonly number[], at: number): Period {
  return {
    from: Math.max(...edges.filter((edge) => edge <= at), -Infinity),
    until: Math.min(...edges.filter((edge) => edge > at), Infinity),
  }
}

function weekAround({ weekly }: Times, at: number): Period {
  if (!weekly) return always
  const now = inWeek(at, weekly.offset)
  const edges = weekly.windows.flatMap(({ begin, end }) => [begin, end])
  const { from, until } = edgesAround(
    edges.flatMap((edge) => [edge - weekMs, edge, edge + weekMs]),
    now,
  )
  return { from: at - now + from, until: at - now + until }
}

function inWeek(at: number, offset: number): number {
  const since = (at + offset - firstMonday) % weekMs
  return since < 0 ? since + weekMs : since
}

/** `+05:30` in milliseconds. */
function offsetOf(text = '+00:00'): number {
  return (text.startsWith('-') ? -1 : 1) * (clockOf(text.slice(1)) ?? 0)
}

function clockOf(text: string): number | undefined {
  const [, hour, minute] = /^(\d\d):([0-5]\d)$/.exec(text) ?? []
  const clock = Number(hour) * hourMs + Number(minute) * minuteMs
  return clock <= dayMs ? clock : undefined
}
