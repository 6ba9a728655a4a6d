import type { ModelEntry, PriceChange, WeekDay } from './model.ts'
import { dayMs, hourMs, minuteMs, parseTime } from './time.ts'

/** A stretch of time in Unix milliseconds: `from` is inside, `until` is not. */
export type Period = { from: number; until: number }

/**
 * The entry with the prices of a moment (Unix milliseconds): those of the last of its price changes that holds then, or
 * its own. Where the prices are the same it is the same object, so that what is made of it can be kept with it.
 */
export function entryAt(entry: ModelEntry, at: number): ModelEntry {
  return entry.price_changes ? heldAt(entry, at).entry : entry
}

/** The stretch around a moment in which the prices of all these models are surely the same. */
export function pricePeriod(entries: readonly ModelEntry[], at: number): Period {
  return common(entries.filter(({ price_changes }) => price_changes).map((entry) => heldAt(entry, at)))
}

/** When hours such as `09:00-12:00` begin and end, in milliseconds of their day; undefined when they are none. */
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

/** One change, its times as numbers; windows are milliseconds since Monday 0:00 by the clock of `offset`. */
type Times = Period & { weekly?: { offset: number; windows: readonly { begin: number; end: number }[] } }

/** The entries by the change that holds, first the one of no change; `last` saves finding out what was just found. */
type Schedule = { times: readonly Times[]; entries: readonly ModelEntry[]; last?: Period & { entry: ModelEntry } }

/** Entries do not change, a reload makes new ones: each is read once. */
const schedules = new WeakMap<ModelEntry, Schedule>()

function heldAt(entry: ModelEntry, at: number): Period & { entry: ModelEntry } {
  let schedule = schedules.get(entry)
  if (!schedule) {
    schedule = readSchedule(entry)
    schedules.set(entry, schedule)
  }
  const { last, times, entries } = schedule
  if (last && last.from <= at && at < last.until) return last
  const holding = times.findLastIndex((one) => isHeld(one, at))
  const around = times.flatMap((one) => [edgesAround([one.from, one.until], at), weekAround(one, at)])
  schedule.last = { entry: entries[holding + 1] as ModelEntry, ...common(around) }
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

function isHeld({ from, until, weekly }: Times, at: number): boolean {
  if (at < from || at >= until) return false
  if (!weekly) return true
  const now = inWeek(at, weekly.offset)
  return weekly.windows.some(({ begin, end }) => begin <= now && now < end)
}

/** Between which edges a moment stands; it stands after one that it is on. */
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
