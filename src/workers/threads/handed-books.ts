import { scheduler } from 'node:timers/promises'
import { asRouterError, type RouterError } from '../../core/errors.ts'
import type { AccountState, Answer, Held, Named, Standing, Use } from '../../lending/account.ts'
import type { Lending } from '../../lending/bank.ts'
import { UseWindow } from '../../lending/window.ts'
import { parseRows, type RefusedRow } from '../../money/ledger-entries.ts'
import { sharedClock } from '../../routing/findings.ts'
import { unavailable } from '../../store/store-error.ts'
import type { Channel } from './channel.ts'
import {
  type FromNew,
  type FromOld,
  type HandedRow,
  handoverVersion,
  noPurse,
  type Spending,
} from './handover-messages.ts'
import { receivedError } from './messages.ts'
import type { MoneyBooks } from './near-line.ts'
import { paymentOf, type SentRows } from './sent-rows.ts'

export type ChannelToNew = Channel<FromOld, FromNew>

/** A row that the other process has not answered. */
type Row = HandedRow & {
  /** It was said after its purse had told what it holds. */
  isLate: boolean
  resolve(): void
  reject(error: RouterError): void
}
/** What a purse says besides rows and loans. */
type Said = Extract<FromOld, { kind: 'giveBack' | 'use' | 'leave' }>
/** What all purses hold of an account. */
type HoldingsOf = (account: string) => AccountState['lent']
/** The lines whose calls run here, and how they are asked for what they hold. */
export type OwnPurses = {
  all(): readonly number[]
  recall(purse: number, accounts: readonly string[]): Promise<Held[]>
}
/** Those of this process, which can tell whether the row of a call is in the tables. */
type OwnBooks = MoneyBooks & { isWritten(id: string): boolean }

/**
 * The books that another process has taken over, as the lines see them whose calls still run here. When that process ends, what
 * it has not answered is kept: for `returnTo`, with which the books are here again, or for `followTo`, where yet another process has
 * them.
 */
export class HandedBooks implements MoneyBooks {
  #channel: ChannelToNew
  readonly #loans = new Map<number, Lending & { timer: NodeJS.Timeout }>()
  readonly #rows = new Map<number, Row>()
  /** All accounts of which purses may have been lent something. */
  readonly #accounts = new Map<string, Named & { uses: UseWindow }>()
  /** What purses have said since they told what they hold. */
  readonly #late = new Map<number, Said[]>()
  #spending: Spending = { purse: noPurse, accounts: [], cost: 0n }
  #failure: string | undefined
  #lastId = 0

  constructor(channel: ChannelToNew, accounts: readonly AccountState[]) {
    this.#channel = channel
    for (const { account, kind, limit, uses } of accounts) {
      const window = this.#remember({ account, kind, limit })
      for (const [endsAt, count] of uses) window.add(endsAt, count)
    }
  }

  readonly bank: MoneyBooks['bank'] = {
    join: (purse) => this.#channel.send({ kind: 'join', purse }),
    leave: (purse) => this.#leave(purse),
    lend: (purse, needs, onAnswer) => {
      const id = ++this.#lastId
      const timer = setTimeout(() => this.#answer(id, new Error(noAnswer)), longestMs).unref()
      this.#loans.set(id, { purse, needs, onAnswer, timer })
      this.#channel.send({ kind: 'lend', id, purse, needs })
    },
    giveBack: (purse, account, amount, closes = false) =>
      this.#say({ kind: 'giveBack', purse, account, amount, closes }),
    // The row follows.
    spend: (purse, accounts, cost) => {
      this.#spending = { purse, accounts, cost }
      return () => {}
    },
    use: (purse, uses) => this.#use(purse, uses),
    adopt() {},
  }

  readonly ledger: MoneyBooks['ledger'] = {
    settle: (record, response) => {
      const id = ++this.#lastId
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const isLate = this.#late.has(this.#spending.purse)
      const row = { ...this.#spending, record, response, isLate, resolve, reject }
      this.#rows.set(id, row)
      sendRow(this.#channel, id, row)
      return promise
    },
  }

  /** Each row by itself: the other process counts them. */
  async settleRows(purse: number, rows: SentRows): Promise<readonly RefusedRow[]> {
    const settled = parseRows(rows).map(async (record, index) => {
      const { accounts, cost } = paymentOf(record)
      this.bank.spend(purse, accounts, cost)
      try {
        await this.ledger.settle(record, rows.responses?.[index])
        return []
      } catch (thrown) {
        return [{ index, error: asRouterError(thrown) }]
      }
    })
    return (await Promise.all(settled)).flat()
  }

  readonly writeFailure = (): string | undefined => this.#failure

  /** Hears what concerns money and rows, and says whether it did. */
  hear(told: FromNew): boolean {
    if (told.kind === 'lent') this.#lent(told)
    else if (told.kind === 'settled') this.#settled(told)
    else if (told.kind === 'failure') this.#failure = told.failure
    else return false
    return true
  }

  /**
   * Makes `books` go on where the other process ended: what the purses hold is asked for, and rows that it did not write are
   * written. Resolves when they may be used, and nothing may be said here any more.
   */
  async returnTo(books: OwnBooks, purses: OwnPurses): Promise<void> {
    const holdingsOf = await this.#holdings(purses)
    const unwritten = await this.#adoptedBy(books, purses, holdingsOf)
    for (const row of unwritten) settleIn(books, asResent(row))
    for (const late of this.#late.values()) for (const said of late) sayTo(books, said)
    for (const { purse, needs, onAnswer, timer } of this.#loans.values()) {
      clearTimeout(timer)
      books.bank.lend(purse, needs, onAnswer)
    }
  }

  /**
   * Goes on with another process, which has got the books meanwhile. Resolves to why it has not adopted these lines, after which this
   * may be tried again; undefined where it has.
   */
  async followTo(channel: ChannelToNew, port: number, purses: OwnPurses): Promise<string | undefined> {
    const holdingsOf = await this.#holdings(purses)
    const told = [...purses.all()]
    const accounts = [...this.#accounts.values()]
      // Uses that were said are known there.
      .map((one) => ({ ...one, uses: [], lent: holdingsOf(one.account) }))
      .filter(({ lent }) => lent.length > 0)
    channel.send({ kind: 'adopt', version: handoverVersion, accounts, purses: told, port })
    // Before it lends what they have cost.
    const sent = new Set(this.#rows.keys())
    for (const [id, row] of this.#rows) sendRow(channel, id, asResent(row))
    const answer = await withinPatience(channel.take('adopted', 'refused'))
    if (answer?.kind !== 'adopted') return answer?.reason ?? 'it does not respond'
    this.#channel = channel
    const late = [...this.#late.values()].flat()
    this.#late.clear()
    for (const purse of purses.all()) if (!told.includes(purse)) this.bank.join(purse)
    for (const [id, row] of this.#rows) if (!sent.has(id)) sendRow(channel, id, asResent(row))
    for (const said of late) channel.send(said)
    for (const [id, { purse, needs }] of this.#loans) channel.send({ kind: 'lend', id, purse, needs })
    return undefined
  }

  /** Asks all purses for what they hold. What each says after that is kept as well. */
  async #holdings(purses: OwnPurses): Promise<HoldingsOf> {
    const names = [...this.#accounts.keys()]
    this.#late.clear()
    for (const row of this.#rows.values()) row.isLate = false
    const told = purses.all().map(async (purse) => {
      const held = await withinPatience(purses.recall(purse, names).catch(() => undefined))
      this.#late.set(purse, [])
      // Of one that does not answer nothing is known: the bank asks it once more before it lends what it may have.
      const all = held ?? names.map((account) => ({ account, held: null }))
      return all.filter(({ held }) => held !== 0n).map((one) => ({ ...one, purse }))
    })
    const loans = Map.groupBy((await Promise.all(told)).flat(), ({ account }) => account)
    return (account) => (loans.get(account) ?? []).map(({ purse, held }) => [purse, held])
  }

  /** Resolves to the rows that the tables do not have. Tries until the tables can be read. */
  async #adoptedBy(books: OwnBooks, purses: OwnPurses, holdingsOf: HoldingsOf): Promise<readonly Row[]> {
    for (;;) {
      try {
        const [written, unwritten] = [[] as Row[], [] as Row[]]
        for (const row of this.#rows.values()) (books.isWritten(row.record.id) ? written : unwritten).push(row)
        for (const purse of purses.all()) books.bank.join(purse)
        const accounts = [...this.#accounts.values()]
        books.bank.adopt(accounts.map((one) => ({ ...one, uses: one.uses.all(), lent: holdingsOf(one.account) })))
        for (const { resolve } of written) resolve()
        return unwritten
      } catch (thrown) {
        if (!unavailable(thrown)) throw thrown
        await scheduler.wait(retryMs)
      }
    }
  }

  #leave(purse: number): void {
    for (const [id, loan] of this.#loans) if (loan.purse === purse) this.#takeLoan(id)
    this.#say({ kind: 'leave', purse })
  }

  #say(said: Said): void {
    this.#late.get(said.purse)?.push(said)
    this.#channel.send(said)
  }

  #use(purse: number, uses: readonly Use[]): void {
    for (const { account, endsAt, uses: count } of uses) {
      const window = this.#accounts.get(account)?.uses
      window?.add(endsAt, count)
      // Forgets what is over.
      window?.sum(sharedClock())
    }
    this.#say({ kind: 'use', purse, uses })
  }

  #lent({ id, answer }: Extract<FromNew, { kind: 'lent' }>): void {
    if (typeof answer !== 'string') for (const standing of answer.standings) this.#remember(standing)
    this.#answer(id, typeof answer === 'string' ? new Error(answer) : answer)
  }

  #answer(id: number, answer: Answer | Error): void {
    this.#takeLoan(id)?.onAnswer(answer)
  }

  #takeLoan(id: number): Lending | undefined {
    const loan = this.#loans.get(id)
    clearTimeout(loan?.timer)
    this.#loans.delete(id)
    return loan
  }

  #remember({ account, kind, limit }: Pick<Standing, 'account' | 'kind' | 'limit'>): UseWindow {
    const uses = this.#accounts.get(account)?.uses ?? new UseWindow()
    this.#accounts.set(account, { account, kind, limit, uses })
    return uses
  }

  #settled({ id, error }: Extract<FromNew, { kind: 'settled' }>): void {
    const row = this.#rows.get(id)
    this.#rows.delete(id)
    if (error) row?.reject(receivedError(error))
    else row?.resolve()
  }
}

/** Uses are in the adopted window already, and still have to come out of what the purse was lent. */
function sayTo({ bank }: MoneyBooks, said: Said): void {
  const { purse } = said
  if (said.kind === 'giveBack') bank.giveBack(purse, said.account, said.amount, said.closes)
  else if (said.kind === 'leave') bank.leave(purse)
  else
    bank.use(
      purse,
      said.uses.map((use) => ({ ...use, uses: 0n })),
    )
}

/** Undefined where it takes too long. */
async function withinPatience<Value>(waiting: Promise<Value>): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, patienceMs, undefined)
  })
  return await Promise.race([waiting, late]).finally(() => clearTimeout(timer))
}

const patienceMs = 2_000

const retryMs = 50
/** How long a call waits for a process that may not answer. What that lends after all comes back with the next recall. */
const longestMs = 10_000
const noAnswer = 'The process that holds accounting does not respond.'

function sendRow(to: ChannelToNew, id: number, { purse, accounts, cost, record, response }: HandedRow): void {
  to.send({ kind: 'row', id, purse, accounts, cost, record, response })
}

/** What was told before its purse said what it holds does not come out of that. */
function asResent(row: Row): Row {
  return row.isLate ? row : { ...row, purse: noPurse }
}

/** Only the bank knows what a row has cost that can never be written. */
function settleIn(
  { bank, ledger }: MoneyBooks,
  { purse, accounts, cost, record, response, resolve, reject }: Row,
): void {
  const onWritten = bank.spend(purse, accounts, cost)
  ledger.settle(record, response).then(() => {
    onWritten()
    resolve()
  }, reject)
}
