import { requirePermission } from '../access/keys.ts'
import { defined, object, oneOf, optional, required } from '../api/check.ts'
import { RouterError } from '../core/errors.ts'
import type { Json, JsonObject } from '../core/json.ts'
import {
  allAreas,
  type areas,
  type Level,
  levels,
  type NewKey,
  noLimits,
  type Permissions,
  type RateLimits,
} from '../store/keys.ts'
import type { Tables } from '../store/tables.ts'
import { limitsOf } from './creation-limits.ts'
import { type ManageRequest, type RecordContext, requireNoMore, rulesOf } from './manage.ts'
import { grantCheck } from './names.ts'
import { pluginsFrom } from './plugin-rules.ts'
import {
  countLimit,
  futureTime,
  invalid,
  labelsWithin,
  membersOf,
  namesOfModels,
  onlyMembers,
  orNull,
  requireAny,
  title,
  usdLimit,
} from './read.ts'

const newKeyFields = [
  'name',
  'monthly_limit',
  'permissions',
  'labels',
  'group_id',
  'expires_at',
  'models',
  'limits',
  'plugins',
] as const

/**
 * Returns the properties of a new key, all that it will have: it is never less restricted for a moment. Called in the transaction that creates
 * it, so that what it names still exists. Rejects with RouterError 400, 403.
 */
export async function newKeyProperties(
  request: ManageRequest,
  context: RecordContext,
): Promise<Omit<NewKey, 'hash' | 'prefix' | 'createdBy'>> {
  const body = membersOf(request.body, newKeyFields)
  const limits = optional(body.limits, 'limits', object) ?? {}
  return {
    organization: request.organization,
    name: required(body.name, 'name', 'the name of the key', title),
    monthlyLimitNano: orNull(usdLimit)(body.monthly_limit, 'monthly_limit'),
    permissions: permissionsFrom(body.permissions, request),
    labels: optional(body.labels, 'labels', labelsWithin(limitsOf(context))) ?? {},
    groupId: await groupIn(body.group_id, request, context.store),
    expiresAt: orNull(futureTime)(body.expires_at, 'expires_at'),
    accessList: await accessListFrom(body.models, request, context),
    limits: { ...noLimits, ...rateLimitsIn(onlyMembers(limits, limitFields, 'limits.'), 'limits.') },
    plugins: newPlugins(body.plugins, request, context),
  }
}

/** Returns the permissions of a new key: of those that are not named, only completions, as far as the caller has it. */
function permissionsFrom(value: Json | undefined, { key: caller, isLocal = false }: ManageRequest): Permissions {
  const named = onlyMembers(optional(value, 'permissions', object) ?? {}, allAreas, 'permissions.')
  const levelOf = (area: (typeof areas)[number]): Level =>
    optional(named[area], `permissions.${area}`, oneOf(levels)) ??
    (area === 'completions' ? caller.permissions.completions : 'none')
  const instance = optional(named.instance, 'permissions.instance', oneOf(['none', 'read']))
  if (instance === 'read' && !isLocal)
    throw new RouterError('forbidden', onlyLocally, { param: 'permissions.instance' })
  const content = optional(named.content, 'permissions.content', oneOf(levels)) ?? 'none'
  const permissions: Permissions = {
    manage: levelOf('manage'),
    completions: levelOf('completions'),
    operate: levelOf('operate'),
    ...(instance === 'read' && { instance }),
    ...(content !== 'none' && { content }),
  }
  requireNoMore(caller, { permissions }, 'the new one would have')
  return permissions
}

const onlyLocally =
  'No API key grants instance: read. The command line on the machine of the router does: inference-router key create <name> --instance read.'

/** Returns the id of a group of the organization, or null. Rejects with RouterError 400. */
export async function groupIn(
  value: Json | undefined,
  { organization }: ManageRequest,
  { groups }: Pick<Tables, 'groups'>,
): Promise<string | null> {
  const id = orNull(title)(value, 'group_id')
  if (id === null || (await groups.find(id))?.organization === organization) return id
  throw invalid(`There is no group '${id}' in this organization; GET /v1/manage/group lists them.`, 'group_id')
}

/** Returns the names that a key may call, null for all. Rejects with RouterError 400. */
export async function accessListFrom(
  models: Json | undefined,
  { organization }: Pick<ManageRequest, 'organization'>,
  context: RecordContext,
): Promise<string[] | null> {
  const accessList = orNull(namesOfModels(limitsOf(context)))(models, 'models')
  if (!accessList?.length) return accessList
  const checkName = grantCheck(context.directory(), await rulesOf(context.store, organization))
  for (const [index, name] of accessList.entries()) checkName(name, `models[${index}]`)
  return accessList
}

/** The fields of rate limits. */
export const limitFields = ['requests_per_minute', 'tokens_per_minute', 'concurrent_calls']

/** Returns the rate limits that a body names, at least one; null and 0 are no limit. Throws RouterError 400. */
export function limitsFrom(body: JsonObject): Partial<RateLimits> {
  requireAny(body, limitFields)
  return rateLimitsIn(body)
}

function rateLimitsIn(members: JsonObject, within = ''): Partial<RateLimits> {
  const limit = (name: string) =>
    members[name] === undefined ? undefined : orNull(countLimit)(members[name], `${within}${name}`)
  return defined({
    requestsPerMinute: limit('requests_per_minute'),
    tokensPerMinute: limit('tokens_per_minute'),
    concurrentCalls: limit('concurrent_calls'),
  })
}

/** Returns the plugins that are switched on or off for a new key. A plugin may guard calls: only those who operate may choose. */
function newPlugins(value: Json | undefined, { key }: ManageRequest, context: RecordContext) {
  if (value === undefined || value === null) return {}
  requirePermission(key, ['operate'], 'write')
  return pluginsFrom({ plugins: value }, context.directory())({})
}
