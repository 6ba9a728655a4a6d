import type { Access } from './access/keys.ts'
import type { Routes } from './addresses.ts'
import type { NamedModel } from './api/models/list.ts'
import { healthRoutes, type ModelSource, modelRoutes, type Readiness } from './endpoints.ts'
import { keptResponseRoutes } from './kept-responses.ts'
import { authCheckRoutes } from './management/auth-check.ts'
import type { Directory } from './management/names.ts'
import { managementRoutes } from './management/routes.ts'
import { formatProblem } from './manifest/problem.ts'
import { openapiRoutes } from './openapi.ts'
import type { Watch } from './reload.ts'
import type { Snapshot } from './snapshot.ts'
import type { Store } from './store/open.ts'

/** What the routes besides the calls are made of; `trouble` says what keeps the ledger from being written. */
export type RouteRooms = {
  watch: Watch
  store: Store
  access: Access
  stopping(): boolean
  trouble(): string | undefined
}

/** The routes of the service besides the calls. */
export function jsonRoutes({ watch, store, access, stopping, trouble }: RouteRooms): Routes {
  return {
    health: [
      ...healthRoutes(() =>
        readiness(watch, [...(stopping() ? ['The router is stopping.'] : []), ...[trouble() ?? []].flat()]),
      ),
      ...openapiRoutes(),
    ],
    open: [
      ...modelRoutes({ ...modelSource(watch), access }),
      ...keptResponseRoutes(store, access),
      ...authCheckRoutes(access),
    ],
    manage: managementRoutes({ store, access, directory: () => directoryOf(watch.current()) }),
  }
}

function directoryOf({ providers, catalog }: Snapshot): Directory {
  const modelIds = () => catalog.list().map(({ provider, model }) => `${provider}/${model}`)
  return { providers, findModel: catalog.find, managed: new Map(), modelIds }
}

function readiness(watch: Watch, reasons: string[]): Readiness {
  return {
    ready: reasons.length === 0,
    generation: watch.current().generation,
    reasons,
    problems: watch.problems().map(formatProblem),
  }
}

function modelSource(watch: Watch): Pick<ModelSource, 'models' | 'managedPolicies'> {
  return {
    models() {
      const snapshot = watch.current()
      const known = listed.get(snapshot) ?? callableModels(snapshot)
      listed.set(snapshot, known)
      return known
    },
    managedPolicies: () => noModels,
  }
}

const listed = new WeakMap<Snapshot, readonly NamedModel[]>()
const noModels: readonly NamedModel[] = []

/** Models of providers that are configured: what is listed can be called. */
function callableModels({ providers, catalog }: Snapshot): NamedModel[] {
  return catalog
    .list()
    .filter(({ provider }) => providers.get(provider)?.missing.length === 0)
    .map(({ provider, model, entry }) => ({ id: `${provider}/${model}`, entry }))
}
