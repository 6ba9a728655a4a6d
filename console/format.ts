const thin = '\u202f'

/** Formats a whole number with groups of three digits: 12,345. */
export function count(value: number | undefined): string {
  if (value === undefined) return ''
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** Formats a number of items: `1 call`, `2 calls`. */
export function counted(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`
}

/** Formats a number to be read at a glance: 1.2 k, 34 M. */
export function short(value: number): string {
  if (Number.isNaN(value)) return '–'
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const)
    if (Math.abs(value) >= size) return `${trimmed(value / size, 3)}${thin}${unit}`
  return trimmed(value, 3)
}

/** Formats US dollars: two digits where there are dollars, as many as are needed where there are none; exact to the nano-dollar. */
export function usd(value: number | undefined, isExact = false): string {
  if (value === undefined) return ''
  const sign = value < 0 ? '−' : ''
  const size = Math.abs(value)
  if (isExact) return `${sign}$${exact(size)}`
  if (size === 0) return '$0'
  if (size >= 1) {
    const [dollars, cents] = size.toFixed(2).split('.')
    return `${sign}$${count(Number(dollars))}.${cents}`
  }
  return `${sign}$${size >= 0.01 ? size.toFixed(4) : exact(Number(size.toPrecision(3)))}`
}

function exact(value: number): string {
  return value.toFixed(9).replace(/(\.\d\d\d*?)0+$/, '$1')
}

function trimmed(value: number, digits: number): string {
  return String(Number(value.toPrecision(digits)))
}

/** Formats a length of time. */
export function duration(ms: number | null | undefined): string {
  if (ms === undefined || ms === null) return ''
  if (ms < 1_000) return `${Math.round(ms)}${thin}ms`
  if (ms < 60_000) return `${trimmed(ms / 1_000, 3)}${thin}s`
  return `${Math.floor(ms / 60_000)}${thin}min ${Math.round((ms % 60_000) / 1_000)}${thin}s`
}

const clock = { month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', second: '2-digit' } as const
const times = new Intl.DateTimeFormat(undefined, clock)
const oldTimes = new Intl.DateTimeFormat(undefined, { ...clock, year: 'numeric' })
const dates = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

/** Formats a time where the reader is, with its year if that is another one; the title says it in UTC. */
export function time(at: string): string {
  const then = new Date(at)
  return (then.getFullYear() === new Date().getFullYear() ? times : oldTimes).format(then)
}

export function date(at: string): string {
  return dates.format(new Date(at))
}

/** Formats US dollars for a million units, from the price of one. */
export function perMillion(price: number | undefined): string {
  return price === undefined ? '' : `$${(price * 1e6).toFixed(4).replace(/(\.\d\d\d*?)0+$/, '$1')}`
}

/** Formats a part of a whole. */
export function percent(share: number): string {
  return `${trimmed(share * 100, share < 0.1 ? 2 : 3)}%`
}

/** Decodes a part of an address; returns it unchanged where it cannot be decoded. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
