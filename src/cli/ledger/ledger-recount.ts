import { formatTime, monthStart } from '../../core/time.ts'
import { maxListed, type Recount, recount } from '../../money/recount.ts'
import { usdOf, usdText } from '../../money/usd.ts'
import { organizationOf } from '../admin.ts'
import { type Args, table } from '../command.ts'
import { type Finding, type LedgerSource, rangeFrom } from './ledger-action.ts'

const text = { type: 'string' } as const

export const options = { from: text, to: text, org: text, key: text }

/** Prepares `ledger recount`: computes the cost of each call again from its usage and today's prices. */
export function prepare(args: Args): (source: LedgerSource) => Promise<Finding> {
  const [org, key] = [args.text('org'), args.text('key')]
  const now = Date.now()
  const { to = now, from = monthStart(Math.min(to, now)) } = rangeFrom(args)
  return async ({ store, snapshot }) => {
    const organization = org === undefined ? undefined : (await organizationOf(store, org)).id
    const whose = { ...(organization !== undefined && { organization }), ...(key !== undefined && { key }) }
    const byReport = (slug: string) => snapshot.providers.get(slug)?.reports?.has('cost') ?? false
    const found = await recount(store.ledger.each({ from, to, ...whose }), snapshot.catalog.find, byReport)
    const range = { from: formatTime(from), to: formatTime(to) }
    return { json: { ...range, ...asJson(found) }, text: asText(found, range), ok: found.wrong.calls === 0 }
  }
}

function asJson({ wrong, repriced, reported, ...counts }: Recount) {
  return {
    ...counts,
    wrong: {
      calls: wrong.calls,
      difference: usdOf(wrong.difference),
      listed: wrong.listed.map(({ at, ledger, today, ...call }) => ({
        ...call,
        at: formatTime(at),
        ledger: usdOf(ledger),
        today: usdOf(today),
      })),
    },
    repriced: byModel(repriced).map(([model, { calls, ledger, today }]) => ({
      model,
      calls,
      ledger: usdOf(ledger),
      today: usdOf(today),
      difference: usdOf(today - ledger),
    })),
    reported: byModel(reported).map(([model, { calls, ledger, provider }]) => ({
      model,
      calls,
      ledger: usdOf(ledger),
      provider: usdOf(provider),
      difference: usdOf(provider - ledger),
    })),
  }
}

function asText(
  { calls, attempts, agreeing, unbilled, wrong, repriced, reported }: Recount,
  range: { from: string; to: string },
): string {
  const other = [...repriced.values()].reduce((sum, one) => sum + one.calls, 0)
  const also = attempts === 0 ? '' : ` and ${attempts} further attempts`
  const parts = [
    `${calls} calls${also} from ${range.from} to ${range.to}: ${agreeing} are correct, ${wrong.calls} are wrong, ${other} were billed at prices other than today's, ${unbilled} failed without charge\n`,
  ]
  if (wrong.calls > 0) {
    const extent = wrong.calls > maxListed ? ` (the first ${maxListed})` : ''
    const rows = wrong.listed.map(({ at, id, model, ledger, today }) => [
      formatTime(at),
      id,
      model,
      ...sums(ledger, today),
    ])
    parts.push(
      `Wrong${extent}:\n${table([['TIME', 'CALL', 'MODEL', 'LEDGER USD', 'SHOULD BE USD', 'DIFFERENCE'], ...rows])}\n`,
    )
  }
  if (repriced.size > 0) {
    const rows = byModel(repriced).map(([model, one]) => [model, String(one.calls), ...sums(one.ledger, one.today)])
    parts.push(
      `Prices other than today's:\n${table([['MODEL', 'CALLS', 'LEDGER USD', 'TODAY USD', 'DIFFERENCE'], ...rows])}\n`,
    )
  }
  if (reported.size > 0) {
    const rows = byModel(reported).map(([model, one]) => [model, String(one.calls), ...sums(one.ledger, one.provider)])
    parts.push(
      `Reported by the provider:\n${table([['MODEL', 'CALLS', 'LEDGER USD', 'PROVIDER USD', 'DIFFERENCE'], ...rows])}\n`,
    )
  }
  return parts.join('\n')
}

function sums(ledger: bigint, other: bigint): string[] {
  return [usdText(ledger), usdText(other), usdText(other - ledger)]
}

function byModel<Sums>(sums: Map<string, Sums>): [model: string, Sums][] {
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1))
}
