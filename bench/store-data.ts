import { createHash } from 'node:crypto'
import Database from 'better-sqlite3'
import { figureNames, inLedger } from '../src/store/ledger/sums.ts'
import { openStore } from '../src/store/open.ts'

/** How large a database is to be; the rows of the ledger are spread over the days before `end` (Unix milliseconds). */
export type Size = { keys: number; rows: number; organizations: number; days: number; end: number }

/** The large organization: it has a tenth of the keys, and with them of the rows. */
export const large = 0
/** The busy key, of the large organization: it has a hundredth of all rows. */
export const busy = 0

/** The id of an organization, of a key, and the hash that a key is found by, by number. */
export const organizationId = (number: number) => uuid(1, number)
export const keyId = (number: number) => uuid(2, number)
export const keyHash = (number: number) => createHash('sha256').update(`secret ${number}`).digest()

/** Fills a new database: made by the router's own steps, filled inside the engine. `tell` hears what is done. */
export async function makeDatabase(path: string, size: Size, tell: (text: string) => void): Promise<void> {
  await (await openStore(`sqlite:${path}`)).close()
  const db = new Database(path)
  // Without a journal, which the engine thinks unsafe: what is cut off here is thrown away.
  db.unsafeMode()
  for (const setting of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -2000000', 'temp_store = MEMORY'])
    db.pragma(setting)
  db.function('hash_of', { deterministic: true }, (number) => keyHash(Number(number)))
  const indices = db
    .prepare<[], { name: string; sql: string }>(`
    SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('api_keys', 'ledger')`)
    .all()
  const step = (what: string, run: () => void) => {
    const start = performance.now()
    run()
    tell(`${what}: ${((performance.now() - start) / 1_000).toFixed(1)} s`)
  }
  for (const { name } of indices) db.exec(`DROP INDEX ${name}`)
  step(`${size.keys} keys`, () => db.exec(keysSql(size)))
  step(`${size.rows} rows`, () => db.exec(rowsSql(size)))
  for (const { name, sql } of indices) step(`index ${name}`, () => db.exec(sql))
  step('sums', () => db.exec(sumsSql))
  db.pragma('journal_mode = WAL')
  db.close()
}

/** `00000001-…`: as long as the ids of a router, and in order of their numbers. */
function uuid(kind: number, number: number): string {
  return `0000000${kind}-0000-7000-8000-${String(number).padStart(12, '0')}`
}

function uuidSql(kind: number, number: string): string {
  return `printf('0000000${kind}-0000-7000-8000-%012d', ${number})`
}

/** Every tenth key is the large organization's, the others are shared out evenly. */
function ownerSql(key: string, { organizations }: Size): string {
  return `iif(${key} % 10 = 0, ${large}, 1 + ${key} % ${organizations - 1})`
}

function numbers(name: string, count: number): string {
  return `WITH RECURSIVE ${name} (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM ${name} WHERE n + 1 < ${count})`
}

function keysSql(size: Size): string {
  return `
    INSERT INTO organizations (id, name, created_at)
      ${numbers('some', size.organizations)} SELECT ${uuidSql(1, 'n')}, 'organization ' || n, 0 FROM some;
    INSERT INTO credits SELECT 'credit ' || id, id, 1000000000000, '', 0 FROM organizations;
    INSERT INTO api_keys (id, organization, hash, prefix, name, manage, completions, labels, created_by_id, created_by_email, created_at)
      ${numbers('some', size.keys)}
      SELECT ${uuidSql(2, 'n')}, ${uuidSql(1, ownerSql('n', size))}, hash_of(n), 'ir-abcdefg', 'key ' || n,
        iif(n = ${busy}, 'write', 'none'), 'write', json_object('team', 'team ' || (n % 50)), 'bench', '', n
      FROM some;`
}

/** In order of time; one row in a hundred is of the busy key, the others of any. Twenty models of five providers; one call in fifty fails. */
function rowsSql(size: Size): string {
  const begin = size.end - size.days * 86_400_000
  return `
    INSERT INTO ledger (id, at, organization, key, api, operation, requested, provider, model, stream, outcome, status,
      error, attempts, duration_ms, first_event_ms, cost_nano, cost_parts, price_version, unpriced, estimated, input, cache_read, output, reasoning,
      dropped, user, metadata)
    ${numbers('some', size.rows)}, drawn AS MATERIALIZED (
      SELECT n, iif(n % 100 = 0, ${busy}, abs(random()) % ${size.keys}) AS key, abs(random()) % 20 AS model, abs(random()) AS dice FROM some)
    SELECT ${uuidSql(3, 'n')}, ${begin} + n * ${size.days * 86_400_000} / ${size.rows}, ${uuidSql(1, ownerSql('key', size))},
      ${uuidSql(2, 'key')}, 'chat', 'chat', 'provider-' || (model % 5) || '/model-' || model, 'provider-' || (model % 5), 'model-' || model,
      dice % 2, iif(dice % 50, 'complete', 'failed'), iif(dice % 50, 200, 502), iif(dice % 50, NULL, iif(dice % 1000, 'provider_overloaded', 'provider_timeout')),
      1, 100 + dice % 2000, iif(dice % 2, dice % 100, NULL), 1000 + dice % 100000, '{"input":1000,"output":' || (dice % 100000) || '}',
      '0123456789ab', 0, 0, dice % 5000, dice % 1000, dice % 700, dice % 300, '[]', iif(dice % 2, 'user ' || (dice / 2 % 1000), NULL),
      iif(dice % 4 = 0, json_object('task', 'task ' || (dice / 4 % 20)), NULL)
    FROM drawn;`
}

const sumsSql = `
  INSERT INTO key_usage (organization, key, hour, operation, provider, model, ${figureNames})
    SELECT organization, key, at / 3600000, operation, provider, model, ${figureNames.map((name) => inLedger[name])}
    FROM ledger GROUP BY 1, 2, 3, 4, 5, 6;
  INSERT INTO organization_usage (organization, hour, operation, provider, model, ${figureNames})
    SELECT organization, hour, operation, provider, model, ${figureNames.map((name) => `sum(${name})`)}
    FROM key_usage GROUP BY 1, 2, 3, 4, 5;
  INSERT INTO key_spend
    SELECT key, strftime('%Y-%m', hour * 3600, 'unixepoch'), sum(nano) FROM key_usage GROUP BY 1, 2;
  INSERT INTO organization_spend
    SELECT organization, strftime('%Y-%m', hour * 3600, 'unixepoch'), sum(nano) FROM organization_usage GROUP BY 1, 2;`
