/** A line of a chart: its values at the times of the chart. `isBad`: it is better when there are few. */
export type Series = { label: string; values: readonly (number | null)[]; isBad?: boolean }

/** Spend of a period, and that of its groups. US dollars. */
export type SpendOf = {
  spend: number
  grouped_data?: readonly { spend: number; group_by_values: Readonly<Record<string, string | null>> }[]
}

/** Number of groups that a chart tells apart; the others are one. */
const most = 5

/**
 * Returns the spend of the groups with the largest sums and of the rest of them, at each of the times (Unix milliseconds); periods without calls
 * are zero. `names` has the names of groups that are ids.
 */
export function spendSeries(
  found: ReadonlyMap<number, SpendOf>,
  starts: readonly number[],
  { by, names = new Map() }: { by: string; names?: ReadonlyMap<string, string> },
): Series[] {
  const sums = new Map<string | null, number>()
  const spends = starts.map((at) => {
    const groups = new Map<string | null, number>()
    for (const { group_by_values: values, spend } of found.get(at)?.grouped_data ?? []) {
      const value = values[by] ?? null
      groups.set(value, (groups.get(value) ?? 0) + spend)
      sums.set(value, (sums.get(value) ?? 0) + spend)
    }
    return groups
  })
  const ranked = [...sums].toSorted(([, one], [, other]) => other - one)
  const shown = ranked.slice(0, most).filter(([, sum]) => sum > 0)
  const series = shown.map(([value]) => ({
    label: value === null ? '(none)' : (names.get(value) ?? value),
    values: spends.map((groups) => groups.get(value) ?? 0),
  }))
  const rest = starts.map(
    (at, index) => (found.get(at)?.spend ?? 0) - series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0),
  )
  // What remains of sums may be a rounding error.
  if (ranked.length > shown.length && rest.some((value) => value > 1e-9)) series.push({ label: 'others', values: rest })
  return series.length > 0 ? series : [{ label: 'spend', values: starts.map(() => 0) }]
}
