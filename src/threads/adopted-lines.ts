import { asRouterError } from '../core/errors.ts'
import type { AccountState, Answer, Held } from '../lending/account.ts'
import type { Channel } from './channel.ts'
import { type FromNew, type FromOld, noPurse } from './handover-messages.ts'
import { sentError } from './messages.ts'
import type { MoneyBooks } from './near-line.ts'

export type ChannelToOld = Channel<FromNew, FromOld>

/** What a process has handed over. */
export type Handed = { channel: ChannelToOld; accounts: AccountState[]; purses: number[]; port: number }

export type AdoptedOptions = {
  /** The books of this process, or those of the one that has taken them over from this. */
  money(): MoneyBooks
  /** Whether the row of a call is in the tables. */
  isWritten(id: string): boolean
  /** Hears what concerns neither money nor rows. */
  onSaid(said: FromOld): void
}

/**
 * How long lines may take to come here that another process had adopted, which has ended: what their calls hold is not lent
 * meanwhile. Milliseconds.
 */
const graceMs = 5_000

/** The lines of the process that has handed over its books, whose last calls still run there: their purses here are below 0. */
export class AdoptedLines {
  readonly #channel: ChannelToOld
  readonly #options: AdoptedOptions
  readonly #purses = new Set<number>()
  readonly #recalls = new Map<number, PromiseWithResolvers<Held[]>>()
  #lastRecall = 0
  #grace: NodeJS.Timeout | undefined

  /** They may go on at once: the tables of spend have all that was settled before. Throws the engine's errors. */
  constructor({ channel, accounts, purses }: Handed, options: AdoptedOptions) {
    this.#channel = channel
    this.#options = options
    for (const purse of purses) this.#join(purse)
    const ownLoans = ({ lent }: AccountState) =>
      lent.map(([purse, amount]): [number, bigint | null] => [own(purse), amount])
    try {
      options.money().bank.adopt(accounts.map((account) => ({ ...account, lent: ownLoans(account) })))
    } catch (thrown) {
      this.release()
      throw thrown
    }
  }

  /** Hears what the other process has said and says. The bank must be able to recall what these purses hold. */
  listen(): void {
    this.#channel.listen((said) => this.#hear(said))
    void this.#channel.ended().then(() => this.#gone())
  }

  purses(): number[] {
    return [...this.#purses]
  }

  tell(told: FromNew): void {
    this.#channel.send(told)
  }

  /** What a purse holds of accounts. Rejects when it cannot be asked any more. */
  recall(purse: number, accounts: readonly string[]): Promise<Held[]> {
    const id = ++this.#lastRecall
    const waiting = Promise.withResolvers<Held[]>()
    this.#recalls.set(id, waiting)
    this.tell({ kind: 'recall', id, purse: theirs(purse), accounts })
    return waiting.promise.finally(() => this.#recalls.delete(id))
  }

  /** Resolves when the other process has ended. */
  ended(): Promise<void> {
    return this.#channel.ended()
  }

  /** Nobody is waited for any more whose process has ended. */
  release(): void {
    clearTimeout(this.#grace)
    for (const purse of this.#purses) this.#leave(purse)
  }

  /** What is said from now on is not answered: the other process says it to its own books. */
  close(): void {
    this.#channel.listen(() => {})
  }

  #hear(said: FromOld): void {
    const { bank } = this.#options.money()
    if (said.kind === 'join') this.#join(said.purse)
    else if (said.kind === 'leave') this.#leave(own(said.purse))
    else if (said.kind === 'lend') this.#lend(said)
    else if (said.kind === 'giveBack') bank.giveBack(own(said.purse), said.account, said.amount, said.closes)
    else if (said.kind === 'use') bank.use(own(said.purse), said.uses)
    else if (said.kind === 'row') this.#write(said)
    else if (said.kind === 'held') this.#held(said)
    else this.#options.onSaid(said)
  }

  #join(purse: number): void {
    this.#purses.add(own(purse))
    this.#options.money().bank.join(own(purse))
  }

  #leave(purse: number): void {
    this.#purses.delete(purse)
    this.#options.money().bank.leave(purse)
  }

  /** While rows wait to be written, the tables of spend do not say what was spent. */
  #lend({ id, purse, needs }: Extract<FromOld, { kind: 'lend' }>): void {
    const { bank, writeFailure } = this.#options.money()
    const failure = writeFailure()
    const answered = (answer: Answer | Error) =>
      this.tell({ kind: 'lent', id, answer: answer instanceof Error ? answer.message : answer })
    if (failure === undefined) bank.lend(own(purse), needs, answered)
    else answered(new Error(failure))
  }

  #write({ id, purse, accounts, cost, record, response }: Extract<FromOld, { kind: 'row' }>): void {
    const { bank, ledger } = this.#options.money()
    // It was said before, to a process that has ended.
    if (purse === noPurse && this.#isWritten(record.id)) {
      this.tell({ kind: 'settled', id })
      return
    }
    const onWritten = bank.spend(own(purse), accounts, cost)
    ledger.settle(record, response).then(
      () => {
        onWritten()
        this.tell({ kind: 'settled', id })
      },
      (thrown) => this.tell({ kind: 'settled', id, error: sentError(asRouterError(thrown)) }),
    )
  }

  /** Where that cannot be read the row counts, once too often at most. */
  #isWritten(id: string): boolean {
    try {
      return this.#options.isWritten(id)
    } catch {
      return false
    }
  }

  #held({ id, held }: Extract<FromOld, { kind: 'held' }>): void {
    if (held) this.#recalls.get(id)?.resolve(held)
    else this.#recalls.get(id)?.reject(new Error('the thread ended'))
  }

  /** Its calls are over, whether they have ended or were cut off: what they were lent comes back. Those that it had adopted may go on. */
  #gone(): void {
    for (const purse of this.#purses) if (isOfThatProcess(purse)) this.#leave(purse)
    if (this.#purses.size > 0) this.#grace = setTimeout(() => this.release(), graceMs).unref()
    for (const { reject } of this.#recalls.values()) reject(new Error('the process ended'))
  }
}

/** A purse of the other process, as this one names it: below 0, and another one for each, also for those it has adopted itself. */
function own(purse: number): number {
  return purse > 0 ? 1 - 2 * purse : 2 * purse
}

function theirs(purse: number): number {
  return !isOfThatProcess(purse) ? purse / 2 : (1 - purse) / 2
}

/** Not of one whose lines that process has adopted itself. */
function isOfThatProcess(purse: number): boolean {
  return purse % 2 !== 0
}
