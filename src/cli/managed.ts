import type { Key } from '../access/keys.ts'
import { type CreationLimits, defaultCreationLimits } from '../core/creation-limits.ts'
import { RouterError } from '../core/errors.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { JsonAnswer } from '../http/types.ts'
import { aliasRoutes } from '../management/aliases.ts'
import { groupRoutes } from '../management/groups.ts'
import { keyChangeRoutes } from '../management/key-changes.ts'
import { createKey, keyRoutes } from '../management/keys.ts'
import type { ManageRequest, ManageRoute, RecordContext } from '../management/manage.ts'
import type { ModelDirectory } from '../management/names.ts'
import { keyPluginRoutes } from '../management/plugins.ts'
import { policyRoutes } from '../management/policies.ts'
import { type KeyRecord, noLimits } from '../store/keys.ts'
import { NameTaken } from '../store/store-error.ts'
import type { Tables } from '../store/tables.ts'
import { actor } from './admin.ts'
import { CommandError, UsageError } from './command.ts'

/** A request of the management API, by the path of its route below `/v1/manage` and the parameters in it. */
export type ManagedRequest = {
  method?: ManageRoute['method']
  path: string
  params?: { [name: string]: string | string[] }
  query?: { [name: string]: string }
  body?: JsonObject
}

/** A database, and the names of the files where a request needs them. */
export type Managed = { store: Tables; organization: string; directory?: ModelDirectory | undefined }

/** Options of a command by the fields of the body that they fill, for messages. */
export type OptionNames = { readonly [field: string]: string }

/**
 * Answers a request of the management API on a database, with its checks and its entry in the log of changes, as the operator of the machine.
 * Throws UsageError and CommandError.
 */
export async function managed(
  request: ManagedRequest,
  { store, organization, directory }: Managed,
  options: OptionNames = {},
): Promise<JsonObject> {
  try {
    return objectIn(await answered(request, organization, routesOf(store, directory)))
  } catch (thrown) {
    throw commandError(thrown, options)
  }
}

/** Makes several changes like `managed`, all or none of them; returns the answer to the last one. */
export async function managedTogether(
  requests: readonly ManagedRequest[],
  { store, organization, directory }: Managed,
  options: OptionNames = {},
): Promise<JsonObject> {
  try {
    return await store.atomically(async (tx) => {
      const routes = routesOf(tx, directory)
      let last: JsonAnswer = {}
      for (const request of requests) last = await answered(request, organization, routes)
      return objectIn(last)
    })
  } catch (thrown) {
    throw commandError(thrown, options)
  }
}

/** Creates a key like the management API, whose secret only its clients know: with the stored form of it. Rejects with UsageError. */
export async function addKnownKey(
  body: JsonObject,
  secret: Pick<KeyRecord, 'hash' | 'prefix'>,
  { store, organization, directory }: Managed,
): Promise<KeyRecord> {
  const request = { ...operatorRequest(organization), body }
  try {
    return await createKey(request, contextOf(store, directory), secret)
  } catch (thrown) {
    throw commandError(thrown, {})
  }
}

function answered(
  { method = 'get', path, params = {}, query = {}, body }: ManagedRequest,
  organization: string,
  routes: readonly ManageRoute[],
): JsonAnswer | Promise<JsonAnswer> {
  const route = routes.find((one) => one.path === `/v1/manage${path}` && (one.method ?? 'get') === method)
  if (!route) throw new Error(`there is no route ${method} ${path}`)
  return route.handle({ ...operatorRequest(organization), params, query, body })
}

/** Returns a request of the operator of the machine, without parameters and a body. */
function operatorRequest(organization: string): ManageRequest {
  const key = operatorOf(organization)
  return {
    key,
    organization,
    headers: {},
    params: {},
    query: {},
    body: undefined,
    recheck: async () => {},
    recheckIn: async () => {},
    isLocal: true,
  }
}

function contextOf(store: Tables, directory: ModelDirectory | undefined): RecordContext {
  return {
    store,
    directory() {
      if (!directory) throw new Error('the files are not loaded')
      return directory
    },
    watch: { current: () => ({ config: { manage: { limits: operatorLimits } } }) },
  }
}

function routesOf(store: Tables, directory: ModelDirectory | undefined): ManageRoute[] {
  const context = contextOf(store, directory)
  return [keyRoutes, keyChangeRoutes, keyPluginRoutes, groupRoutes, aliasRoutes, policyRoutes].flatMap((routes) =>
    routes(context),
  )
}

/** An operator's commands are limited in what one record holds, not in how many there are. */
const operatorLimits: CreationLimits = {
  ...defaultCreationLimits,
  keys: Infinity,
  groups: Infinity,
  aliases: Infinity,
  policies: Infinity,
}

/** Returns the caller that stands for the operator of the machine. */
function operatorOf(organization: string): Key {
  return {
    id: actor,
    organization,
    name: actor,
    prefix: '',
    permissions: { manage: 'write', completions: 'write', operate: 'write', instance: 'read', content: 'write' },
    labels: {},
    monthlyLimitNano: null,
    groupId: null,
    accessList: null,
    limits: noLimits,
    plugins: {},
    createdAt: 0,
    expiresAt: null,
  }
}

function objectIn({ text = '{}' }: JsonAnswer): JsonObject {
  return JSON.parse(String(text)) as JsonObject
}

function commandError(thrown: unknown, options: OptionNames): unknown {
  if (!(thrown instanceof RouterError)) return thrown
  const { code, message, param, cause } = thrown
  const text = Object.entries(options).reduce(
    (changed, [field, option]) => changed.replaceAll(new RegExp(`'${field}(\\[\\d+\\])?(?=['.])`, 'g'), `'${option}`),
    message,
  )
  // Arguments that are right can be refused because of what there is: the last key, a name that is taken, the limit of a minute.
  const isUsage = code === 'invalid_request' && param !== undefined && !(cause instanceof NameTaken)
  return isUsage ? new UsageError(text) : new CommandError(text)
}

/** Writes the members of a record as lines: a name and its value. */
export function linesOf(record: JsonObject): string {
  const width = Math.max(...Object.keys(record).map((name) => name.length))
  const text = (value: Json | undefined) => (typeof value === 'string' ? value : JSON.stringify(value))
  return Object.entries(record)
    .map(([name, value]) => `${name.padEnd(width)}  ${text(value)}`)
    .join('\n')
}
