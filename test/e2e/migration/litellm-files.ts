import { hash } from 'node:crypto'
import { stringify } from 'yaml'

/** Secrets of clients, by the names of their keys. LiteLLM stores their SHA-256. */
export const secrets = {
  search: 'sk-search-0123456789abcdefghij',
  nightly: 'sk-nightly-0123456789abcdefghij',
  writers: 'sk-writers-0123456789abcdefghij',
  free: 'sk-free-0123456789abcdefghijkl',
  expired: 'sk-expired-0123456789abcdefghi',
  blocked: 'sk-blocked-0123456789abcdefghi',
  orphan: 'sk-orphan-0123456789abcdefghij',
  personal: 'sk-personal-0123456789abcdefgh',
  manager: 'sk-manager-0123456789abcdefghi',
}

export const masterKey = 'sk-master-key-of-the-operator-0123'

/** Credentials of providers that stand in the file itself. */
export const literalKey = 'literal-key-of-the-second-azure'

export const digest = (secret: string) => hash('sha256', secret, 'hex')

/** A LiteLLM configuration with ten names, whose providers are all at one address on loopback. */
export function litellmConfig(url: string): string {
  const model = (name: string, params: object, info: object = {}) => ({
    model_name: name,
    litellm_params: params,
    ...(Object.keys(info).length > 0 && { model_info: info }),
  })
  const price = { input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 }
  return stringify({
    model_list: [
      model(
        'gpt-prod',
        {
          model: 'azure/prod-eu',
          api_base: `${url}/azure-one/`,
          api_key: 'os.environ/AZURE_ONE',
          api_version: '2024-10-21',
          weight: 3,
        },
        { base_model: 'azure/gpt-5', id: 'one' },
      ),
      model(
        'gpt-prod',
        { model: 'azure/prod-us', api_base: `${url}/azure-two/`, api_key: literalKey, weight: 1 },
        { base_model: 'azure/gpt-5' },
      ),
      model('gpt-mini', {
        model: 'openai/gpt-mini',
        api_base: `${url}/own/v1`,
        api_key: 'os.environ/OWN_KEY',
        ...price,
        rpm: 60,
      }),
      model('claude', {
        model: 'anthropic/claude-sonnet-5',
        api_base: `${url}/anthropic`,
        api_key: 'os.environ/ANTHROPIC_ONE',
      }),
      model('haiku', {
        model: 'anthropic/claude-haiku-4-5',
        api_base: `${url}/anthropic`,
        api_key: 'os.environ/ANTHROPIC_ONE',
      }),
      model('fast', {
        model: 'groq/openai/gpt-oss-120b',
        api_base: `${url}/groq/openai/v1`,
        api_key: 'os.environ/GROQ_ONE',
      }),
      model('large', {
        model: 'mistral/mistral-large-2512',
        api_base: `${url}/mistral/v1`,
        api_key: 'os.environ/MISTRAL_ONE',
      }),
      model('local', { model: 'hosted_vllm/qwen3-8b', api_base: `${url}/vllm/v1` }),
      model(
        'vectors',
        { model: 'openai/vectors', api_base: `${url}/own/v1`, api_key: 'os.environ/OWN_KEY', ...price },
        { mode: 'embedding' },
      ),
      model(
        'team/special',
        { model: 'openai/gpt-mini', api_base: `${url}/own/v1`, api_key: 'os.environ/OWN_KEY', ...price },
        { access_groups: ['special'] },
      ),
      model('team/special', { model: 'hosted_vllm/qwen3-8b', api_base: `${url}/vllm/v1` }),
      model('broken', {
        model: 'openai/broken',
        api_base: `${url}/failing/v1`,
        api_key: 'os.environ/OWN_KEY',
        ...price,
      }),
    ],
    router_settings: {
      num_retries: 1,
      model_group_alias: { 'gpt-4': 'gpt-prod' },
      fallbacks: [{ broken: ['claude'] }, { 'gpt-prod': ['large'] }],
      redis_host: 'localhost',
    },
    litellm_settings: {
      drop_params: true,
      success_callback: ['langfuse'],
      content_policy_fallbacks: [{ haiku: ['claude'] }],
    },
    general_settings: { master_key: 'os.environ/LITELLM_MASTER_KEY', database_url: 'os.environ/DATABASE_URL' },
    environment_variables: { OWN_KEY: 'own-key-of-the-file', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example' },
  })
}

/** Variables that LiteLLM had in its environment. */
export const variables = {
  AZURE_ONE: 'azure-key-one',
  ANTHROPIC_ONE: 'anthropic-key',
  GROQ_ONE: 'groq-key',
  MISTRAL_ONE: 'mistral-key',
  LITELLM_MASTER_KEY: masterKey,
}

const tokenColumns =
  'token, key_name, key_alias, spend, expires, models, aliases, user_id, team_id, metadata, blocked, tpm_limit, rpm_limit, max_parallel_requests, max_budget, budget_duration, budget_id, allowed_routes'

/** A dump of LiteLLM's database, as pg_dump writes it: three teams, and keys in and without them. */
export const litellmDump = `--
-- PostgreSQL database dump
--
COPY public."LiteLLM_SpendLogs" (request_id, spend) FROM stdin;
req-1	0.1
\\.

COPY public."LiteLLM_TeamTable" (team_id, team_alias, max_budget, budget_duration, spend, models, tpm_limit, blocked, metadata) FROM stdin;
team-1	Search	100	30d	1.5	{gpt-prod,gpt-mini,vectors,claude,broken}	\\N	f	{}
team-2	Batch	7	7d	0	{}	\\N	f	{}
team-3	Writers	\\N	\\N	0	{special,haiku}	5000	f	{"note": "a\\\\nb"}
\\.

COPY public."LiteLLM_BudgetTable" (budget_id, max_budget, rpm_limit, budget_duration) FROM stdin;
budget-1	20	30	1mo
\\.

COPY public."LiteLLM_UserTable" (user_id, user_email, models, max_budget, budget_duration) FROM stdin;
ann	ann@example.com	{}	\\N	\\N
bob	bob@example.com	{haiku,claude}	3	1mo
\\.

COPY public."LiteLLM_VerificationToken" (${tokenColumns}) FROM stdin;
${[
  [
    digest(secrets.search),
    'sk-...ghij',
    'search',
    '0.4',
    '\\N',
    '{all-team-models}',
    '{}',
    'ann',
    'team-1',
    '{"tags": ["web"], "tier": "gold"}',
    'f',
    '\\N',
    '600',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
  ],
  [
    digest(secrets.nightly),
    'sk-...ghij',
    'nightly',
    '0',
    '2099-01-01 00:00:00',
    '{}',
    '{}',
    '\\N',
    'team-2',
    '{}',
    '\\N',
    '\\N',
    '\\N',
    '2',
    '\\N',
    '\\N',
    'budget-1',
  ],
  [
    digest(secrets.writers),
    'sk-...ghij',
    'writers',
    '0',
    '\\N',
    '{haiku,gpt-prod,gone}',
    '{"gpt": "haiku"}',
    '\\N',
    'team-3',
    '{}',
    'f',
    '\\N',
    '\\N',
    '\\N',
    '5',
    '1d',
    '\\N',
  ],
  [
    digest(secrets.free),
    'sk-...ijkl',
    'free',
    '0',
    '\\N',
    '{}',
    '{}',
    '\\N',
    '\\N',
    '{}',
    'f',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
  ],
  [
    digest(secrets.expired),
    'sk-...',
    'expired',
    '0',
    '2020-01-01 00:00:00',
    '{}',
    '{}',
    '\\N',
    '\\N',
    '{}',
    'f',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
  ],
  [
    digest(secrets.blocked),
    'sk-...',
    'blocked',
    '0',
    '\\N',
    '{}',
    '{}',
    '\\N',
    '\\N',
    '{}',
    't',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
  ],
  [
    digest(secrets.orphan),
    'sk-...',
    'orphan',
    '0',
    '\\N',
    '{}',
    '{}',
    '\\N',
    'team-9',
    '{}',
    'f',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
    '\\N',
  ],
  ...(['personal', 'manager'] as const).map((name) => [
    ...[digest(secrets[name]), 'sk-...', name, '0', '\\N', '{}', '{}', 'bob', '\\N', '{}', 'f'],
    ...['\\N', '\\N', '\\N', '\\N', '\\N', '\\N', name === 'manager' ? '{management_routes}' : '{llm_api_routes}'],
  ]),
]
  .map((row) => (row.length === 17 ? [...row, '{}'] : row).join('\t'))
  .join('\n')}
\\.
`
