import type { Json } from '../core/json.ts'
import { durationText } from '../core/time.ts'
import { referencesIn } from '../manifest/read/environment.ts'
import { type Config, restartSettings, valueAt } from './config.ts'
import { type Folder, pathsOf } from './folders.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * A setting as it is in use, named as in config.yaml: `server.port`. `from` is where its value was stated: `variables` are those of the
 * environment that it refers to.
 */
export type SettingInUse = {
  name: string
  value: Json
  from: 'default' | 'config' | 'environment'
  variables: string[]
  needsRestart: boolean
}

/** Returns the settings in use, in the order of config.yaml. Those of providers and plugins, which may have secrets, are not among them. */
export function settingsInUse({ config, sources }: Pick<Snapshot, 'config' | 'sources'>): SettingInUse[] {
  const file = sources.get(config.path)?.value
  const atRestart = new Set(restartSettings().map((path) => path.join('.')))
  return Object.entries(values(config)).map(([name, value]): SettingInUse => {
    const written = valueAt(file, name.split('.'))
    const variables = written === undefined ? [] : referencesIn(JSON.stringify(written))
    return {
      name,
      value,
      from: written === undefined ? 'default' : variables.length > 0 ? 'environment' : 'config',
      variables,
      needsRestart: [...atRestart].some((path) => name === path || name.startsWith(`${path}.`)),
    }
  })
}

/** The values by name. Lengths of time and sizes are written as in config.yaml. */
function values(config: Config): Record<string, Json> {
  const { server, answers, manage, errors, store, folders, media, budget, metrics, console: pages } = config
  return {
    'server.host': server.host,
    'server.port': server.port,
    'server.threads': server.threads,
    'server.body_limit': sizeText(server.body.bytes),
    'server.max_values': server.body.values,
    'server.max_unknown_fields': server.body.unknownFields,
    'server.limits.concurrent': server.limits.concurrent,
    'server.limits.queue': server.limits.queue,
    'server.keep_alive': server.keepAlive,
    'server.client_timeout': durationText(server.clientTimeoutMs),
    'server.client_min_rate': sizeText(server.clientMinRate),
    'server.cors': [...server.cors],
    'answers.body_limit': sizeText(answers.bytes),
    'answers.event_limit': sizeText(answers.eventBytes),
    'answers.max_values': answers.values,
    'manage.port': manage.port,
    ...limitsIn(manage.limits),
    'errors.keep': durationText(errors.keepMs),
    'store.url': store.url,
    'folders.providers': foldersText(folders.providers),
    'folders.catalog': foldersText(folders.catalog),
    'folders.plugins': foldersText(folders.plugins),
    'media.schemes': [...media.schemes],
    'media.max_bytes': sizeText(media.maxBytes),
    'media.max_total_bytes': sizeText(media.maxTotalBytes),
    'media.max_files': media.maxFiles,
    'media.timeout': durationText(media.timeoutMs),
    'media.allow_hosts': [...media.allowHosts],
    'budget.default_output_tokens': budget.defaultOutputTokens,
    'budget.abandoned': budget.abandoned,
    'budget.wait_for_usage': durationText(budget.usageWaitMs),
    unknown_models: config.unknownModels as Json,
    unprefixed_models: config.unprefixedModels,
    refuse_retired: config.refuseRetired,
    policies: [...config.policies.keys()],
    ...routingIn(config),
    'metrics.enabled': metrics.enabled,
    'metrics.public': metrics.public,
    'metrics.series': metrics.series,
    'metrics.labels': [...metrics.labels],
    organizations: [...config.organizations.keys()],
    'console.enabled': pages.enabled,
  }
}

function limitsIn({
  labelLength,
  changesPerHour,
  responseBytes,
  ...counts
}: Config['manage']['limits']): Record<string, Json> {
  const { responses, ...others } = counts
  return prefixed('manage.limits', {
    ...others,
    label_length: labelLength,
    changes_per_hour: changesPerHour,
    responses,
    response_bytes: sizeText(responseBytes),
  })
}

function routingIn({ routing, health }: Config): Record<string, Json> {
  return {
    ...prefixed('routing', {
      sort: routing.sort,
      sticky: routing.sticky,
      retries: routing.retries,
      first_event: durationText(routing.firstEventMs),
      ...(routing.totalMs !== undefined && { total: durationText(routing.totalMs) }),
      retry_after: durationText(routing.retryAfterMs),
      on_cut: routing.onCut,
      on_blocked: routing.onBlocked,
    }),
    ...prefixed('health', {
      consecutive_failures: health.inARow,
      share: health.share,
      min_calls: health.of,
      window: durationText(health.windowMs),
      open_for: durationText(health.openMs),
      max_open: durationText(health.maxOpenMs),
      ramp_up: durationText(health.rampUpMs),
    }),
  }
}

function prefixed(prefix: string, named: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(Object.entries(named).map(([name, value]) => [`${prefix}.${name}`, value]))
}

function foldersText(folders: readonly Folder[]): Json {
  const [only, ...others] = pathsOf(folders)
  return others.length === 0 ? (only ?? null) : [only ?? '', ...others]
}

function sizeText(bytes: number): string {
  const found = (['gb', 'mb', 'kb'] as const).map((unit, index) => ({ unit, size: 1024 ** (3 - index) }))
  const unit = found.find(({ size }) => bytes >= size && bytes % size === 0)
  return unit ? `${bytes / unit.size}${unit.unit}` : `${bytes}`
}
