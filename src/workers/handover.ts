import { setTimeout } from 'node:timers/promises'
import type { Accounting } from '../app/accounting.ts'
import type { Bank } from '../lending/bank.ts'
import type { Log } from '../observe/log.ts'
import type { Finding } from '../routing/findings.ts'
import { controlPathOf } from '../store/open.ts'
import { StoreError } from '../store/store-error.ts'
import type { ChannelToOld, Handed } from './threads/adopted-lines.ts'
import {
  type ChannelToAny,
  type ControlSocket,
  connectToPredecessor,
  connectToSuccessor,
  listenForSuccessor,
} from './threads/control-socket.ts'
import { type ChannelToNew, HandedBooks, type OwnPurses } from './threads/handed-books.ts'
import { type FromNew, type FromOld, handoverVersion } from './threads/handover-messages.ts'
import type { Lines } from './threads/lines.ts'
import type { Told } from './threads/messages.ts'
import type { MoneyBooks } from './threads/near-line.ts'
import { accountsOfCall, refusedPayers } from './threads/sent-rows.ts'
import type { Adoption } from './types.ts'

/** How often a process tries to have its database back. */
const retryMs = 50
/** The longest pause between its tries when another process refuses to adopt its lines. */
const lastRetryMs = 1_000

/**
 * Asks the router that has the database for it. Resolves when it may be locked; undefined where no router that can hand it over
 * runs. Throws an error with the reason of one that refuses, and StoreError.
 */
export async function takeBooks(storeUrl: string): Promise<Handed | undefined> {
  const path = controlPathOf(storeUrl)
  const channel = path === undefined ? undefined : await connectToPredecessor(path)
  if (!channel) return undefined
  channel.send({ kind: 'takeOver', version: handoverVersion })
  const said = await channel.take('refused', 'books')
  if (said?.kind === 'refused') throw new Error(`The running router does not hand over: ${said.reason}`)
  // One that ended meanwhile has released everything.
  if (!said || !(await channel.take('released'))) return undefined
  return { ...said, channel }
}

export type HandoverParts = {
  storeUrl: string
  port: number
  books: Accounting
  log: Log
  openBank(): Bank
  /** The lines of this process, and those of the one that has handed over to it. */
  holder: { lines?: Lines; adopted?: Adoption }
  recall: OwnPurses['recall']
  /** Lets the lines of another process go on with the books of this one. */
  adopt(handed: Handed): void
  /** What is known of providers. */
  findings(): Finding[]
  /** Ends what serves here, which another process does now; resolves when the last call has ended. */
  retire(): Promise<void>
}

/** What the lines of this process use as books: its own, or those of the process that has taken them over. */
export class Handover {
  readonly #parts: HandoverParts
  #bank: Bank
  #money: MoneyBooks
  #channel: ChannelToNew | undefined
  #control: ControlSocket | undefined
  /** Where other processes ask for the books, when they can be offered. */
  #path = ''
  #retirement: Promise<void> | undefined
  #isOver = false
  /** Resolves when another process serves, and the last call has ended here. */
  readonly retired: Promise<void>
  readonly #onRetired: () => void

  constructor(parts: HandoverParts) {
    this.#parts = parts
    this.#bank = parts.openBank()
    this.#money = this.#own()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.retired = promise
    this.#onRetired = resolve
  }

  readonly money = (): MoneyBooks => this.#money

  /** From now on another process may take over. */
  async offer(): Promise<void> {
    const { storeUrl, log } = this.#parts
    const path = controlPathOf(storeUrl)
    if (path === undefined) return
    this.#path = path
    try {
      this.#control = await listenForSuccessor(path, (channel) => void this.#asked(channel))
    } catch (err) {
      log.error({ err }, 'no other process can take over from this one')
    }
    if (this.#isOver) this.#control?.close()
  }

  /** Tells the process that has the books. */
  tell(said: Parameters<ChannelToNew['send']>[0]): void {
    this.#channel?.send(said)
  }

  close(): void {
    this.#isOver = true
    this.#control?.close()
    this.#channel?.close()
  }

  #own(): MoneyBooks {
    const { ledger, writeFailure } = this.#parts.books
    const bank = this.#bank
    return {
      bank,
      ledger,
      writeFailure,
      async settleRows(purse, rows) {
        const spent = rows.payments.map((payment) => {
          return { payment, onWritten: bank.spend(purse, payment.accounts, payment.cost) }
        })
        const refused = await ledger.settleSent(rows)
        // Of these the tables have nothing: only the bank knows what was spent.
        const unwritten = new Set(refused.length > 0 ? refusedPayers(rows, refused) : [])
        for (const { payment, onWritten } of spent) if (!unwritten.has(accountsOfCall(payment))) onWritten()
        return refused
      },
    }
  }

  async #asked(channel: ChannelToAny): Promise<void> {
    const asked = await channel.take('takeOver', 'adopt')
    const reason = asked && this.#reasonToKeep(asked.version)
    if (!asked || reason !== undefined) {
      if (reason !== undefined) channel.send({ kind: 'refused', reason })
      return channel.close()
    }
    if (asked.kind === 'adopt') this.#adopt(channel as ChannelToOld, asked)
    else await this.#handOver(channel as ChannelToNew)
  }

  #adopt(channel: ChannelToOld, asked: Extract<FromOld, { kind: 'adopt' }>): void {
    try {
      this.#parts.adopt({ ...asked, channel })
    } catch (err) {
      this.#parts.log.warn({ err }, 'the calls of the previous process cannot continue here yet')
      channel.close()
    }
  }

  #reasonToKeep(version: number): string | undefined {
    if (version !== handoverVersion)
      return 'these versions cannot hand over to each other; stop it, then start the new one.'
    if (this.#channel || this.#isOver) return 'it is already handing over, or stopping.'
    return this.#parts.books.writeFailure()
  }

  /** The rows that have been settled are in the tables when the other process locks the database; those after them go to it. */
  async #handOver(channel: ChannelToNew): Promise<void> {
    const { books, log, port, findings } = this.#parts
    this.#control?.close()
    this.#channel = channel
    const { accounts, waiting } = this.#bank.handOver()
    const handed = new HandedBooks(channel, accounts)
    channel.send({ kind: 'books', accounts, purses: this.#purses(), port })
    channel.send({ kind: 'found', findings: findings() })
    this.#money = handed
    for (const { purse, needs, onAnswer } of waiting) handed.bank.lend(purse, needs, onAnswer)
    const ended = this.#listen(channel, handed)
    await books.release()
    // What was said of a failure here is over.
    this.#relay({ kind: 'failure', failure: handed.writeFailure() })
    channel.send({ kind: 'released' })
    log.info('another process holds accounting')
    await ended
    await this.#takeBack(handed)
  }

  /** Resolves when the other process has ended. */
  async #listen(channel: ChannelToNew, handed: HandedBooks): Promise<void> {
    this.#channel = channel
    channel.listen((told) => this.#hear({ channel, handed }, told))
    await channel.ended()
    this.#channel = undefined
  }

  #hear({ channel, handed }: { channel: ChannelToNew; handed: HandedBooks }, told: FromNew): void {
    if (told.kind === 'retire') this.#retirement ??= this.#retire()
    else if (told.kind === 'failure') this.#failed(handed, told)
    else if (told.kind === 'recall') void this.#recall(channel, told)
    else if (!handed.hear(told) && told.kind !== 'takeOver') this.#relay(told as Told & FromNew)
  }

  #failed(handed: HandedBooks, told: Extract<FromNew, { kind: 'failure' }>): void {
    handed.hear(told)
    this.#relay(told)
  }

  #relay(told: Told & FromNew): void {
    this.#parts.holder.lines?.tell(told)
    this.#parts.holder.adopted?.tell(told)
  }

  /** Who asked gets the answer, or nobody: another process may have the books by then. */
  async #recall(channel: ChannelToNew, { id, purse, accounts }: Extract<FromNew, { kind: 'recall' }>): Promise<void> {
    const held = await this.#parts.recall(purse, accounts).catch(() => undefined)
    channel.send({ kind: 'held', id, held })
  }

  async #retire(): Promise<void> {
    await this.#parts.retire()
    await this.#parts.holder.adopted?.ended()
    this.#onRetired()
  }

  #purses(): number[] {
    const { lines, adopted } = this.#parts.holder
    return [...(lines?.ids() ?? []), ...(adopted?.purses() ?? [])]
  }

  /** The process that had the books has ended, while calls run here: they go on with books of their own, or with who has them now. */
  async #takeBack(handed: HandedBooks): Promise<void> {
    const { books, log } = this.#parts
    let logged = ''
    for (let pauseMs = retryMs; !this.#isOver; await setTimeout(pauseMs)) {
      try {
        await books.reopen()
        return await this.#goOnHere(handed)
      } catch (thrown) {
        if (!(thrown instanceof StoreError)) throw thrown
        const { hasFollowed, refusal } = await this.#follow(handed)
        pauseMs = refusal === undefined ? retryMs : Math.min(2 * pauseMs, lastRetryMs)
        const message = refusal ?? thrown.message
        if (hasFollowed || message === logged) continue
        log.warn({ err: thrown, refusal }, 'accounting is still held by another process; calls are queued')
        logged = message
      }
    }
  }

  /** Goes on with another process that has got the books, until that has ended as well; `refusal` is why it did not let this one. */
  async #follow(handed: HandedBooks): Promise<{ hasFollowed: boolean; refusal?: string }> {
    const { log, port } = this.#parts
    const channel = await connectToSuccessor(this.#path).catch(() => undefined)
    if (!channel) return { hasFollowed: false }
    const refusal = await handed.followTo(channel, port, this.#ownPurses())
    if (refusal !== undefined || this.#isOver) {
      channel.close()
      return { hasFollowed: false, ...(refusal !== undefined && { refusal }) }
    }
    log.warn('the process that held accounting has ended; another one holds it now')
    await this.#listen(channel, handed)
    return { hasFollowed: true }
  }

  async #goOnHere(handed: HandedBooks): Promise<void> {
    const { books, log, openBank } = this.#parts
    this.#bank = openBank()
    const own = this.#own()
    const { isWritten } = books
    await handed.returnTo({ ...own, isWritten }, this.#ownPurses())
    this.#money = own
    this.#relay({ kind: 'failure', failure: books.writeFailure() })
    log.warn('the process that held accounting has ended; this process holds it again')
    await this.offer()
  }

  #ownPurses(): OwnPurses {
    return { all: () => this.#purses(), recall: this.#parts.recall }
  }
}
