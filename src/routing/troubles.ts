import type { Trouble } from './health.ts'

/** What several event loops say of the health of the same things, each once: the worst of it. */
export function worstOf(reports: Iterable<readonly Trouble[]>): Trouble[] {
  const worst = new Map<string, Trouble>()
  for (const report of reports) {
    for (const trouble of report) {
      const name = `${trouble.scope} ${trouble.name}`
      const known = worst.get(name)
      if (!known || isWorse(trouble, known)) worst.set(name, trouble)
    }
  }
  return [...worst.values()]
}

const badness = ['closed', 'recovering', 'half_open', 'paused', 'open'] as const

function isWorse(one: Trouble, other: Trouble): boolean {
  const difference = badness.indexOf(one.state) - badness.indexOf(other.state)
  return difference > 0 || (difference === 0 && (one.until ?? 0) > (other.until ?? 0))
}
