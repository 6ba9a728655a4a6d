import { type Access, requirePermission } from '../access/keys.ts'
import { secretOf } from '../access/secrets.ts'
import type { ExplainServices } from '../call/kinds/explain.ts'
import { consolePages } from '../http/console.ts'
import { type HealthReader, healthRoutes, type Readiness } from '../http/endpoints.ts'
import { errorPageRoutes } from '../http/error-page.ts'
import type { Routes } from '../http/listeners.ts'
import { metricsRoutes } from '../http/metrics.ts'
import { modelRoutes } from '../http/model-lists.ts'
import { openapiRoutes } from '../http/openapi.ts'
import { storedResponseRoutes } from '../http/stored-responses.ts'
import type { JsonRequest, JsonRoute } from '../http/types.ts'
import type { ManagementContext } from '../management/manage.ts'
import { authCheckRoutes, managementRoutes } from '../management/routes.ts'
import { formatFileProblem } from '../manifest/check/problem.ts'
import type { Family } from '../observe/families.ts'
import type { FailingHook, PluginActivity } from '../observe/worker-metrics.ts'
import { hookProblem } from '../plugin/faults.ts'
import type { TargetOutage } from '../routing/health/health.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { shortPath } from '../snapshot/config.ts'
import type { Watch } from '../snapshot/reload.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { directoryOf } from './directory.ts'

/** Services of the routes besides the calls; `writeFailure` is the reason why the ledger cannot be written. */
export type RouteServices = {
  watch: Pick<Watch, 'current' | 'problems'>
  store: Store
  access: Access
  rulesOf(organization: string): MaybePromise<OrganizationRules>
  stopping(): boolean
  writeFailure(): string | undefined
  /** Returns why nothing may be changed: the database is damaged. */
  damage(): string | undefined
  /** Returns the parts of the providers that take no calls, or not all. */
  degraded(): readonly TargetOutage[]
  /** Returns the hooks of plugins that have failed on every call since their load. */
  failingHooks(): readonly FailingHook[]
  /** Returns the calls and faults of the hooks of plugins. */
  pluginActivity(): PluginActivity
  /** Current activity of an organization. */
  live: ManagementContext['live']
  refused: ManagementContext['refused']
  /** Returns all metrics of the process. */
  metrics(): Family[]
  /** Returns the services that explain routes of calls. */
  explaining(): ExplainServices
}

/** Checks whether a route changes the database, or reads much of it: of several threads only one does that. */
export function isForMainThread({ path, method = 'get', isForWorkers = false }: JsonRoute): boolean {
  return !isForWorkers && (path.startsWith('/v1/manage') || path === '/metrics' || method === 'delete')
}

/** Returns the routes of the service besides the calls. */
export function jsonRoutes(services: RouteServices): Routes {
  const { watch, store, access, rulesOf, stopping, writeFailure, damage, degraded, metrics, explaining } = services
  const { live, refused, failingHooks, pluginActivity } = services
  const directory = () => directoryOf(watch.current())
  return {
    console: consolePages(() => watch.current().config.console),
    common: [
      ...healthRoutes(
        () => {
          const failure = writeFailure()
          return readiness({ watch, degraded, failingHooks }, [
            ...(stopping() ? ['The router is stopping.'] : []),
            ...(failure === undefined ? [] : [failure]),
          ])
        },
        (request) => healthReader(access, request),
      ),
      ...openapiRoutes(),
      ...errorPageRoutes(),
      ...authCheckRoutes(access),
      ...modelRoutes({ access, directory, rulesOf }),
    ],
    open: storedResponseRoutes(store, access),
    manage: [
      ...managementRoutes({
        ...{ store, access, directory, damage, degraded, explaining, live, refused, watch },
        ...{ failingHooks, pluginActivity },
      }),
      ...metricsRoutes({
        settings: () => watch.current().config.metrics,
        requireReader: (request) => requireMetricsReader(services, request),
        families: metrics,
      }),
    ],
  }
}

function readiness(
  { watch, degraded, failingHooks }: Pick<RouteServices, 'watch' | 'degraded' | 'failingHooks'>,
  reasons: string[],
): Readiness {
  return {
    ready: reasons.length === 0,
    generation: watch.current().generation,
    reasons,
    degraded: degraded(),
    problems: [
      ...watch
        .problems()
        .map((problem) =>
          formatFileProblem({ ...problem, file: shortPath(problem.file, watch.current().config.path) }),
        ),
      ...new Set(failingHooks().map(hookProblem)),
    ],
  }
}

/** Returns a caller that may read details. Never rejects: also while the database cannot be read, `/ready` reports so. */
async function healthReader(access: Access, { headers }: JsonRequest): Promise<HealthReader | undefined> {
  try {
    const key = await access.identify(secretOf(headers))
    requirePermission(key, ['manage', 'operate', 'instance'], 'read')
    const seesAll = key.permissions.instance === 'read'
    return { mayRead: (organization) => seesAll || organization === undefined || organization === key.organization }
  } catch {
    return undefined
  }
}

/**
 * Requires a key that may operate the router or read all organizations, or manage the only one: the counts are those of all. Rejects with
 * RouterError 401, 403.
 */
async function requireMetricsReader(
  { access, store }: RouteServices,
  { headers }: Pick<JsonRequest, 'headers'>,
): Promise<void> {
  const key = await access.identify(secretOf(headers))
  const isAlone = !(await store.organizations.areSeveral())
  requirePermission(key, isAlone ? ['manage', 'operate', 'instance'] : ['operate', 'instance'], 'read')
}
