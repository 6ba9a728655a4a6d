/** Result of one check: what was found and, unless it is fine, what to do about it. */
export type Finding = {
  area: Area
  state: 'ok' | 'warning' | 'problem'
  message: string
  fix?: string
}

/** Areas in the order in which they are checked. */
export const areas = [
  'node',
  'files',
  'environment',
  'database',
  'disk',
  'ports',
  'descriptors',
  'clock',
  'providers',
] as const

export type Area = (typeof areas)[number]

/** Returns the findings of an area that is fine. */
export function ok(area: Area, message: string): Finding {
  return { area, state: 'ok', message }
}

/** Returns a finding that stops calls, or will. */
export function problem(area: Area, message: string, fix: string): Finding {
  return { area, state: 'problem', message, fix }
}

/** Returns a finding that may stop calls. */
export function warning(area: Area, message: string, fix: string): Finding {
  return { area, state: 'warning', message, fix }
}
