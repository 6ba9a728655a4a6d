import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Damage, Integrity } from '../../checks.ts'
import { StoreError, storeError } from '../../store-error.ts'
import type { Connection } from '../connection.ts'
import { inMemory } from '../database-files.ts'

/** A reply of the thread: what is damaged, or why it could not find out. */
export type IntegrityAnswer = { damage: Damage } | { failure: string; reason: string | undefined }

/** Maximum time for which the end of a process waits for a check. Milliseconds. */
const patienceMs = 2_000

/** Size of a database that is checked in a few milliseconds; a thread alone would take ten times as long to start. */
const fewBytes = 2 ** 20

function bytesOf(db: Connection): number {
  const [pages, size] = ['page_count', 'page_size'].map((name) => Number(db.pragma(name, { simple: true })))
  return (pages ?? 0) * (size ?? 0)
}

/** The checks of a database. */
export function integrity(db: Connection): Integrity {
  let running: Worker | undefined
  return {
    checkAll: async () => damageOf(db, ['integrity_check(100)', 'foreign_key_check']),
    async checkDeciding() {
      if (db.name === inMemory || bytesOf(db) <= fewBytes) return decidingDamage(db)
      const { promise, resolve, reject } = Promise.withResolvers<Damage>()
      const worker = new Worker(new URL('./integrity-worker.ts', import.meta.url), { workerData: db.name })
      running = worker
      worker.unref()
      worker.on('message', (answer: IntegrityAnswer) => {
        if ('damage' in answer) resolve(answer.damage)
        else reject(new StoreError(answer.failure, undefined, answer.reason))
      })
      worker.on('error', (error) => reject(storeError(error, db.name)))
      worker.on('exit', () => {
        running = undefined
        reject(new StoreError(`${db.name}: the thread that checks the database ended`))
      })
      return await promise
    },
    async close() {
      const thread = running
      if (!thread) return
      const stopped = new AbortController()
      const ended = once(thread, 'exit', { signal: stopped.signal }).catch(() => {})
      await Promise.race([ended, setTimeout(patienceMs, undefined, { signal: stopped.signal }).catch(() => {})])
      stopped.abort()
      await thread.terminate()
    },
  }
}

/** Finds damage in the tables that decide whether a call may run. They are small beside those that calls fill. */
export function decidingDamage(db: Connection): Damage {
  return damageOf(
    db,
    deciding.map((table) => `integrity_check(${table})`),
  )
}

const deciding = [
  ...['organizations', 'credits', 'api_keys', 'groups', 'aliases', 'policies'],
  ...['key_spend', 'group_spend', 'organization_spend'],
]

function damageOf(db: Connection, pragmas: readonly string[]): Damage {
  const found = pragmas.flatMap((pragma) => {
    try {
      return (db.pragma(pragma) as object[]).map((row) => Object.values(row).join(' '))
    } catch (thrown) {
      const { reason, message } = storeError(thrown, db.name)
      if (reason === undefined) throw thrown
      return [message]
    }
  })
  return [...new Set(found)].filter((line) => line !== 'ok')
}
