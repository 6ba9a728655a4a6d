import type { JsonRoute } from '../server.ts'
import { type ManagementRooms, manageRoute } from './manage.ts'
import { organizationRoutes } from './organization.ts'

/** The management API: everything under `/v1/manage`. */
export function managementRoutes(rooms: ManagementRooms): JsonRoute[] {
  const routes = [...organizationRoutes(rooms)]
  return routes.map((route) => manageRoute(route, rooms.access))
}
