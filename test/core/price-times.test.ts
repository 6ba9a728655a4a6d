import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelEntry, PriceChange, WeekDay } from '../../src/core/models/model.ts'
import { entryAt, hoursOf, pricePeriod } from '../../src/core/models/price-times.ts'

const tier = (input_price: number) => [{ prompt_tokens_threshold: 0, input_price, output_price: 0 }]
const model = (...price_changes: PriceChange[]): ModelEntry => ({ api: 'chat', pricing: tier(1), price_changes })
const priceAt = (entry: ModelEntry, at: string | number) =>
  entryAt(entry, typeof at === 'string' ? Date.parse(at) : at).pricing?.[0]?.input_price

describe('a change on a date', () => {
  const entry = model({ from: '2026-12-01T00:00:00Z', pricing: tier(2) })

  test('applies from its first millisecond on', () => {
    expect(priceAt(entry, '2026-11-30T23:59:59.999Z')).toBe(1)
    expect(priceAt(entry, '2026-12-01T00:00:00.000Z')).toBe(2)
    expect(priceAt(entry, '2099-01-01T00:00:00Z')).toBe(2)
    expect(priceAt(entry, '1969-01-01T00:00:00Z')).toBe(1)
  })

  test('is in the time zone that it names', () => {
    const pacific = model({ from: '2026-12-01T00:00:00-08:00', pricing: tier(2) })
    expect(priceAt(pacific, '2026-12-01T07:59:59.999Z')).toBe(1)
    expect(priceAt(pacific, '2026-12-01T08:00:00.000Z')).toBe(2)
  })

  test('ends before its last moment', () => {
    const week = model({ from: '2026-12-01T00:00:00Z', until: '2026-12-08T00:00:00Z', pricing: tier(2) })
    expect(priceAt(week, '2026-12-07T23:59:59.999Z')).toBe(2)
    expect(priceAt(week, '2026-12-08T00:00:00.000Z')).toBe(1)
  })

  test('overrides the prices that it has and leaves the rest', () => {
    const more: ModelEntry = {
      ...model({ from: '2026-12-01T00:00:00Z', other_prices: { per_image: 3 } }),
      other_prices: { per_image: 2, per_second: 1 },
      multipliers: { flex: 0.5 },
      context_window: 5,
    }
    const { price_changes, ...own } = more
    expect(entryAt(more, 0)).toEqual(own)
    expect(entryAt(more, Date.parse('2026-12-01T00:00:00Z'))).toEqual({ ...own, other_prices: { per_image: 3 } })
  })

  test('gives the same entry for the same prices, so that values derived from it can be cached', () => {
    const one = Date.parse('2026-11-01T00:00:00Z')
    const other = Date.parse('2027-01-01T00:00:00Z')
    expect(entryAt(entry, one)).toBe(entryAt(entry, one + 1))
    expect(entryAt(entry, other)).toBe(entryAt(entry, other + 1))
    expect(entryAt(entry, one)).not.toBe(entryAt(entry, other))
    const plain: ModelEntry = { api: 'chat' }
    expect(entryAt(plain, one)).toBe(plain)
  })
})

describe('hours of the week', () => {
  const working: readonly WeekDay[] = ['mon', 'tue', 'wed', 'thu', 'fri']
  const beijing = model({
    weekly: { days: working, hours: ['09:00-12:00', '14:00-18:00'], utc_offset: '+08:00' },
    pricing: tier(2),
  })

  test.each([
    ['before the morning', '2026-11-20T00:59:59.999Z', 1],
    ['as the morning begins', '2026-11-20T01:00:00.000Z', 2],
    ['as the morning ends', '2026-11-20T03:59:59.999Z', 2],
    ['at noon', '2026-11-20T04:00:00.000Z', 1],
    ['before the afternoon', '2026-11-20T05:59:59.999Z', 1],
    ['as the afternoon begins', '2026-11-20T06:00:00.000Z', 2],
    ['as the afternoon ends', '2026-11-20T09:59:59.999Z', 2],
    ['in the evening', '2026-11-20T10:00:00.000Z', 1],
    ['on a Saturday', '2026-11-21T02:00:00.000Z', 1],
    ['on a Sunday', '2026-11-22T08:00:00.000Z', 1],
    ['on a Monday', '2026-11-23T01:00:00.000Z', 2],
    ['on a Monday before 1970', '1969-12-29T01:00:00.000Z', 2],
    ['on a Saturday before 1970', '1969-12-27T01:00:00.000Z', 1],
  ])('hold as their own clock says: %s', (_, at, price) => {
    expect(priceAt(beijing, at)).toBe(price)
  })

  test('have the weekend of their clock, not that of UTC', () => {
    const evening = model({ weekly: { days: ['sat'], hours: ['00:00-24:00'], utc_offset: '+08:00' }, pricing: tier(2) })
    expect(priceAt(evening, '2026-11-20T15:59:59.999Z')).toBe(1)
    expect(priceAt(evening, '2026-11-20T16:00:00.000Z')).toBe(2)
    expect(priceAt(evening, '2026-11-21T15:59:59.999Z')).toBe(2)
    expect(priceAt(evening, '2026-11-21T16:00:00.000Z')).toBe(1)
    const west = model({ weekly: { days: ['sun'], hours: ['00:00-24:00'], utc_offset: '-03:30' }, pricing: tier(2) })
    expect(priceAt(west, '2026-11-22T03:29:59.999Z')).toBe(1)
    expect(priceAt(west, '2026-11-22T03:30:00.000Z')).toBe(2)
    expect(priceAt(west, '2026-11-23T03:29:59.999Z')).toBe(2)
  })

  test('are those of every day, in UTC, by default', () => {
    const night = model({ weekly: { hours: ['22:00-24:00', '00:00-06:30'] }, pricing: tier(2) })
    for (const day of ['20', '21', '22', '23']) {
      expect(priceAt(night, `2026-11-${day}T06:30:00Z`)).toBe(1)
      expect(priceAt(night, `2026-11-${day}T22:00:00Z`)).toBe(2)
      expect(priceAt(night, `2026-11-${day}T06:29:59.999Z`)).toBe(2)
    }
  })

  test('give way to a later change, as a holiday is one', () => {
    const [peak] = beijing.price_changes as PriceChange[]
    const holiday = { from: '2026-10-01T00:00:00+08:00', until: '2026-10-08T00:00:00+08:00', pricing: tier(1) }
    const entry = model(peak as PriceChange, holiday)
    expect(priceAt(entry, '2026-09-30T09:59:59.999Z')).toBe(2)
    expect(priceAt(entry, '2026-10-01T01:00:00Z')).toBe(1)
    expect(priceAt(entry, '2026-10-07T09:59:59.999Z')).toBe(1)
    expect(priceAt(entry, '2026-10-08T01:00:00Z')).toBe(2)
  })
})

describe('at every moment', () => {
  const start = Date.parse('2026-11-16T00:00:00Z')
  const hour = 3_600_000
  const days: WeekDay[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
  const moment = fc.integer({ min: 0, max: 24 * 28 }).map((hours) => new Date(start + hours * hour).toISOString())
  const clock = (minutes: number) =>
    `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`
  const hours = fc
    .uniqueArray(fc.integer({ min: 0, max: 48 }), { minLength: 2, maxLength: 2 })
    .map((halves) => halves.toSorted((a, b) => a - b).map((half) => clock(half * 30)))
    .map(([begin, end]) => `${begin}-${end}`)
  const weekly = fc.record(
    {
      days: fc.uniqueArray(fc.constantFrom(...days), { minLength: 1 }),
      hours: fc.array(hours, { minLength: 1, maxLength: 3 }),
      utc_offset: fc.constantFrom('+00:00', '+08:00', '-08:00', '+05:30', '+14:00', '-12:00'),
    },
    { requiredKeys: ['hours'] },
  )
  const times = fc.record({ from: moment, until: moment, weekly }, { requiredKeys: [] })
  const changes = fc
    .array(times, { maxLength: 5 })
    .map((all) => all.map((one, index): PriceChange => ({ ...one, pricing: tier(index + 2) })))
  const moments = fc.array(fc.integer({ min: -40 * 24 * hour, max: 60 * 24 * hour }), { minLength: 1, maxLength: 20 })

  test('exactly one of the prices applies: that of the last change in force by a simple search', () => {
    fc.assert(
      fc.property(changes, moments, (price_changes, offsets) => {
        const entry = model(...price_changes)
        for (const offset of offsets) {
          const at = start + offset
          const last = price_changes.findLastIndex((change) => readPlainly(change, at))
          expect(priceAt(entry, at)).toBe(last + 2)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('the prices are the same to the ends of their period, which has the moment in it', () => {
    fc.assert(
      fc.property(changes, moments, (price_changes, offsets) => {
        const entry = model(...price_changes)
        for (const offset of offsets) {
          const at = start + offset
          const { from, until } = pricePeriod([{ api: 'chat' }, entry], at)
          expect(from).toBeLessThanOrEqual(at)
          expect(until).toBeGreaterThan(at)
          const inside = [from, from + 1, until - 1].filter(Number.isFinite)
          for (const other of inside) expect(priceAt(model(...price_changes), other)).toBe(priceAt(entry, at))
        }
      }),
      { numRuns: 300 },
    )
  })

  /** Uses the calendar of the platform, not arithmetic. */
  function readPlainly({ from, until, weekly: week }: PriceChange, at: number): boolean {
    if (from !== undefined && at < Date.parse(from)) return false
    if (until !== undefined && at >= Date.parse(until)) return false
    if (!week) return true
    const [, sign, ahead, minutes] = /(.)(..):(..)/.exec(week.utc_offset ?? '+00:00') as unknown as string[]
    const offset = (sign === '-' ? -1 : 1) * (Number(ahead) * 60 + Number(minutes)) * 60_000
    const local = new Date(at + offset)
    const day = days[(local.getUTCDay() + 6) % 7] as WeekDay
    const time = local.toISOString().slice(11, 23)
    const inHours = week.hours.some((text) => {
      const [begin, end] = text.split('-') as [string, string]
      return begin <= time && time < end
    })
    return (!week.days || week.days.includes(day)) && inHours
  }
})

test('hours end after they begin', () => {
  expect(hoursOf('09:30-24:00')).toEqual({ begin: 34_200_000, end: 86_400_000 })
  for (const text of ['22:00-06:00', '09:00-09:00', '09:00', '09:00-24:30', '9-12']) {
    expect(hoursOf(text), text).toBeUndefined()
  }
})
