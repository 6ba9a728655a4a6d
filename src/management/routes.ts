import type { JsonRoute } from '../http/types.ts'
import { aliasRoutes } from './aliases.ts'
import { auditRoutes } from './audit.ts'
import { callRoutes } from './calls/calls.ts'
import { latencyRoutes } from './calls/latency.ts'
import { liveRoutes } from './calls/live.ts'
import { refusalRoutes } from './calls/refusals.ts'
import { usageRoutes } from './calls/usage.ts'
import { explainRoutes } from './explain.ts'
import { groupRoutes } from './groups.ts'
import { providerHealthRoutes } from './health.ts'
import { keyChangeRoutes } from './key-changes.ts'
import { keyRoutes } from './keys.ts'
import { type ManagementContext, manageRoute } from './manage.ts'
import { organizationRoutes } from './organization.ts'
import { keyPluginRoutes } from './plugins.ts'
import { policyRoutes } from './policies.ts'
import { providerRoutes } from './providers.ts'
import { settingRoutes } from './settings.ts'

/** The management API: everything under `/v1/manage`. */
export function managementRoutes(context: ManagementContext): JsonRoute[] {
  const routes = resources.flatMap((routesOf) => routesOf(context))
  return routes.map((route) => manageRoute(route, context))
}

const resources = [
  organizationRoutes,
  settingRoutes,
  keyRoutes,
  keyChangeRoutes,
  keyPluginRoutes,
  groupRoutes,
  aliasRoutes,
  policyRoutes,
  explainRoutes,
  auditRoutes,
  usageRoutes,
  callRoutes,
  liveRoutes,
  refusalRoutes,
  latencyRoutes,
  providerHealthRoutes,
  providerRoutes,
]
