import { asRouterError } from '../../core/errors.ts'
import type { AccountState, Answer, Held } from '../../lending/account.ts'
import type { Channel } from './channel.ts'
import { type FromNew, type FromOld, type HandedRow, noPurse } from './handover-messages.ts'
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
  /** The rows of all such processes that are being written, by their ids. */
  underWay: Map<string, Promise<void>>
  /** A number below 0 that no other purse has. */
  newPurse(): number
  /** Hears what concerns neither money nor rows. */
  onSaid(said: FromOld): void
}

/**
 * How long lines may take to come here that another process had adopted, which has ended: what their calls hold is not lent
 * meanwhile. Milliseconds.
 */
const graceMs = 5_000

/**
 * The lines of a process that served before, whose last calls still run there, and those that it has adopted itself. Their purses here
 * are below 0.
 */
export class AdoptedLines {
  readonly #channel: ChannelToOld
  readonly #options: AdoptedOptions
  /** What that process calls each purse, and the other way round. There those that it has adopted are below 0. */
  readonly #theirs = new Map<number, number>()
  readonly #own = new Map<number, number>()
  readonly #recalls = new Map<number, PromiseWithResolvers<Held[]>>()
  #lastRecall = 0
  #grace: NodeJS.Timeout | undefined
  #isGone = false

  /** They may go on at once: the tables of spend have all that was settled before. Throws the engine's errors. */
  constructor({ channel, accounts, purses }: Handed, options: AdoptedOptions) {
    this.#channel = channel
    this.#options = options
    for (const purse of purses) this.#join(purse)
    const ownLoans = ({ lent }: AccountState) =>
      lent.map(([purse, amount]): [number, bigint | null] => [this.#nameOf(purse), amount])
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
    return [...this.#theirs.keys()]
  }

  /** Whether the other process has ended. Purses of those that it had adopted may be left. */
  get isGone(): boolean {
    return this.#isGone
  }

  tell(told: FromNew): void {
    this.#channel.send(told)
  }

  /** What a purse holds of accounts. Rejects when it cannot be asked any more. */
  async recall(purse: number, accounts: readonly string[]): Promise<Held[]> {
    const theirs = this.#theirs.get(purse)
    if (theirs === undefined || this.#channel.isOver) throw new Error('the process ended')
    const id = ++this.#lastRecall
    const waiting = Promise.withResolvers<Held[]>()
    this.#recalls.set(id, waiting)
    this.tell({ kind: 'recall', id, purse: theirs, accounts })
    return await waiting.promise.finally(() => this.#recalls.delete(id))
  }

  /** Resolves when the other process has ended. */
  ended(): Promise<void> {
    return this.#channel.ended()
  }

  /** Nobody is waited for any more whose process has ended. */
  release(): void {
    clearTimeout(this.#grace)
    for (const purse of this.purses()) this.#leave(purse)
  }

  /** What is said from now on is not answered: the other process says it to its own books. */
  close(): void {
    this.#channel.listen(() => {})
  }

  #hear(said: FromOld): void {
    const { bank } = this.#options.money()
    if (said.kind === 'join') this.#join(said.purse)
    else if (said.kind === 'leave') this.#leave(this.#nameOf(said.purse))
    else if (said.kind === 'lend') this.#lend(said)
    else if (said.kind === 'giveBack') bank.giveBack(this.#nameOf(said.purse), said.account, said.amount, said.closes)
    else if (said.kind === 'use') bank.use(this.#nameOf(said.purse), said.uses)
    else if (said.kind === 'row') this.#write(said)
    else if (said.kind === 'held') this.#held(said)
    else this.#options.onSaid(said)
  }

  #join(purse: number): void {
    const name = this.#options.newPurse()
    this.#own.set(purse, name)
    this.#theirs.set(name, purse)
    this.#options.money().bank.join(name)
  }

  #leave(name: number): void {
    this.#own.delete(this.#theirs.get(name) ?? noPurse)
    this.#theirs.delete(name)
    this.#options.money().bank.leave(name)
  }

  /** How a purse of the other process is called here. */
  #nameOf(purse: number): number {
    return this.#own.get(purse) ?? noPurse
  }

  /** While rows wait to be written, the tables of spend do not say what was spent. */
  #lend({ id, purse, needs }: Extract<FromOld, { kind: 'lend' }>): void {
    const { bank, writeFailure } = this.#options.money()
    const failure = writeFailure()
    const answered = (answer: Answer | Error) =>
      this.tell({ kind: 'lent', id, answer: answer instanceof Error ? answer.message : answer })
    const name = this.#nameOf(purse)
    if (failure !== undefined) answered(new Error(failure))
    else if (name !== noPurse) bank.lend(name, needs, answered)
  }

  #write({ id, purse, accounts, cost, record, response }: Extract<FromOld, { kind: 'row' }>): void {
    // It was said before, to a process that has ended, and may have come through that.
    const known = purse === noPurse ? this.#known(record.id) : undefined
    const settled = known ?? this.#settle(this.#nameOf(purse), { accounts, cost, record, response })
    settled.then(
      () => this.tell({ kind: 'settled', id }),
      (thrown) => this.tell({ kind: 'settled', id, error: sentError(asRouterError(thrown)) }),
    )
  }

  #settle(purse: number, { accounts, cost, record, response }: Omit<HandedRow, 'purse'>): Promise<void> {
    const { underWay, money } = this.#options
    const { bank, ledger } = money()
    const onWritten = bank.spend(purse, accounts, cost)
    const settled = ledger.settle(record, response).then(onWritten)
    underWay.set(record.id, settled)
    const forget = () => void underWay.delete(record.id)
    settled.then(forget, forget)
    return settled
  }

  /** Resolves when a row is written that is known here; undefined where none is. */
  #known(id: string): Promise<void> | undefined {
    return this.#options.underWay.get(id) ?? (this.#isWritten(id) ? Promise.resolve() : undefined)
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
    else this.#recalls.get(id)?.reject(new Error('the worker ended'))
  }

  /** Its calls are over, whether they have ended or were cut off: what they were lent comes back. Those that it had adopted may go on. */
  #gone(): void {
    this.#isGone = true
    for (const [name, theirs] of [...this.#theirs]) if (theirs > 0) this.#leave(name)
    if (this.#theirs.size > 0) this.#grace = setTimeout(() => this.release(), graceMs).unref()
    for (const { reject } of this.#recalls.values()) reject(new Error('the process ended'))
  }
}
