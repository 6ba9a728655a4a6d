import { existsSync, readFileSync } from 'node:fs'
import Database from 'better-sqlite3'

/**
 * Loaded before anything else (`node --import`), this lets a test break the database of a running process, in every
 * thread: while a file `<database>.fault` says `full` or `read-only`, all connections are, by the engine's own means.
 */
const { transaction, exec } = Database.prototype

Database.prototype.transaction = function (this: Database.Database, change: (...args: never[]) => unknown) {
  const begin = transaction.call(this, change)
  const broken =
    (run: (...args: never[]) => unknown) =>
    (...args: never[]) => {
      injectFaults(this)
      return run(...args)
    }
  return Object.assign(broken(begin), { immediate: broken(begin.immediate), exclusive: broken(begin.exclusive) })
} as typeof transaction

Database.prototype.exec = function (this: Database.Database, sql: string) {
  if (sql.startsWith('BEGIN')) injectFaults(this)
  return exec.call(this, sql)
} as typeof exec

function injectFaults(db: Database.Database): void {
  const path = `${db.name}.fault`
  const fault = existsSync(path) ? readFileSync(path, 'utf8') : ''
  db.pragma(`max_page_count = ${fault === 'full' ? 1 : 4_294_967_294}`)
  db.pragma(`query_only = ${fault === 'read-only' ? 'ON' : 'OFF'}`)
}
