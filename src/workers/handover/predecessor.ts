import { setTimeout } from 'node:timers/promises'
import type { MainAccounts } from '../../accounts/instance-accounts.ts'
import { ReplacedProcess } from '../../accounts/replaced-process.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import { parseRows } from '../../money/ledger-entries.ts'
import { combined, paymentOf } from '../../money/payments.ts'
import { controlPathOf } from '../../store/open.ts'
import { sentError } from '../threads/messages.ts'
import type { RowsLedger } from '../threads/sent-rows.ts'
import { type Channel, connectToPredecessor } from './channel.ts'
import { type FromNew, type FromOld, handoverVersion } from './messages.ts'

export type ChannelToOld = Channel<FromNew, FromOld>

/** A process that lets this one take over, and its port. */
export type Handed = { channel: ChannelToOld; port: number }

/**
 * Asks the router that has the database for it. Resolves when it may be locked; undefined where no router that can hand it over
 * runs. Throws an error with the reason of one that refuses, and StoreError.
 */
export async function takeOver(storeUrl: string): Promise<Handed | undefined> {
  const path = controlPathOf(storeUrl)
  const channel: ChannelToOld | undefined = path === undefined ? undefined : await connectToPredecessor(path)
  if (!channel) return undefined
  channel.send({ kind: 'takeOver', version: handoverVersion })
  const answer = await channel.take('refused', 'released')
  if (answer?.kind === 'refused') throw new Error(`The running router does not hand over: ${answer.reason}`)
  // One that ended meanwhile has released everything.
  return answer && { channel, port: answer.port }
}

const retryMs = 50

type PredecessorOptions = {
  accounts: MainAccounts
  /** Its column of the accounts. */
  thread: number
  readSpent(account: string): bigint
  ledger: RowsLedger
  writeFailure(): string | undefined
  /** Called with what concerns neither money nor rows. */
  onMessage(message: FromOld): void
}

/** The process that served before, whose last calls still run there: they use the accounts of this process, which writes their rows. */
export class Predecessor {
  readonly #channel: ChannelToOld
  readonly #options: PredecessorOptions
  readonly #process: ReplacedProcess
  #released: Promise<void> | undefined

  constructor(channel: ChannelToOld, options: PredecessorOptions) {
    this.#channel = channel
    this.#options = options
    this.#process = new ReplacedProcess(options)
    channel.listen((message) => this.#handle(message))
    // Its calls are over then, whether they have ended or were cut off.
    void channel.ended().then(() => {
      this.#released = this.#process.gone()
    })
  }

  get isGone(): boolean {
    return this.#released !== undefined
  }

  send(message: FromNew): void {
    this.#channel.send(message)
  }

  /** What it sends from now on is not answered: it takes the database back. */
  close(): void {
    this.#channel.listen(() => {})
    this.#channel.close()
  }

  #handle(message: FromOld): void {
    if (message.kind === 'held') void this.#hold(message)
    else if (message.kind === 'reserve') void this.#reserve(message)
    else if (message.kind === 'rows') void this.#write(message)
    else this.#options.onMessage(message)
  }

  /** Tries until the tables of spend can be read. */
  async #hold(message: Extract<FromOld, { kind: 'held' }>): Promise<void> {
    while (!this.isGone) {
      try {
        return await this.#process.held(message.accounts, message.answered)
      } catch {
        await setTimeout(retryMs)
      }
    }
  }

  async #reserve({ id, needs }: Extract<FromOld, { kind: 'reserve' }>): Promise<void> {
    try {
      const failure = this.#options.writeFailure()
      // While rows wait to be written, the tables of spend do not say what was spent.
      if (failure !== undefined) throw new RouterError('unavailable', failure)
      this.send({ kind: 'reserved', id, reserved: await this.#process.reserve(id, needs) })
    } catch (thrown) {
      this.send({ kind: 'reserved', id, error: sentError(asRouterError(thrown)) })
    }
  }

  async #write({ id, rows }: Extract<FromOld, { kind: 'rows' }>): Promise<void> {
    const { accounts, ledger, thread } = this.#options
    const records = parseRows(rows)
    await this.#process.spend(combined(records.map(paymentOf)))
    const refused = await ledger.settleSent(rows)
    const written = records.filter((_, index) => !refused.some((one) => one.index === index))
    await this.#released
    // What it had spent has moved to the first column when it has gone.
    await accounts.written(combined(written.map(paymentOf)), this.#released ? 0 : thread)
    this.send({ kind: 'settled', id, refused: refused.map(({ index, error }) => ({ index, error: sentError(error) })) })
  }
}
