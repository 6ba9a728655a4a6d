import { type Access, areaBeyond, type Key, requireActive, requirePermission } from '../access/keys.ts'
import { secretOf } from '../access/secrets.ts'
import type { ExplainServices } from '../call/kinds/explain.ts'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { JsonAnswer, JsonRequest, JsonRoute } from '../http/types.ts'
import type { LiveWatch } from '../observe/live-counts.ts'
import type { RefusedCalls } from '../observe/refused-calls.ts'
import type { CallsUnderWay, FailingHook, PluginActivity } from '../observe/worker-metrics.ts'
import type { TargetOutage } from '../routing/health/health.ts'
import type { Watch } from '../snapshot/reload.ts'
import { audited, type NewAuditEntry } from '../store/audit.ts'
import type { Level, Permissions } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { NameTaken } from '../store/store-error.ts'
import type { Tables } from '../store/tables.ts'
import { type ChangeCounts, type LimitingConfig, limitsOf } from './creation-limits.ts'
import type { ModelDirectory } from './names.ts'

/** The dependencies of management routes; `directory` returns that of the current snapshot. */
export type ManagementContext = {
  store: Store
  access: Access
  directory(): ModelDirectory
  /** Returns why nothing may be changed: the database is damaged. */
  damage(): string | undefined
  /** Returns the circuits that take no calls, or not all. */
  degraded(): readonly TargetOutage[]
  /** Returns the hooks of plugins that have failed on every call since their load. */
  failingHooks(): readonly FailingHook[]
  /** Returns the calls and faults of the hooks of plugins. */
  pluginActivity(): PluginActivity
  /** The files in use, and the problems of those that are not. */
  watch: Pick<Watch, 'current' | 'problems'>
  /**
   * Current activity of an organization: counts from now on, undefined where the maximum number of watchers is reached; and the calls in
   * flight.
   */
  live: {
    watch(organization: string): LiveWatch | undefined
    underWay(organization: string): CallsUnderWay
  }
  /** The changes that organizations have made in this hour. */
  changes: ChangeCounts
  /** The calls that were refused last. */
  refused: Pick<RefusedCalls, 'of' | 'since'>
  /** Returns the services that explain routes of calls. */
  explaining(): ExplainServices
}

/** The dependencies of routes for keys, groups, aliases and policies, which the command line uses as well. */
export type RecordContext = Pick<ManagementContext, 'directory'> & { store: Tables } & LimitingConfig

/** A request of a key that may manage its organization; it can see and change only what belongs to that organization. */
export type ManageRequest = {
  key: Key
  organization: string
  headers: JsonRequest['headers']
  params: JsonRequest['params']
  query: JsonRequest['query']
  /** The body as JSON; undefined for GET and DELETE, and when there is none. */
  body: unknown
  /** Rejects with RouterError when the key may not do this any more. */
  recheck(): Promise<void>
  /** The same for a change, in its transaction: nothing can be changed by a key after its revocation. */
  recheckIn(tx: Pick<Tables, 'keys'>): Promise<void>
  /** Set for the command line on the machine itself, never for a request of a client: it may grant `instance: read`. */
  isLocal?: boolean
}

/** A route of the management API: GET needs the permission manage: read, every other method manage: write. */
export type ManageRoute = Pick<JsonRoute, 'path' | 'method' | 'isForWorkers'> & {
  /** Changes nothing, whatever its method: manage: read is sufficient. */
  reads?: boolean
  /** Changes need operate: write instead, and operate: read is sufficient to read. */
  operates?: boolean
  /** Reads what belongs to all organizations: only the permission instance: read is sufficient. */
  readsInstance?: boolean
  /**
   * Reads or deletes what plugins have stored of calls: only the permission content is sufficient. Every request is an entry in the audit log,
   * which counts as a change.
   */
  readsContent?: boolean
  /** Set where any key may read the record of the key `:id` if that is itself. */
  showsSelf?: boolean
  handle(request: ManageRequest): JsonAnswer | Promise<JsonAnswer>
}

type Needs = Pick<ManageRoute, 'operates' | 'readsInstance' | 'readsContent' | 'showsSelf'> & { level: Level }

/** Returns the key of a request to a route and its organization. Rejects with RouterError: missing_key, invalid_key, forbidden. */
async function callerOf(
  access: Access,
  { headers, params }: Pick<JsonRequest, 'headers' | 'params'>,
  needs: Needs,
): Promise<{ key: Key; organization: string }> {
  const key = await access.identify(secretOf(headers))
  const isItself = params.id === 'self' || params.id === key.id
  if (!(needs.showsSelf && isItself)) requirePermission(key, areasFor(needs), needs.level)
  return { key, organization: key.organization }
}

function areasFor({
  operates = false,
  readsInstance = false,
  readsContent = false,
  level,
}: Needs): readonly (keyof Permissions)[] {
  if (readsInstance) return ['instance']
  if (readsContent) return ['content']
  if (!operates) return ['manage']
  return level === 'read' ? ['manage', 'operate'] : ['operate']
}

/** Checks whether a key may see operator data: with the permission operate or instance, or as the key of the only organization. */
export async function mayOperate(
  { permissions }: Key,
  { organizations }: Pick<Tables, 'organizations'>,
): Promise<boolean> {
  return permissions.operate !== 'none' || permissions.instance === 'read' || !(await organizations.areSeveral())
}

/** Throws RouterError 403 when a key that is to be made, changed or deleted has more permissions than the one that does it. */
export function requireNoMore(key: Key, { permissions }: { permissions: Permissions }, what: string): void {
  const area = areaBeyond(key, permissions)
  if (area === undefined) return
  const own = key.permissions[area] ?? 'none'
  const reason = `${what} ${area}: ${permissions[area]}, and this API key has only ${area}: ${own}`
  throw new RouterError(
    'forbidden',
    `A key cannot create, change or delete a key with more permissions than its own: ${reason}.`,
  )
}

/** Returns a route for the server that checks the key before it reads the body. */
export function manageRoute(
  { path, method = 'get', isForWorkers, reads = method === 'get', handle, ...needs }: ManageRoute,
  context: Pick<ManagementContext, 'access' | 'damage' | 'changes' | 'watch'>,
): JsonRoute {
  const { access, damage } = context
  const needed = { ...needs, level: reads ? 'read' : 'write' } as const
  const takesBody = method !== 'get' && method !== 'delete'
  return {
    path,
    method,
    ...(isForWorkers && { isForWorkers }),
    async answer(request) {
      const { headers, params, query } = request
      const caller = await callerOf(access, request, needed)
      const isAudited = !reads || needs.readsContent === true
      if (isAudited) refuseIfDamaged(damage())
      const recheck = async () => void (await callerOf(access, request, needed))
      const recheckIn = async ({ keys }: Pick<Tables, 'keys'>) => {
        const key = requireActive(await keys.find(caller.key.id), Date.now())
        requirePermission(key, areasFor(needed), needed.level)
      }
      const asked = { headers, params, query, recheck, recheckIn }
      if (isAudited) context.changes.count(caller.organization, limitsOf(context))
      if (!takesBody) return await handle({ ...caller, ...asked, body: undefined })
      const body = await request.readBody()
      // Checked a second time: the key may have been revoked while a slow body arrived.
      return await handle({ ...(await callerOf(access, request, needed)), ...asked, body })
    },
  }
}

function refuseIfDamaged(damage: string | undefined): void {
  if (damage !== undefined) throw new RouterError('unavailable', `${damage} Nothing was changed.`)
}

/**
 * Makes a change with its audit entry in one transaction, for a request whose key may still make it then: it may have been revoked since it
 * was checked. Rejects with RouterError: invalid_key, forbidden.
 */
export function changedBy<Result>(
  { key, recheckIn }: Pick<ManageRequest, 'key' | 'recheckIn'>,
  tables: Tables,
  change: (tx: Tables) => Promise<{ result: Result } & Omit<NewAuditEntry, 'actor'>>,
): Promise<Result> {
  return audited(tables, key.id, async (tx) => {
    await recheckIn(tx)
    return await change(tx)
  })
}

/** Returns a JSON response. */
export function json(value: JsonObject, status = 200): JsonAnswer {
  return { status, text: JSON.stringify(value) }
}

/** A response without a body: 204. */
export const noContent: JsonAnswer = { status: 204 }

/** Runs a change that may reject with NameTaken, which becomes a 400 that names the field. */
export async function uniqueName<Result>(field: string, change: () => Promise<Result>): Promise<Result> {
  try {
    return await change()
  } catch (thrown) {
    if (!(thrown instanceof NameTaken)) throw thrown
    const message = `${thrown.message} Choose another ${field}.`
    throw new RouterError('invalid_request', message, { param: field, cause: thrown })
  }
}

/** Returns the rules of an organization. Rejects with RouterError 404 when it has been deleted. */
export async function rulesOf(
  { organizations }: Pick<Tables, 'organizations'>,
  organization: string,
): Promise<OrganizationRules> {
  const rules = await organizations.rules(organization)
  if (rules) return rules
  throw new RouterError('not_found', 'The organization of this key does not exist any more.')
}

/** Returns a path parameter as one string; one with slashes arrives in parts. */
export function pathPart({ params }: Pick<ManageRequest, 'params'>, name: string): string {
  return [params[name] ?? ''].flat().join('/')
}

/** Throws the 404 for something that does not exist or belongs to another organization. */
export function missing(kind: string, id: string): never {
  throw new RouterError('not_found', `There is no ${kind} '${id.slice(0, 100)}' in this organization.`)
}
