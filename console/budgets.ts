import { api } from './api.ts'

const hourMs = 3_600_000
const dayMs = 86_400_000

/** Time over which the present pace is measured: a whole day, as nights are quieter. */
const measuredMs = dayMs

type Usage = {
  usage: Record<
    string,
    { spend: number; grouped_data?: { spend: number; group_by_values: Record<string, string | null> }[] }
  >
}

/** Returns the spend of a day at the present pace, in US dollars, by the ids of keys or of groups. */
export async function paces(by: 'key' | 'group_id', signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const { usage, days } = await recent('v1/manage/org/usage', signal, by)
  const sums = new Map<string, number>()
  for (const { grouped_data: groups = [] } of Object.values(usage))
    for (const { group_by_values: values, spend } of groups) {
      const id = values[by] ?? ''
      sums.set(id, (sums.get(id) ?? 0) + spend / days)
    }
  return sums
}

/** Returns the spend of a day at the present pace, in US dollars, of all that is below `path`. */
export async function paceOf(path: string, signal: AbortSignal): Promise<number> {
  const { usage, days } = await recent(path, signal)
  return Object.values(usage).reduce((sum, { spend }) => sum + spend, 0) / days
}

async function recent(path: string, signal: AbortSignal, by?: string): Promise<Usage & { days: number }> {
  const now = Date.now()
  const start = Math.floor((now - measuredMs) / hourMs) * hourMs
  const query = { start: new Date(start).toISOString(), resolution: 'day', group_by: by }
  const { usage } = await api<Usage>(path, { query, signal })
  return { usage, days: (now - start) / dayMs }
}
