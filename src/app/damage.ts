import type { Log } from '../observe/log.ts'
import type { Store } from '../store/open.ts'
import { isDamage } from '../store/store-error.ts'

/** Whether the database is damaged, as far as it is known. */
export type DamageWatch = {
  /** The reason why nothing may be written, as a message for clients; undefined for a sound database. */
  failure(): string | undefined
  /** Looks at anything that was thrown. Damage that was met once is there until the next start. */
  saw(thrown: unknown): void
  /** There is damage, with these facts for the log. */
  report(facts: object): void
}

/** Looks for damage in the tables that decide about calls, and in what reads and writes throw. `onFound` hears of it once. */
export function watchDamage(
  { integrity }: Pick<Store, 'integrity'>,
  log: Log,
  onFound: () => void = () => {},
): DamageWatch {
  let damaged = false
  const report = (facts: object) => {
    if (damaged) return
    damaged = true
    log.error(facts, 'the database file is damaged: restore it from a backup and start again')
    onFound()
  }
  const saw = (thrown: unknown) => {
    if (isDamage(thrown)) report({ err: thrown })
  }
  integrity.checkDeciding().then((damage) => {
    if (damage.length > 0) report({ damage })
  }, saw)
  return { failure: () => (damaged ? failure : undefined), saw, report }
}

const failure = 'The router cannot use its database: the database file is damaged.'
