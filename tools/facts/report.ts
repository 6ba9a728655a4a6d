import type { Comparison, Disagreement, NewModel } from './compare.ts'
import { type Exception, exceptionFor } from './exceptions.ts'
import { type FactKind, type FactName, type FactValue, isMultiplier, kindOf } from './listed.ts'

/** A comparison, sorted by what is to be done. */
export type Report = {
  /** Facts that more than one origin, or the provider's page, contradicts, without an exception: to correct or to explain. */
  open: Disagreement[]
  /** Models that more than one origin lists, without an exception. */
  missing: NewModel[]
  explained: number
  /** Facts that one origin alone contradicts, or about which origins differ. */
  uncertain: Disagreement[]
  /** Models that one origin alone lists. */
  rumoured: NewModel[]
  /** Exceptions that nothing needs any more. */
  stale: Exception[]
  counts: { [kind in FactKind]: Counts }
}

/** The number of facts of a kind by what lists say about them. */
export type Counts = { agree: number; open: number; explained: number; single: number; contested: number }

/** Sorts a comparison with the exceptions that are known. */
export function reportOf({ agreed, disagreements, newModels }: Comparison, exceptions: readonly Exception[]): Report {
  const counts = Object.fromEntries(
    kinds.map((kind) => [kind, { agree: agreed[kind] ?? 0, open: 0, explained: 0, single: 0, contested: 0 }]),
  ) as Report['counts']
  const used = new Set<Exception>()
  const report: Report = { open: [], missing: [], explained: 0, uncertain: [], rumoured: [], stale: [], counts }
  for (const one of disagreements) {
    const exception = exceptionFor(exceptions, one)
    const count = counts[kindOf(one.fact)]
    if (exception) {
      used.add(exception)
      count.explained++
      report.explained++
    } else if (one.verdict === 'majority') {
      count.open++
      report.open.push(one)
    } else {
      count[one.verdict]++
      report.uncertain.push(one)
    }
  }
  for (const one of newModels) {
    const exception = exceptionFor(exceptions, one)
    if (exception) used.add(exception)
    else if (one.origins.length > 1) report.missing.push(one)
    else report.rumoured.push(one)
  }
  report.stale = exceptions.filter((exception) => !used.has(exception))
  return report
}

const kinds: readonly FactKind[] = ['price', 'limit', 'ability', 'retirement']

/** Writes a disagreement: what is ours, what the lists say, and the pages. */
export function disagreementText({ provider, model, fact, ours, votes, verified }: Disagreement): string {
  const stated = votes.map(({ list, value, asOf }) => `${list} ${valueText(fact, value)} (${asOf})`).join(', ')
  const pages = [...new Set(votes.flatMap(({ page }) => page ?? []))].map((page) => `\n    ${page}`)
  const checked = verified ? `\n    ours was checked on ${verified.on}: ${verified.page}` : ''
  return `${provider}/${model} ${fact}: ${valueText(fact, ours)} here; ${stated}${pages.join('')}${checked}`
}

/** Writes prices in USD per million. */
function valueText(fact: FactName, value: FactValue | undefined): string {
  if (value === undefined) return 'nothing'
  if (typeof value !== 'number' || kindOf(fact) !== 'price' || isMultiplier(fact)) return String(value)
  return `${Number((value * 1e6).toPrecision(6))} $/M`
}
