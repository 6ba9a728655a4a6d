import type { JsonRoute } from '../http/server.ts'
import { aliasRoutes } from './aliases.ts'
import { auditRoutes } from './audit.ts'
import { groupRoutes } from './groups.ts'
import { keyChangeRoutes } from './key-changes.ts'
import { keyRoutes } from './keys.ts'
import { limitRoutes } from './limits.ts'
import { type ManagementRooms, manageRoute } from './manage.ts'
import { approvedModelRoutes } from './models.ts'
import { organizationRoutes } from './organization.ts'
import { policyRoutes } from './policies.ts'
import { dataRuleRoutes } from './rules.ts'
import { usageRoutes } from './usage.ts'

/** The management API: everything under `/v1/manage`. */
export function managementRoutes(rooms: ManagementRooms): JsonRoute[] {
  const routes = resources.flatMap((routesOf) => routesOf(rooms))
  return routes.map((route) => manageRoute(route, rooms.access))
}

const resources = [
  organizationRoutes,
  approvedModelRoutes,
  dataRuleRoutes,
  limitRoutes,
  keyRoutes,
  keyChangeRoutes,
  groupRoutes,
  aliasRoutes,
  policyRoutes,
  auditRoutes,
  usageRoutes,
]
