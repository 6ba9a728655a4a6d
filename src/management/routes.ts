import type { Access } from '../access/keys.ts'
import { secretOf } from '../access/secrets.ts'
import type { JsonRoute } from '../http/types.ts'
import { aliasRoutes } from './aliases.ts'
import { auditRoutes } from './audit.ts'
import { callRoutes } from './calls/calls.ts'
import { contentRoutes } from './calls/content.ts'
import { latencyRoutes } from './calls/latency.ts'
import { liveRoutes } from './calls/live.ts'
import { refusalRoutes } from './calls/refusals.ts'
import { usageRoutes } from './calls/usage.ts'
import { ChangeCounts } from './creation-limits.ts'
import { explainRoutes } from './explain.ts'
import { groupRoutes } from './groups.ts'
import { instanceRoutes } from './instance.ts'
import { keyChangeRoutes } from './key-changes.ts'
import { keyRoutes } from './keys.ts'
import { type ManagementContext, manageRoute } from './manage.ts'
import { organizationRoutes } from './organization.ts'
import { keyPluginRoutes } from './plugins.ts'
import { policyRoutes } from './policies.ts'
import { providerHealthRoutes, providerRoutes } from './providers.ts'
import { settingRoutes } from './settings.ts'
import { pluginListRoutes } from './state/plugins.ts'
import { problemRoutes } from './state/problems.ts'
import { usedSettingsRoutes } from './state/settings.ts'
import { targetRoutes } from './state/targets.ts'

/** Serves the management API: everything under `/v1/manage`. */
export function managementRoutes(parts: Omit<ManagementContext, 'changes'>): JsonRoute[] {
  const context: ManagementContext = { ...parts, changes: new ChangeCounts() }
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
  contentRoutes,
  liveRoutes,
  refusalRoutes,
  latencyRoutes,
  providerHealthRoutes,
  targetRoutes,
  problemRoutes,
  pluginListRoutes,
  usedSettingsRoutes,
  providerRoutes,
  instanceRoutes,
]

/** Serves `GET /v1/auth/check`: the id and permissions of any active key. */
export function authCheckRoutes(access: Access): JsonRoute[] {
  return [
    {
      path: '/v1/auth/check',
      async answer({ headers }) {
        const { id, permissions } = await access.identify(secretOf(headers))
        return { text: JSON.stringify({ key_id: id, permissions }) }
      },
    },
  ]
}
