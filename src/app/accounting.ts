import type { CallRecord } from '../core/call.ts'
import type { CreationLimits } from '../core/creation-limits.ts'
import { hourMs } from '../core/time.ts'
import { type LedgerQueue, openLedger } from '../money/ledger.ts'
import { parseRows } from '../money/ledger-entries.ts'
import { LedgerMetrics } from '../observe/call-metrics.ts'
import { LiveCounts } from '../observe/live-counts.ts'
import type { Log } from '../observe/log.ts'
import { RefusedCalls } from '../observe/refused-calls.ts'
import type { Tracing } from '../observe/tracing.ts'
import { openStore, type Store } from '../store/open.ts'
import { isDamage, storeError } from '../store/store-error.ts'
import type { RowsLedger } from '../workers/threads/sent-rows.ts'

/** State that a process has once, however many threads serve its calls: the database, the rows that are to be written, the purge. */
export type Accounting = {
  store: Store
  metrics: LedgerMetrics
  /** Current counts, for those who watch. */
  live: LiveCounts
  /** The calls that were refused last. */
  refused: RefusedCalls
  ledger: Pick<LedgerQueue, 'settle' | 'ready' | 'backlog'> & RowsLedger
  damage: DamageWatch
  /** Returns why no row can be written, as a message for clients. */
  writeFailure(): string | undefined
  /** Writes the rest of the rows and lets another router have the database. It can be read as before. */
  release(): Promise<void>
  /** Takes the database back. Rejects with StoreError when another router has it, or it cannot be used: then that may be tried once more. */
  reopen(): Promise<void>
}

/** `onFailure` is called with what `writeFailure` returns when that may have changed. */
type AccountingOptions = {
  log: Log
  onFailure(failure: string | undefined): void
  metrics: ConstructorParameters<typeof LedgerMetrics>[0]
  tracing?: Tracing | undefined
  /** Returns the current settings: how many responses an organization can store, and for how long messages of providers are stored. */
  config(): StorageSettings
}

type StorageSettings = { manage: { limits: CreationLimits }; errors: { keepMs: number } }

/** Opens the database for this process alone. */
export async function openAccounting(
  url: string,
  { log, onFailure: reportFailure, config, ...settings }: AccountingOptions,
  started: AsyncDisposableStack,
): Promise<Accounting> {
  const metrics = new LedgerMetrics(settings.metrics)
  const live = new LiveCounts()
  const { tracing } = settings
  const store = started.adopt(await openDatabase(url, log), (open) => open.close())
  started.adopt(store.integrity, (checks) => checks.close())
  const onFailure = () => reportFailure(accounting.writeFailure())
  const damage = watchDamage(store, log, onFailure)
  const begin = () => startWriting({ store, damage, log, onFailure, metrics, config })
  let writing = begin()
  started.defer(() => writing.end())
  const accounting: Accounting = {
    store,
    metrics,
    live,
    refused: new RefusedCalls(),
    ledger: {
      settle(record, response) {
        metrics.count(record)
        live.count(record)
        tracing?.record(record)
        return writing.ledger.settle(withoutContents(record), response)
      },
      settleSent(rows) {
        const settled = { ...rows }
        if (!tracing && !live.isWatched) {
          metrics.countText(rows.text)
          return writing.ledger.settleRows(settled)
        }
        const records = parseRows(rows)
        for (const record of records) {
          metrics.count(record)
          live.count(record)
          tracing?.record(record)
        }
        // Workers keep the contents of calls that become spans, and of no others.
        const hasContents = records.some(({ contents }) => contents)
        if (hasContents) settled.text = JSON.stringify(records.map(withoutContents))
        return writing.ledger.settleRows(settled)
      },
      ready: () => writing.ledger.ready(),
      backlog: () => writing.ledger.backlog(),
    },
    damage,
    writeFailure: () => damage.failure() ?? writing.ledger.writeFailure(),
    async release() {
      // What cannot be written was reported, and stays in the spill file.
      await writing.end().catch(() => {})
      await store.unlock()
    },
    async reopen() {
      await store.relock()
      try {
        await recover(store, log)
      } catch (thrown) {
        await store.unlock()
        throw storeError(thrown, url)
      }
      writing = begin()
    },
  }
  return accounting
}

/** Removes the contents of a row, which may end up in a file: they are for spans alone. */
function withoutContents(record: CallRecord): CallRecord {
  if (record.contents === undefined) return record
  const { contents: _, ...stored } = record
  return stored
}

type Writing = { ledger: LedgerQueue; end(): Promise<void> }

function startWriting(
  own: Pick<Accounting, 'store' | 'damage' | 'metrics'> &
    Pick<AccountingOptions, 'log' | 'config'> & { onFailure(): void },
): Writing {
  const { store, damage, log, onFailure, metrics, config } = own
  const ledger = openLedger(store.ledger.openWriter(), {
    onError: (err, { backlog, lost }) => {
      damage.saw(err)
      log.error({ err, backlog, lost }, 'calls could not be written to the ledger')
      onFailure()
    },
    onCommit: metrics.committed,
    onRecovery: () => {
      log.info('calls are written to the ledger again')
      onFailure()
    },
  })
  const { responses, held, pluginValues, providerMessages } = store
  const purge = async (most: number) =>
    Math.max(...(await Promise.all([responses, held, pluginValues].map((table) => table.purge(most)))))
  const onError = (err: unknown) => {
    damage.saw(err)
    log.error({ err }, 'expired rows could not be deleted')
  }
  let warnedAt = 0
  const trim = async (most: number) => {
    const organization = await responses.trim(config().manage.limits, most)
    if (organization === undefined) return 0
    if (Date.now() - warnedAt >= hourMs) {
      log.warn({ organization }, 'the oldest stored responses are deleted: there are more than manage.limits allows')
      warnedAt = Date.now()
    }
    return most
  }
  const forget = (most: number) => providerMessages.purge(most, Date.now() - config().errors.keepMs)
  const purges = [
    startPurge({ purge }, onError),
    startPurge({ purge: trim }, onError, minuteMs),
    startPurge({ purge: forget }, onError, minuteMs),
  ]
  return {
    ledger,
    async end() {
      for (const each of purges) each.stop()
      await ledger.close()
    },
  }
}

/** Opens the database for this router alone, and writes the rows that an earlier process could not. */
async function openDatabase(url: string, log: Log): Promise<Store> {
  const store = await openStore(url, { asRouter: true })
  try {
    await store.proveWritable()
    await recover(store, log)
    return store
  } catch (thrown) {
    await store.close()
    throw thrown
  }
}

async function recover({ ledger }: Store, log: Log): Promise<void> {
  const recovered = await ledger.recover((lost, reason) =>
    log.error({ lost, reason }, 'a call left by an earlier process cannot be written to the ledger'),
  )
  if (recovered > 0) log.warn({ recovered }, 'calls left by an earlier process were written to the ledger')
}

/** Watch over damage of the database. */
type DamageWatch = {
  /** Returns the reason why nothing may be written, as a message for clients; undefined for a sound database. */
  failure(): string | undefined
  /** Looks at anything that was thrown. Damage that was met once is there until the next start. */
  saw(thrown: unknown): void
  /** Records damage, with these facts for the log. */
  report(facts: object): void
}

/**
 * Looks for damage in the tables that decide about calls, and in what reads and writes throw. `onFound` is called once when there is any.
 */
function watchDamage({ integrity }: Pick<Store, 'integrity'>, log: Log, onFound: () => void = () => {}): DamageWatch {
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

/** Rows per commit: each commit blocks the event loop for some milliseconds. */
const batchSize = 100
const minuteMs = 60_000

/** A running purge. */
type Purge = { stop(): void }

/**
 * Deletes what expired, now and every hour, in batches between which other work goes on. A failure is reported, and tried again with the
 * next round.
 */
export function startPurge(
  { purge }: Pick<Store['responses'], 'purge'>,
  onError: (error: unknown) => void,
  everyMs = hourMs,
): Purge {
  let next: NodeJS.Timeout | undefined
  let isStopped = false
  const run = async () => {
    let more = false
    try {
      more = (await purge(batchSize)) === batchSize
    } catch (thrown) {
      onError(thrown)
    }
    if (!isStopped) next = setTimeout(run, more ? 0 : everyMs).unref()
  }
  void run()
  return {
    stop() {
      isStopped = true
      clearTimeout(next)
    },
  }
}
