import { randomUUIDv7 } from 'node:crypto'
import { accountName } from '../../accounts/account.ts'
import type { MainAccounts, UnwrittenSpend } from '../../accounts/instance-accounts.ts'
import type { Payment } from '../../accounts/table.ts'
import type { CallRecord } from '../../core/call.ts'
import { monthStart } from '../../core/time.ts'
import type { LedgerQueue } from '../../money/ledger.ts'
import { parseRows, type RefusedRow, type RowsText } from '../../money/ledger-entries.ts'
import { combined, paymentOf } from '../../money/payments.ts'
import { monthOf } from '../../store/ledger/sums.ts'

/** The ledger of the process: it counts and settles the rows of workers. Resolves to those that can never be written. */
export type RowsLedger = { settleSent(rows: RowsText): Promise<readonly RefusedRow[]> }

/** The parts of the main thread's accounting that the rows of workers need. */
export type SentRowsParts = {
  accounts: Pick<MainAccounts, 'written' | 'acknowledged' | 'release'>
  ledger: RowsLedger & Pick<LedgerQueue, 'settle'>
}

type Sent = { rows: RowsText; refused: readonly RefusedRow[] }

/**
 * The rows that one worker has sent. The worker itself counts the costs of those that it knows to be on disk; when it has died, the rest is
 * counted here. Costs whose rows it had not sent yet become a row for each key: money that was spent does not come back.
 */
export class SentRows {
  readonly #thread: number
  readonly #accounts: SentRowsParts['accounts']
  readonly #ledger: SentRowsParts['ledger']
  readonly #writing = new Set<RowsText>()
  /** Rows on disk that the worker may not know of yet, in the order of the acknowledgements. */
  #acknowledged: Sent[] = []
  #forgotten = 0
  #released: Promise<void> | undefined

  constructor(thread: number, { accounts, ledger }: SentRowsParts) {
    this.#thread = thread
    this.#accounts = accounts
    this.#ledger = ledger
  }

  /** Settles rows. Resolves to those that can never be written, once the worker may know it. */
  async settle(rows: RowsText): Promise<readonly RefusedRow[]> {
    this.#writing.add(rows)
    const refused = await this.#ledger.settleSent(rows)
    if (this.#released) {
      await this.#released
      await this.#accounts.written(paymentsOf({ rows, refused }))
    } else this.#acknowledge({ rows, refused })
    this.#writing.delete(rows)
    return refused
  }

  /** The worker has died. Resolves when its column of the accounts is free. */
  gone(): Promise<void> {
    this.#released = this.#release()
    return this.#released
  }

  async #release(): Promise<void> {
    const { unwritten, acknowledged } = await this.#accounts.release(this.#thread)
    this.#forget(acknowledged)
    const written = this.#acknowledged.flatMap(paymentsOf)
    const writing = [...this.#writing].flatMap((rows) => paymentsOf({ rows, refused: [] }))
    this.#acknowledged = []
    await this.#accounts.written(written)
    const lost = withoutSent(unwritten, [...written, ...writing])
    // As for other rows: the ledger keeps them until they can be written.
    for (const one of lost) void this.#settleEstimated(estimatedRow(one)).catch(() => {})
  }

  /** Returns the costs of rows that have arrived here, as far as the worker does not know them to be on disk. */
  unconfirmed(): Payment[] {
    this.#forget(this.#accounts.acknowledged(this.#thread))
    const writing = [...this.#writing].map((rows) => ({ rows, refused: [] }))
    return [...this.#acknowledged, ...writing].flatMap(paymentsOf)
  }

  /** Checks whether the worker does not know yet of rows that are on disk. */
  hasUnconfirmed(): boolean {
    this.#forget(this.#accounts.acknowledged(this.#thread))
    return this.#acknowledged.length > 0
  }

  #acknowledge(sent: Sent): void {
    this.#forget(this.#accounts.acknowledged(this.#thread))
    this.#acknowledged.push(sent)
  }

  #forget(acknowledged: number): void {
    this.#acknowledged.splice(0, (acknowledged - this.#forgotten) | 0)
    this.#forgotten = acknowledged
  }

  async #settleEstimated(record: CallRecord): Promise<void> {
    await this.#ledger.settle(record)
    await this.#accounts.written([paymentOf(record)])
  }
}

function paymentsOf({ rows, refused }: Sent): Payment[] {
  const isWritten = (_: CallRecord, index: number) => !refused.some((one) => one.index === index)
  return combined(parseRows(rows).filter(isWritten).map(paymentOf))
}

/** Returns what is unwritten without the costs of these rows. */
function withoutSent(unwritten: readonly UnwrittenSpend[], payments: readonly Payment[]): UnwrittenSpend[] {
  return unwritten.flatMap((one) => {
    const account = accountName(one.organization, `key ${one.key} ${one.month}`)
    const sent = payments.filter(({ accounts }) => accounts.includes(account))
    const nano = sent.reduce((rest, { cost }) => rest - cost, one.nano)
    return nano > 0n ? [{ ...one, nano }] : []
  })
}

/** Returns a row for costs of calls whose own rows were lost with their thread. */
function estimatedRow({ key, organization, group, month, nano }: UnwrittenSpend): CallRecord {
  const now = Date.now()
  const at = monthOf(now) === month ? now : monthStart(Date.parse(`${month}-01T00:00:00Z`), 1) - 1
  return {
    id: randomUUIDv7(),
    at,
    organization,
    key,
    ...(group !== undefined && { group }),
    api: 'chat',
    operation: 'chat',
    requested: '',
    provider: '',
    model: '',
    stream: false,
    outcome: 'failed',
    status: 500,
    error: 'worker_ended',
    usage: {},
    cost: { nanoUsd: Number(nano), parts: {}, priceVersion: '', estimated: true },
    dropped: [],
    attempts: 0,
    durationMs: 0,
  }
}
