/** One step of the schema; a step that has been released is never edited, a change is a new step. */
export type Migration = { name: string; sql: string }

/** All steps, in order: the version of a database is the number of steps it has taken. */
export const migrations: readonly Migration[] = [
  {
    name: 'organizations, keys, ledger, spend',
    sql: `
      CREATE TABLE organizations (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        created_at INTEGER NOT NULL
      ) STRICT;

      CREATE TABLE credits (
        id TEXT PRIMARY KEY,
        organization TEXT NOT NULL REFERENCES organizations (id),
        nano INTEGER NOT NULL,
        note TEXT NOT NULL,
        created_at INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX credits_by_organization ON credits (organization, created_at);

      CREATE TABLE api_keys (
        id TEXT PRIMARY KEY,
        organization TEXT NOT NULL REFERENCES organizations (id),
        hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
        prefix TEXT NOT NULL,
        name TEXT NOT NULL,
        manage TEXT NOT NULL CHECK (manage IN ('none', 'read', 'write')),
        completions TEXT NOT NULL CHECK (completions IN ('none', 'read', 'write')),
        labels TEXT NOT NULL CHECK (json_type(labels) = 'object'),
        monthly_limit_nano INTEGER CHECK (monthly_limit_nano > 0),
        created_by_id TEXT NOT NULL,
        created_by_email TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        revoked_at INTEGER
      ) STRICT;
      CREATE INDEX api_keys_by_organization ON api_keys (organization, created_at);

      -- Rows outlive the keys and organizations they name: no foreign keys here and in the sums.
      CREATE TABLE ledger (
        id TEXT PRIMARY KEY,
        at INTEGER NOT NULL,
        organization TEXT NOT NULL,
        key TEXT NOT NULL,
        api TEXT NOT NULL,
        operation TEXT NOT NULL,
        requested TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        stream INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        status INTEGER NOT NULL,
        error TEXT,
        attempts INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL,
        first_event_ms INTEGER,
        cost_nano INTEGER NOT NULL,
        cost_parts TEXT NOT NULL,
        price_version TEXT NOT NULL,
        unpriced INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        reported_nano INTEGER,
        input INTEGER,
        cache_read INTEGER,
        cache_write_5m INTEGER,
        cache_write_1h INTEGER,
        output INTEGER,
        reasoning INTEGER,
        input_audio INTEGER,
        output_audio INTEGER,
        input_image INTEGER,
        output_image INTEGER,
        searches INTEGER,
        images INTEGER,
        seconds REAL,
        characters INTEGER,
        dropped TEXT NOT NULL,
        user TEXT,
        metadata TEXT
      ) STRICT;
      CREATE INDEX ledger_by_key ON ledger (key, at);
      CREATE INDEX ledger_by_organization ON ledger (organization, at);

      CREATE TABLE key_spend (
        key TEXT NOT NULL,
        month TEXT NOT NULL,
        nano INTEGER NOT NULL,
        PRIMARY KEY (key, month)
      ) STRICT, WITHOUT ROWID;

      CREATE TABLE organization_spend (
        organization TEXT NOT NULL,
        month TEXT NOT NULL,
        nano INTEGER NOT NULL,
        PRIMARY KEY (organization, month)
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    name: 'responses that are kept',
    sql: `
      ALTER TABLE organizations ADD COLUMN keeps_responses INTEGER NOT NULL DEFAULT 1 CHECK (keeps_responses IN (0, 1));
      ALTER TABLE organizations ADD COLUMN retention_days INTEGER NOT NULL DEFAULT 30
        CHECK (retention_days BETWEEN 1 AND 3650);

      -- Ids of responses that a provider made are the provider's: unique only within an organization.
      CREATE TABLE responses (
        organization TEXT NOT NULL,
        id TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        previous TEXT,
        model TEXT NOT NULL,
        provider TEXT NOT NULL,
        native INTEGER NOT NULL CHECK (native IN (0, 1)),
        input TEXT NOT NULL,
        response TEXT NOT NULL,
        PRIMARY KEY (organization, id)
      ) STRICT;
      CREATE INDEX responses_by_expiry ON responses (expires_at);
    `,
  },
  {
    name: 'items of responses',
    sql: `
      CREATE TABLE response_items (
        organization TEXT NOT NULL,
        id TEXT NOT NULL,
        response TEXT NOT NULL,
        PRIMARY KEY (organization, id)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX response_items_by_response ON response_items (organization, response);
      CREATE TRIGGER response_items_end AFTER DELETE ON responses BEGIN
        DELETE FROM response_items WHERE organization = OLD.organization AND response = OLD.id;
      END;
    `,
  },
]
