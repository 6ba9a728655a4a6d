import type { Migration } from './types.ts'

/** The steps up to limits, groups, names, audit and usage. */
export const firstMigrations: readonly Migration[] = [
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
  {
    name: 'limits, groups, aliases, policies, audit, usage',
    sql: `
      -- A limit that is NULL does not hold. Model lists and rules are JSON; NULL models are all models.
      ALTER TABLE organizations ADD COLUMN enforces_balance INTEGER NOT NULL DEFAULT 0 CHECK (enforces_balance IN (0, 1));
      UPDATE organizations SET enforces_balance = 1 WHERE id IN (SELECT organization FROM credits);
      ALTER TABLE organizations ADD COLUMN requests_per_minute INTEGER CHECK (requests_per_minute > 0);
      ALTER TABLE organizations ADD COLUMN tokens_per_minute INTEGER CHECK (tokens_per_minute > 0);
      ALTER TABLE organizations ADD COLUMN concurrent_calls INTEGER CHECK (concurrent_calls > 0);
      ALTER TABLE organizations ADD COLUMN approved_models TEXT CHECK (json_type(approved_models) = 'array');
      ALTER TABLE organizations ADD COLUMN data_rules TEXT NOT NULL DEFAULT '{}' CHECK (json_type(data_rules) = 'object');

      ALTER TABLE api_keys ADD COLUMN group_id TEXT;
      ALTER TABLE api_keys ADD COLUMN requests_per_minute INTEGER CHECK (requests_per_minute > 0);
      ALTER TABLE api_keys ADD COLUMN tokens_per_minute INTEGER CHECK (tokens_per_minute > 0);
      ALTER TABLE api_keys ADD COLUMN concurrent_calls INTEGER CHECK (concurrent_calls > 0);
      ALTER TABLE api_keys ADD COLUMN access_list TEXT CHECK (json_type(access_list) = 'array');
      ALTER TABLE api_keys ADD COLUMN deleted_at INTEGER;
      CREATE INDEX api_keys_listed ON api_keys (organization, id) WHERE deleted_at IS NULL;
      CREATE INDEX api_keys_managing ON api_keys (organization) WHERE manage = 'write';
      CREATE INDEX api_keys_by_group ON api_keys (group_id) WHERE group_id IS NOT NULL;

      CREATE TABLE groups (
        id TEXT PRIMARY KEY,
        organization TEXT NOT NULL REFERENCES organizations (id),
        name TEXT NOT NULL,
        monthly_limit_nano INTEGER CHECK (monthly_limit_nano > 0),
        created_at INTEGER NOT NULL,
        UNIQUE (organization, name)
      ) STRICT;
      CREATE INDEX groups_by_organization ON groups (organization, id);

      CREATE TABLE group_spend (
        group_id TEXT NOT NULL,
        month TEXT NOT NULL,
        nano INTEGER NOT NULL,
        PRIMARY KEY (group_id, month)
      ) STRICT, WITHOUT ROWID;

      CREATE TABLE aliases (
        organization TEXT NOT NULL REFERENCES organizations (id),
        name TEXT NOT NULL,
        target TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (organization, name)
      ) STRICT, WITHOUT ROWID;

      CREATE TABLE policies (
        organization TEXT NOT NULL REFERENCES organizations (id),
        id TEXT NOT NULL,
        description TEXT NOT NULL,
        targets TEXT NOT NULL CHECK (json_type(targets) = 'array'),
        created_at INTEGER NOT NULL,
        PRIMARY KEY (organization, id)
      ) STRICT, WITHOUT ROWID;

      -- Every change and who made it; before and after are JSON, never with a secret.
      CREATE TABLE audit (
        id TEXT PRIMARY KEY,
        at INTEGER NOT NULL,
        organization TEXT NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        subject TEXT NOT NULL,
        before TEXT,
        after TEXT
      ) STRICT;
      -- With the rowid at its end: the order in which changes were made.
      CREATE INDEX audit_by_organization ON audit (organization);

      -- One index for organizations and keys: rows come in order of time, so that what is written of it stays in memory
      -- however many keys there are. An index by key would touch another page of the disk with every row.
      DROP INDEX ledger_by_key;
      DROP INDEX ledger_by_organization;
      CREATE INDEX ledger_by_organization ON ledger (organization, at, key);

      ALTER TABLE ledger ADD COLUMN group_id TEXT;
      ALTER TABLE ledger ADD COLUMN modes TEXT;
      ALTER TABLE ledger ADD COLUMN cache_read_audio INTEGER;
      ALTER TABLE ledger ADD COLUMN citations INTEGER;
      ALTER TABLE ledger ADD COLUMN file_searches INTEGER;

      -- Sums by hour (Unix hours): of organizations, and of keys. What they lack is summed over the ledger itself.
      CREATE TABLE organization_usage (
        organization TEXT NOT NULL,
        hour INTEGER NOT NULL,
        operation TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        requests INTEGER NOT NULL,
        nano INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        PRIMARY KEY (organization, hour, operation, provider, model)
      ) STRICT, WITHOUT ROWID;

      CREATE TABLE key_usage (
        organization TEXT NOT NULL,
        key TEXT NOT NULL,
        hour INTEGER NOT NULL,
        operation TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        requests INTEGER NOT NULL,
        nano INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        PRIMARY KEY (organization, key, hour, operation, provider, model)
      ) STRICT, WITHOUT ROWID;

      INSERT INTO key_usage
        SELECT organization, key, at / 3600000, operation, provider, model, count(*), sum(cost_nano),
          sum(coalesce(input, 0) + coalesce(cache_read, 0) + coalesce(cache_write_5m, 0) + coalesce(cache_write_1h, 0)
            + coalesce(input_audio, 0) + coalesce(input_image, 0)),
          sum(coalesce(output, 0) + coalesce(reasoning, 0) + coalesce(output_audio, 0) + coalesce(output_image, 0))
        FROM ledger GROUP BY 1, 2, 3, 4, 5, 6;
      INSERT INTO organization_usage
        SELECT organization, hour, operation, provider, model, sum(requests), sum(nano), sum(input_tokens), sum(output_tokens)
        FROM key_usage GROUP BY 1, 2, 3, 4, 5;
    `,
  },
]
