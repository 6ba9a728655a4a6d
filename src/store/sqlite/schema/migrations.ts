import { damageError, StoreError } from '../../store-error.ts'
import type { Connection } from '../connection.ts'
import { firstMigrations } from './first-migrations.ts'
import type { Migration } from './types.ts'

/** All steps, in order: the version of a database is the number of steps that were applied to it. */
export const migrations: readonly Migration[] = [
  ...firstMigrations,
  {
    name: 'the permission to operate',
    sql: `
      -- Credit, the balance as a limit, and the organization's own limits and rules. Of the keys that there are, the one of the
      -- first start has it; the command line makes others.
      ALTER TABLE api_keys ADD COLUMN operate TEXT NOT NULL DEFAULT 'none' CHECK (operate IN ('none', 'read', 'write'));
      UPDATE api_keys SET operate = 'write' WHERE created_by_id = 'first-start' AND manage = 'write';
      CREATE INDEX api_keys_operating ON api_keys (organization) WHERE operate = 'write';
    `,
  },
  {
    name: 'answers to requests with an idempotency key',
    sql: `
      CREATE TABLE idempotent_answers (
        organization TEXT NOT NULL REFERENCES organizations (id),
        key TEXT NOT NULL,
        request TEXT NOT NULL,
        answer TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (organization, key)
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    name: 'more figures of usage',
    sql: `
      ALTER TABLE key_usage ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE key_usage ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE key_usage ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE key_usage ADD COLUMN partial INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE key_usage ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE key_usage ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE organization_usage ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE organization_usage ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE organization_usage ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE organization_usage ADD COLUMN partial INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE organization_usage ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE organization_usage ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
      UPDATE key_usage SET cached_tokens = found.cached_tokens, reasoning_tokens = found.reasoning_tokens,
          failed = found.failed, partial = found.partial, estimated = found.estimated, unpriced = found.unpriced
        FROM (
          SELECT organization, key, at / 3600000 AS hour, operation, provider, model,
            sum(coalesce(cache_read, 0) + coalesce(cache_read_audio, 0)) AS cached_tokens,
            sum(coalesce(reasoning, 0)) AS reasoning_tokens, sum(outcome = 'failed') AS failed,
            sum(outcome = 'partial') AS partial, sum(estimated) AS estimated, sum(unpriced) AS unpriced
          FROM ledger GROUP BY 1, 2, 3, 4, 5, 6
        ) AS found
        WHERE key_usage.organization = found.organization AND key_usage.key = found.key AND key_usage.hour = found.hour
          AND key_usage.operation = found.operation AND key_usage.provider = found.provider AND key_usage.model = found.model;
      UPDATE organization_usage SET cached_tokens = found.cached_tokens, reasoning_tokens = found.reasoning_tokens,
          failed = found.failed, partial = found.partial, estimated = found.estimated, unpriced = found.unpriced
        FROM (
          SELECT organization, hour, operation, provider, model, sum(cached_tokens) AS cached_tokens,
            sum(reasoning_tokens) AS reasoning_tokens, sum(failed) AS failed, sum(partial) AS partial,
            sum(estimated) AS estimated, sum(unpriced) AS unpriced
          FROM key_usage GROUP BY 1, 2, 3, 4, 5
        ) AS found
        WHERE organization_usage.organization = found.organization AND organization_usage.hour = found.hour
          AND organization_usage.operation = found.operation AND organization_usage.provider = found.provider
          AND organization_usage.model = found.model;
    `,
  },
  {
    name: 'the request ids of clients',
    sql: 'ALTER TABLE ledger ADD COLUMN request_id TEXT',
  },
  {
    name: 'the model that served, where it is not the one asked for',
    sql: 'ALTER TABLE ledger ADD COLUMN served TEXT',
  },
  {
    name: 'counts of tools of providers',
    sql: `
      ALTER TABLE ledger ADD COLUMN code_runs INTEGER;
      ALTER TABLE ledger ADD COLUMN x_searches INTEGER;
      ALTER TABLE ledger ADD COLUMN maps_groundings INTEGER;
      ALTER TABLE ledger ADD COLUMN containers INTEGER;
      ALTER TABLE ledger ADD COLUMN drawing_input INTEGER;
      ALTER TABLE ledger ADD COLUMN drawing_output INTEGER;
    `,
  },
  {
    name: 'state that providers hold',
    sql: `
      CREATE TABLE held_state (
        organization TEXT NOT NULL,
        provider TEXT NOT NULL,
        id TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (organization, provider, id)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX held_state_by_expiry ON held_state (expires_at);
    `,
  },
  {
    name: 'counts of images and of reranks',
    sql: `
      ALTER TABLE ledger ADD COLUMN megapixels REAL;
      ALTER TABLE ledger ADD COLUMN queries INTEGER;
      ALTER TABLE ledger ADD COLUMN input_images INTEGER;
    `,
  },
  {
    name: 'how the targets of policies are asked',
    sql: "ALTER TABLE policies ADD COLUMN routing TEXT NOT NULL DEFAULT '{}' CHECK (json_type(routing) = 'object')",
  },
  {
    name: 'attempts of calls, and answers that were damaged',
    sql: `
      -- An attempt that was followed by another one has a row of its own, which is no request: its call has one as well.
      ALTER TABLE ledger ADD COLUMN attempt_of TEXT;
      ALTER TABLE ledger ADD COLUMN damaged INTEGER;
    `,
  },
  {
    name: 'why attempts failed, and when they began',
    sql: `
      ALTER TABLE ledger ADD COLUMN failure TEXT;
      ALTER TABLE ledger ADD COLUMN started_ms INTEGER;
    `,
  },
  {
    name: 'values of plugins',
    sql: `
      CREATE TABLE plugin_values (
        plugin TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (plugin, key)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX plugin_values_by_expiry ON plugin_values (expires_at);
      -- What is said about plugins by name: true switches one on, false off.
      ALTER TABLE organizations ADD COLUMN plugins TEXT NOT NULL DEFAULT '{}' CHECK (json_type(plugins) = 'object');
      ALTER TABLE api_keys ADD COLUMN plugins TEXT NOT NULL DEFAULT '{}' CHECK (json_type(plugins) = 'object');
    `,
  },
  {
    name: 'why which targets were asked',
    sql: 'ALTER TABLE ledger ADD COLUMN explanation TEXT',
  },
  {
    name: 'what was reserved for calls, why they failed, and their traces',
    sql: `
      ALTER TABLE ledger ADD COLUMN message TEXT;
      ALTER TABLE ledger ADD COLUMN provider_code TEXT;
      ALTER TABLE ledger ADD COLUMN reserved_nano INTEGER;
      ALTER TABLE ledger ADD COLUMN trace_id TEXT;
    `,
  },
  {
    name: 'an index of the request ids of clients',
    sql: `
      CREATE INDEX ledger_by_request_id ON ledger (organization, at / 3600000, request_id, at, key)
        WHERE request_id IS NOT NULL;
    `,
  },
  {
    name: 'how many responses an organization stores',
    sql: `
      CREATE INDEX responses_by_age ON responses (organization, created_at);
      CREATE TABLE response_sums (
        organization TEXT NOT NULL PRIMARY KEY,
        responses INTEGER NOT NULL,
        bytes INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      INSERT INTO response_sums
        SELECT organization, count(*), sum(octet_length(input) + octet_length(response)) FROM responses GROUP BY organization;
      CREATE TRIGGER response_sums_more AFTER INSERT ON responses BEGIN
        INSERT INTO response_sums VALUES (new.organization, 1, octet_length(new.input) + octet_length(new.response))
          ON CONFLICT (organization) DO UPDATE SET responses = responses + 1, bytes = bytes + excluded.bytes;
      END;
      CREATE TRIGGER response_sums_less AFTER DELETE ON responses BEGIN
        UPDATE response_sums SET responses = responses - 1, bytes = bytes - octet_length(old.input) - octet_length(old.response)
          WHERE organization = old.organization;
      END;
    `,
  },
  {
    name: 'the messages of providers about failed attempts',
    sql: `
      -- By the id of the row of the ledger. A table of their own: they are deleted long before the rows.
      CREATE TABLE provider_messages (
        id TEXT NOT NULL PRIMARY KEY,
        at INTEGER NOT NULL,
        organization TEXT NOT NULL,
        message TEXT NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX provider_messages_by_age ON provider_messages (at);
      CREATE INDEX provider_messages_by_organization ON provider_messages (organization);
    `,
  },
  {
    name: 'the permission to read all organizations',
    sql: `
      ALTER TABLE api_keys ADD COLUMN instance TEXT NOT NULL DEFAULT 'none' CHECK (instance IN ('none', 'read'));
      UPDATE api_keys SET instance = 'read' WHERE created_by_id = 'first-start' AND operate = 'write';
    `,
  },
  {
    name: 'counts of pages that searches opened',
    sql: 'ALTER TABLE ledger ADD COLUMN page_visits INTEGER',
  },
  {
    name: 'the permission to read what is stored of calls',
    sql: `
      -- No key gets it, not even that of the first start: the command line grants it to the first one.
      ALTER TABLE api_keys ADD COLUMN content TEXT NOT NULL DEFAULT 'none' CHECK (content IN ('none', 'read', 'write'));
    `,
  },
]

/** Applies the missing migrations in one transaction. Throws StoreError for a database of a newer router. */
export function migrate(db: Connection, steps: readonly Migration[]): void {
  if (versionOf(db, steps.length) === steps.length) return
  const applySteps = db.transaction(() => {
    db.exec(`CREATE TABLE IF NOT EXISTS migrations (
      version INTEGER PRIMARY KEY,
      name TEXT NOT NULL,
      applied_at INTEGER NOT NULL
    ) STRICT`)
    const record = db.prepare('INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)')
    // Read a second time under the lock: another process may have migrated meanwhile.
    const applied = versionOf(db, steps.length)
    for (const [index, step] of steps.entries()) {
      if (index < applied) continue
      db.exec(step.sql)
      record.run(index + 1, step.name, Date.now())
    }
  })
  applySteps.immediate()
}

/** Returns how many steps `migrate` would apply. Throws StoreError for a database of a newer router, or of another program. */
export function missingMigrations(db: Connection, steps: readonly Migration[]): number {
  return steps.length - versionOf(db, steps.length)
}

/** Throws StoreError for a database that `migrate` would change. */
export function requireMigrated(db: Connection, steps: readonly Migration[]): void {
  if (missingMigrations(db, steps) === 0) return
  throw new StoreError(
    `${db.name}: this version of inference-router changes the tables, which it cannot do while another one uses them: stop that ` +
      'one, then start this one',
  )
}

/** The number of migrations that a database has: 0 for a new file. */
function versionOf(db: Connection, newest: number): number {
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").pluck()
  const names = tables.all()
  if (names.length === 0) return 0
  if (!names.includes('migrations')) {
    throw new StoreError(`${db.name}: this database belongs to another program; name another file in store.url`)
  }
  const version = db.prepare<[], number>('SELECT coalesce(max(version), 0) FROM migrations').pluck().get() ?? 0
  // The first step and the list of steps are one commit.
  if (version === 0 && names.length > 1) throw damageError(db.name, 'its list of migrations is empty')
  if (version > newest) {
    throw new StoreError(
      `${db.name}: this database was written by a newer inference-router (its version is ${version}, this program knows ` +
        `${newest}). There are no migrations back: start the newer program, restore the backup that was made before the update ` +
        '(inference-router restore FILE --force), or name another file in store.url.',
    )
  }
  return version
}
