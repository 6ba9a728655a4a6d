import { type Environment, referencesIn } from '../../manifest/read/environment.ts'
import { Accounts } from './accounts.ts'
import type { ForeignFile } from './foreign-file.ts'
import { planKeys } from './litellm-keys.ts'
import { readDeployment, variable } from './litellm-models.ts'
import { planNames } from './litellm-names.ts'
import type { LitellmRows } from './litellm-rows.ts'
import { emptyPlan, type Hints, type ImportPlan, remarker, remarkUnused } from './plan.ts'
import type { ShippedProviders } from './shipped.ts'

/** Plans the import of a LiteLLM proxy: its configuration, and rows of its database. */
export function planLitellm(
  file: ForeignFile,
  rows: LitellmRows,
  { shipped, env }: { shipped: ShippedProviders; env: Environment },
): ImportPlan {
  const plan = emptyPlan('litellm')
  const remark = remarker(plan)
  planVariables(file, plan)
  const accounts = new Accounts(shipped, { ...env, ...plan.variables })
  const deployments = file.items(['model_list']).flatMap((path) => {
    const read = readDeployment(file, path, plan, shipped)
    if (!read) return []
    const placed = accounts.place(read.deployment)
    if ('problem' in placed) {
      remark('manual', path, placed.problem)
      return []
    }
    if (placed.note !== undefined) remark('near', path, placed.note)
    return [{ ...read.group, target: placed.target, path }]
  })
  accounts.addTo(plan)
  const settings = plan.variables
  plan.variables = usedVariables(plan, shipped)
  for (const name of Object.keys(settings))
    if (!Object.hasOwn(plan.variables, name))
      remark('none', ['environment_variables', name], 'the router does not use this variable')
  const names = planNames(file, deployments, plan)
  planSettings(file, plan)
  planKeys(file, rows, { plan, names, deployments, env: { ...env, ...settings }, shipped })
  remarkUnused(plan, file, hints)
  return plan
}

function planVariables(file: ForeignFile, plan: ImportPlan): void {
  for (const name of file.names(['environment_variables'])) {
    const value = file.take(['environment_variables', name])
    const isPlain = typeof value === 'string' || typeof value === 'number'
    if (isPlain && !variable.test(String(value))) plan.variables[name] = String(value)
  }
}

/** Returns the variables that settings and manifests refer to: all others would have effects of their own in `.env`. */
function usedVariables(
  { variables, providers, manifests }: ImportPlan,
  shipped: ShippedProviders,
): ImportPlan['variables'] {
  const files = Object.keys(providers).map((slug) => shipped.get(slug)?.file)
  const used = new Set(referencesIn(JSON.stringify([providers, manifests, files])))
  return Object.fromEntries(Object.entries(variables).filter(([name]) => used.has(name)))
}

/** Plans settings of all calls: retries, times, and when a target is stopped. */
function planSettings(file: ForeignFile, plan: ImportPlan): void {
  const remark = remarker(plan)
  const both = (name: string) => file.number(['router_settings', name]) ?? file.number(['litellm_settings', name])
  const [retries, timeout, fails, cooldown] = [
    both('num_retries'),
    file.number(['router_settings', 'timeout']) ?? file.number(['litellm_settings', 'request_timeout']),
    both('allowed_fails'),
    both('cooldown_time'),
  ]
  const routing = {
    ...(retries !== undefined && { retries: Math.min(retries, 5) }),
    ...(timeout !== undefined && timeout > 0 && { total: `${timeout}s` }),
  }
  if (Object.keys(routing).length > 0) plan.settings.routing = routing
  const health = {
    ...(fails !== undefined && { consecutive_failures: fails + 1 }),
    ...(cooldown !== undefined && cooldown > 0 && { open_for: `${cooldown}s` }),
  }
  if (Object.keys(health).length > 0) {
    plan.settings.health = health
    remark(
      'near',
      ['router_settings'],
      'allowed_fails and cooldown_time became health.consecutive_failures and health.open_for',
    )
  }
  if (file.take(['litellm_settings', 'drop_params']) === false)
    remark(
      'near',
      ['litellm_settings', 'drop_params'],
      'unsupported fields are dropped and named in x-router-dropped; x-router-strict refuses them',
    )
}

const logging = 'use the metrics, OpenTelemetry, the plugins langfuse-export and log-payloads, or a plugin of your own'

const hints: Hints = [
  [/callbacks?$|^litellm_settings\.langfuse/, `no equivalent by name: ${logging}`],
  [/^litellm_settings\.cache/, 'no equivalent by name: the plugin cache'],
  [/guardrail/, 'no equivalent by name: the plugins mask-pii, guard-prompt and guard-output'],
  [/^general_settings\.(?:database_|store_model_in_db|use_redis)/, 'not needed: one SQLite file'],
  [/redis/, 'not needed: limits are exact in one process with several threads'],
  [/^general_settings\.alert/, 'no equivalent by name: the plugin spend-alerts, and alert rules for Prometheus'],
  [/^litellm_settings\.(?:set_verbose|json_logs)/, 'no equivalent by name: LOG_LEVEL and LOG_FORMAT'],
  [/^mcp_servers/, 'no equivalent: the router calls no MCP servers itself'],
  [/^include/, 'no equivalent: import each of these files'],
  [
    /litellm_params\.(?:temperature|max_tokens|top_p|extra_headers|extra_body)/,
    'no equivalent: values that requests get without having them; a plugin can add them',
  ],
  [
    /litellm_params\.(?:aws_|vertex_)/,
    'no equivalent in the configuration: credentials and regions of clouds come from variables (docs/providers.md)',
  ],
]
