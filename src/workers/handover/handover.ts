import { setTimeout } from 'node:timers/promises'
import type { Need, Reserved } from '../../accounts/account.ts'
import type { AccountsStep, Caller, MainAccounts } from '../../accounts/instance-accounts.ts'
import type { HeldAccount } from '../../accounts/replaced-process.ts'
import type { Accounting } from '../../app/accounting.ts'
import { RouterError } from '../../core/errors.ts'
import type { RefusedRow, RowsText } from '../../money/ledger-entries.ts'
import type { Log } from '../../observe/log.ts'
import type { Finding } from '../../routing/findings.ts'
import { controlPathOf } from '../../store/open.ts'
import { StoreError } from '../../store/store-error.ts'
import { receivedError } from '../threads/messages.ts'
import type { SentRows, SentRowsParts } from '../threads/sent-rows.ts'
import { type Channel, type ControlSocket, listenForSuccessor } from './channel.ts'
import { type FromNew, type FromOld, handoverVersion } from './messages.ts'

type ChannelToNew = Channel<FromOld, FromNew>

type HandoverParts = {
  storeUrl: string
  port: number
  accounting: Accounting
  accounts: MainAccounts
  readSpent(account: string): bigint
  log: Log
  /** The rows that workers have sent. */
  rows(): readonly SentRows[]
  findings(): Finding[]
  /** Returns why no other process can take over now. */
  reasonToKeep(): string | undefined
  /** Called with what the other process reports besides money and rows. */
  onMessage(message: FromNew): void
  /** Ends what serves here, which another process does now; resolves when the last call has ended. */
  retire(): Promise<void>
}

type Unsettled = { rows: RowsText; resolve(refused: readonly RefusedRow[]): void }
type Undecided = {
  caller: Caller
  needs: readonly Need[]
  resolve(reserved: Reserved): void
  reject(thrown: unknown): void
}

/** How often this process reports what its calls hold, and tries to have its database back. Milliseconds. */
const [reportMs, retryMs] = [5, 50]
/** Time for workers to learn that their rows are on disk, before the tables of spend are read again. Milliseconds. */
const patienceMs = 2_000

/**
 * The hand-over of the database to another process, which then decides about everything that the calls here need beyond what they hold, and
 * writes their rows. If that process ends first, the database comes back.
 */
export class Handover {
  readonly #parts: HandoverParts
  #channel: ChannelToNew | undefined
  #control: ControlSocket | undefined
  #retirement: Promise<void> | undefined
  /** Pending while the database comes back. */
  #returning: Promise<void> | undefined
  #isOver = false
  readonly #unsettled = new Map<number, Unsettled>()
  readonly #undecided = new Map<number, Undecided>()
  readonly #reported = new Map<string, { text: string; one: HeldAccount }>()
  #lastId = 0
  #answered = 0
  /** Resolves when another process serves, and the last call has ended here. */
  readonly retired: Promise<void>
  readonly #onRetired: () => void

  constructor(parts: HandoverParts) {
    this.#parts = parts
    const { promise, resolve } = Promise.withResolvers<void>()
    this.retired = promise
    this.#onRetired = resolve
    parts.accounts.decideBy((caller, needs) => this.#decide(caller, needs))
  }

  /** The ledger of whichever process has the database. */
  readonly ledger: SentRowsParts['ledger'] = {
    settleSent: (rows) => this.#settle(rows),
    settle: async (record, response) => {
      const text = JSON.stringify([record])
      const [refused] = await this.#settle({ text, count: 1, ...(response && { responses: [response] }) })
      if (refused) throw refused.error
    },
  }

  /** Lets another process take over from now on. */
  async offer(): Promise<void> {
    const { storeUrl, log } = this.#parts
    const path = controlPathOf(storeUrl)
    if (path === undefined) return
    try {
      this.#control = await listenForSuccessor(path, (channel: ChannelToNew) => void this.#asked(channel))
    } catch (err) {
      log.error({ err }, 'no other process can take over from this one')
    }
    if (this.#isOver) this.#control?.close()
  }

  /** Sends a message to the process that has taken over. */
  send(message: FromOld): void {
    this.#channel?.send(message)
  }

  close(): void {
    this.#isOver = true
    this.#control?.close()
    this.#channel?.close()
  }

  async #settle(rows: RowsText): Promise<readonly RefusedRow[]> {
    while (this.#returning) await this.#returning
    if (!this.#channel) return await this.#parts.accounting.ledger.settleSent(rows)
    const id = ++this.#lastId
    const { promise, resolve } = Promise.withResolvers<readonly RefusedRow[]>()
    this.#unsettled.set(id, { rows, resolve })
    this.send({ kind: 'rows', id, rows })
    await this.#report()
    return await promise
  }

  async #decide(caller: Caller, needs: readonly Need[]): Promise<Reserved> {
    while (this.#returning) await this.#returning
    if (!this.#channel) return await this.#parts.accounts.step((accounts) => accounts.reserve(caller, needs))
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<Reserved>()
    this.#undecided.set(id, { caller, needs, resolve, reject })
    this.send({ kind: 'reserve', id, needs })
    return await promise
  }

  async #asked(channel: ChannelToNew): Promise<void> {
    const asked = await channel.take('takeOver')
    const reason = asked && this.#reasonToKeep(asked.version)
    if (asked && reason === undefined) return await this.#handOver(channel)
    if (reason !== undefined) channel.send({ kind: 'refused', reason })
    channel.close()
  }

  #reasonToKeep(version: number): string | undefined {
    if (version !== handoverVersion)
      return 'these versions cannot hand over to each other; stop it, then start the new one.'
    if (this.#channel || this.#returning || this.#isOver) return 'it is already handing over, or stopping.'
    return this.#parts.reasonToKeep() ?? this.#parts.accounting.writeFailure()
  }

  /** The rows that have been settled are in the tables when the other process locks the database; those after them go to it. */
  async #handOver(channel: ChannelToNew): Promise<void> {
    const { accounting, accounts, log, port, findings } = this.#parts
    this.#control?.close()
    this.#channel = channel
    this.#reported.clear()
    await accounts.step((step) => step.share())
    channel.send({ kind: 'found', findings: findings() })
    const timer = setInterval(() => void this.#report(), reportMs).unref()
    channel.listen((message) => this.#handle(message))
    await this.#report()
    await accounting.release()
    channel.send({ kind: 'released', port })
    log.info('another process has the database')
    await channel.ended()
    clearInterval(timer)
    this.#channel = undefined
    this.#returning = this.#takeBack()
  }

  #handle(message: FromNew): void {
    if (message.kind === 'settled') this.#settled(message)
    else if (message.kind === 'reserved') void this.#reserved(message)
    else if (message.kind === 'stop') this.#retirement ??= this.#parts.retire().then(this.#onRetired)
    else this.#parts.onMessage(message)
  }

  #settled({ id, refused }: Extract<FromNew, { kind: 'settled' }>): void {
    const unsettled = this.#unsettled.get(id)
    this.#unsettled.delete(id)
    unsettled?.resolve(refused.map(({ index, error }) => ({ index, error: receivedError(error) })))
  }

  async #reserved({ id, reserved, error }: Extract<FromNew, { kind: 'reserved' }>): Promise<void> {
    const undecided = this.#undecided.get(id)
    this.#undecided.delete(id)
    if (!undecided) return
    const { caller, needs, resolve, reject } = undecided
    try {
      const own = await this.#parts.accounts.step((accounts) => {
        this.#answered = id
        if (error) throw receivedError(error)
        return reserved?.isReserved ? grantAndReserve(accounts, { caller, needs, reserved }) : reserved
      })
      if (own) resolve(own)
    } catch (thrown) {
      reject(thrown)
    }
    await this.#report()
  }

  /** Reports what the calls here hold, as far as it has changed. Rows that were sent are not part of that. */
  async #report(): Promise<void> {
    const accounts = await this.#parts.accounts.step((step) => {
      const sent = new Map<string, bigint>()
      for (const { accounts: names, cost } of this.#parts.rows().flatMap((rows) => rows.unconfirmed()))
        for (const name of names) sent.set(name, (sent.get(name) ?? 0n) + cost)
      return { answered: this.#answered, changed: this.#changed(step, sent) }
    })
    if (accounts.changed.length > 0)
      this.send({ kind: 'held', answered: accounts.answered, accounts: accounts.changed })
  }

  /** What is not held goes back: from now on the other process decides about it. */
  #changed(step: AccountsStep, sent: ReadonlyMap<string, bigint>): HeldAccount[] {
    const changed: HeldAccount[] = []
    const report = (one: HeldAccount) => {
      const text = `${this.#answered} ${one.held} ${one.uses.join(' ')}`
      if (this.#reported.get(one.account)?.text !== text) changed.push(one)
      this.#reported.set(one.account, { text, one })
    }
    const idle = new Map(this.#reported)
    for (const { account, kind, limit } of step.inUse()) {
      const { held: all, uses } = step.giveBack(account)
      idle.delete(account)
      const rest = all - (sent.get(account) ?? 0n)
      report({ account, kind, limit, held: rest > 0n ? rest : 0n, uses })
    }
    for (const { one } of idle.values()) report({ ...one, held: 0n, uses: [] })
    return changed
  }

  /** The process that had the database has ended, while calls run here. */
  async #takeBack(): Promise<void> {
    const { accounting, accounts, readSpent, log } = this.#parts
    await this.#reopened()
    if (this.#isOver) return
    // Rows that the other process has written are skipped.
    const settling = [...this.#unsettled.values()].map(async ({ rows, resolve }) => {
      resolve(await accounting.ledger.settleSent(rows))
    })
    this.#unsettled.clear()
    await Promise.all(settling)
    const until = performance.now() + patienceMs
    while (this.#parts.rows().some((rows) => rows.hasUnconfirmed()) && performance.now() < until) await setTimeout(1)
    await accounts.alone(readSpent)
    this.#returning = undefined
    this.#parts.onMessage({ kind: 'changed', change: { failure: accounting.writeFailure() } })
    for (const { caller, needs, resolve, reject } of this.#undecided.values())
      this.#decide(caller, needs).then(resolve, reject)
    this.#undecided.clear()
    log.warn('the process that had the database has ended; this process has it again')
    await this.offer()
  }

  /** Resolves when the database is open again. */
  async #reopened(): Promise<void> {
    const { accounting, log } = this.#parts
    let logged = ''
    for (; !this.#isOver; await setTimeout(retryMs)) {
      try {
        return await accounting.reopen()
      } catch (thrown) {
        if (!(thrown instanceof StoreError)) throw thrown
        if (thrown.message !== logged) log.warn({ err: thrown }, 'another process has the database; calls are queued')
        logged = thrown.message
        this.#rejectUndecided()
      }
    }
  }

  #rejectUndecided(): void {
    const message = 'Another process has the database. Try again.'
    for (const { reject } of this.#undecided.values())
      reject(new RouterError('unavailable', message, { retryAfterMs: 1_000 }))
    this.#undecided.clear()
  }
}

function grantAndReserve(
  accounts: AccountsStep,
  { caller, needs, reserved }: { caller: Caller; needs: readonly Need[]; reserved: Reserved & { isReserved: true } },
): Reserved {
  if (caller.isGone) throw new Error('the worker ended')
  needs.forEach((need, index) => {
    accounts.grant(need, { amount: reserved.parts[index]?.amount ?? 0n })
  })
  return accounts.reserve(caller, needs)
}
