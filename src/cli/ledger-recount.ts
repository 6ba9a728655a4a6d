import { formatTime, monthStart } from '../core/time.ts'
import { mostListed, type Recount, recount } from '../money/recount.ts'
import { usdOf, usdText } from '../money/usd.ts'
import { organizationOf } from './admin.ts'
import { columns, type Words } from './args.ts'
import type { Finding, LedgerRoom } from './ledger-action.ts'
import { rangeIn } from './ledger-range.ts'

/** Options besides those of every action. */
export const options = ['from', 'to', 'org', 'key']

/** `ledger recount`: is each call's cost what its usage and its prices make it? */
export function read(words: Words): (room: LedgerRoom) => Finding {
  const { org, key } = words.options
  const now = Date.now()
  const { to = now, from = monthStart(Math.min(to, now)) } = rangeIn(words)
  return ({ store, snapshot }) => {
    const organization = org === undefined ? undefined : organizationOf(store, org).id
    const whose = { ...(organization !== undefined && { organization }), ...(key !== undefined && { key }) }
    const found = recount(store.ledger.each({ from, to, ...whose }), snapshot.catalog.find)
    const range = { from: formatTime(from), to: formatTime(to) }
    return { json: { ...range, ...asJson(found) }, text: asText(found, range), fine: found.wrong.calls === 0 }
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
  { calls, agreeing, unbilled, wrong, repriced, reported }: Recount,
  range: { from: string; to: string },
): string {
  const other = [...repriced.values()].reduce((sum, one) => sum + one.calls, 0)
  const parts = [
    `${calls} calls from ${range.from} to ${range.to}: ${agreeing} cost what they should, ${wrong.calls} do not, ${other} have other prices than today's, ${unbilled} failed unpaid\n`,
  ]
  if (wrong.calls > 0) {
    const shown = wrong.calls > mostListed ? ` (the first ${mostListed})` : ''
    const rows = wrong.listed.map(({ at, id, model, ledger, today }) => [
      formatTime(at),
      id,
      model,
      ...sums(ledger, today),
    ])
    parts.push(
      `Wrong${shown}:\n${columns([['TIME', 'CALL', 'MODEL', 'LEDGER USD', 'SHOULD BE USD', 'DIFFERENCE'], ...rows])}`,
    )
  }
  if (repriced.size > 0) {
    const rows = byModel(repriced).map(([model, one]) => [model, String(one.calls), ...sums(one.ledger, one.today)])
    parts.push(
      `Other prices than today's:\n${columns([['MODEL', 'CALLS', 'LEDGER USD', 'TODAY USD', 'DIFFERENCE'], ...rows])}`,
    )
  }
  if (reported.size > 0) {
    const rows = byModel(reported).map(([model, one]) => [model, String(one.calls), ...sums(one.ledger, one.provider)])
    parts.push(
      `Told by the provider:\n${columns([['MODEL', 'CALLS', 'LEDGER USD', 'PROVIDER USD', 'DIFFERENCE'], ...rows])}`,
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
