import {
  type Check,
  defined,
  fieldsOf,
  filledText,
  integer,
  list,
  listOf,
  number,
  oneOf,
  optional,
  refuse,
  required,
} from '../api/check.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { policyIdProblem } from '../core/names.ts'
import {
  hasNoWeight,
  policyFile,
  policyOf,
  type RoutingFile,
  type TargetFile,
  targetName,
} from '../core/routing/policy-file.ts'
import { afterBlocks, afterCuts, maxRetries, maxWeight, sorts, stickiness } from '../core/routing/rules.ts'
import type { NamedPolicy } from '../store/names.ts'
import type { Tables } from '../store/tables.ts'
import { limitsOf, requireCapacity } from './creation-limits.ts'
import {
  changedBy,
  json,
  type ManageRequest,
  type ManageRoute,
  mayOperate,
  missing,
  noContent,
  pathPart,
  type RecordContext,
  rulesOf,
} from './manage.ts'
import { type ModelDirectory, modelCheck, refuseMixedApis, refuseOutsideEu } from './names.ts'
import { pageOf } from './page.ts'
import { duration, invalid, membersOf, onlyMembers, parametersOf, policyId, remark } from './read.ts'

/** Serves `/v1/manage/policy`: the organization's named lists of targets, and the rules for asking them. */
export function policyRoutes(context: RecordContext): ManageRoute[] {
  const { store } = context
  const { names } = store
  const found = async (request: ManageRequest, { names }: Pick<Tables, 'names'>) => {
    const id = pathPart(request, 'id')
    return (await names.policy(request.organization, id)) ?? missing('policy', id)
  }
  const put = (request: ManageRequest, { description, ...named }: PolicyChange, { isNew }: { isNew: boolean }) =>
    changedBy(request, store, async (tx) => {
      const before = await tx.names.policy(request.organization, named.id)
      const policy = { ...named, description: description ?? before?.description ?? '' }
      if (before && isNew) {
        throw invalid(`There is already a policy '${policy.id}'; PUT /v1/manage/policy/${policy.id} changes it.`, 'id')
      }
      if (!before) requireCapacity('policies', await tx.names.countPolicies(request.organization), limitsOf(context))
      const after = entry(await tx.names.setPolicy(request.organization, policy))
      const action = before ? 'policy.change' : 'policy.create'
      return {
        result: { policy, isNew: !before },
        organization: request.organization,
        action,
        subject: policy.id,
        after,
        ...(before && { before: entry(before) }),
      }
    })
  return [
    {
      path: '/v1/manage/policy',
      handle: (request) =>
        pageOf(request, {
          name: 'policies',
          read: names.policies,
          isCursor: (id) => policyIdProblem(id) === undefined,
          idOf: ({ id }) => id,
          entry,
        }),
    },
    {
      path: '/v1/manage/policy',
      method: 'post',
      handle: async (request) => {
        const change = policyFrom(request.body, undefined, context)
        return json(entry((await put(request, change, { isNew: true })).policy), 201)
      },
    },
    managedRoute(context),
    { path: '/v1/manage/policy/:id', handle: async (request) => json(entry(await found(request, store))) },
    {
      path: '/v1/manage/policy/:id',
      method: 'put',
      handle: async (request) => {
        const change = policyFrom(request.body, pathPart(request, 'id'), context)
        const { policy, isNew } = await put(request, change, { isNew: false })
        return json(entry(policy), isNew ? 201 : 200)
      },
    },
    {
      path: '/v1/manage/policy/:id',
      method: 'delete',
      handle: async (request) => {
        await changedBy(request, store, async (tx) => {
          const before = await found(request, tx)
          refuseAliased(before.id, (await rulesOf(tx, request.organization)).aliases)
          await tx.names.removePolicy(request.organization, before.id)
          return {
            result: undefined,
            organization: request.organization,
            action: 'policy.delete',
            subject: before.id,
            before: entry(before),
          }
        })
        return noContent
      },
    },
  ]
}

/** Lists the policies of the configuration: whoever manages an organization may call them, but has not written them. */
function managedRoute({ store, directory }: RecordContext): ManageRoute {
  return {
    path: '/v1/manage/managed-policy',
    async handle({ key, query }) {
      parametersOf(query, [])
      const maySee = await mayOperate(key, store)
      const policies = [...directory().managed.values()].map((policy): JsonObject => {
        const { id, description } = policy
        return maySee ? entry({ id, description, ...policyFile(policy) }) : { id, description }
      })
      return json({ policies })
    },
  }
}

function entry({ id, description, targets, ...rules }: NamedPolicy) {
  return { id, description, targets: [...targets], ...rules }
}

/** A policy to create or to change; without a description it keeps the one that it has. */
type PolicyChange = Omit<NamedPolicy, 'description'> & { description: string | undefined }

/** Returns the policy of a body, which may omit the id when the path has it. */
function policyFrom(body: unknown, pathId: string | undefined, context: RecordContext): PolicyChange {
  const directory = context.directory()
  const { targets: most } = limitsOf(context)
  const members = membersOf(body, ['id', 'description', 'targets', ...routingFields])
  const id = required(members.id ?? pathId, 'id', 'the id of the policy', policyId)
  if (pathId !== undefined && id !== pathId) {
    throw invalid(`'id' is '${id}', but the path names '${pathId}'; a policy keeps its id.`, 'id')
  }
  const description = members.description === null ? '' : optional(members.description, 'description', remark)
  const targets = required(members.targets, 'targets', 'an array of models', (value, path) =>
    targetsFrom(value, path, { directory, most }),
  )
  const models = targets.map(targetName)
  refuseMixedApis(models, 'targets', directory)
  refuseOutsideEu(id, models, { path: 'targets', directory })
  return { id, description, targets, ...rulesFrom(members) }
}

function targetsFrom(
  value: Json,
  path: string,
  { directory, most }: { directory: ModelDirectory; most: number },
): TargetFile[] {
  const count = list(value, path).length
  if (count < 1 || count > most)
    throw invalid(
      `'${path}' has ${count} models; it must have 1 to ${most}, the manage.limits.targets of this server.`,
      path,
    )
  const targets = listOf(weightedTarget)(value, path)
  const models = targets.map(targetName)
  const checkName = modelCheck(directory)
  const seen = new Set<string>()
  for (const [index, model] of models.entries()) {
    checkName(model, `${path}[${index}]`)
    if (seen.has(model)) throw invalid(`'${path}[${index}]' is a duplicate: '${model}'.`, path)
    seen.add(model)
  }
  if (hasNoWeight(policyOf('', { targets })))
    throw invalid(`All weights in '${path}' are 0; one must be above 0.`, path)
  return targets
}

/** Refuses to delete a policy that an alias points to. */
function refuseAliased(id: string, aliases: ReadonlyMap<string, string>): void {
  const alias = [...aliases].find(([, target]) => target === id || target === `policy/${id}`)
  if (alias) throw invalid(`The alias '${alias[0]}' points to this policy: change or delete that one first.`)
}

const checks: { readonly [name in keyof Required<RoutingFile>]: Check<NonNullable<RoutingFile[name]>> } = {
  sort: oneOf(sorts),
  sticky: oneOf(stickiness),
  retries: integer(0, maxRetries),
  first_event: duration(1),
  total: duration(1),
  retry_after: duration(0),
  on_cut: oneOf(afterCuts),
  on_blocked: oneOf(afterBlocks),
}

/** The fields of a policy that set how its targets are asked. */
const routingFields = Object.keys(checks)

/** Returns the rules that a policy states; null states nothing. Throws RouterError 400. */
function rulesFrom(members: JsonObject): RoutingFile {
  return fieldsOf<RoutingFile>(members, Object.entries(checks))
}

/** A target as it is written: a model, or `{ target, weight }`. */
const weightedTarget: Check<TargetFile> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  if (!isObject(value)) refuse(path, 'the id of a model, or an object of a `target` and its `weight`', value)
  onlyMembers(value, ['target', 'weight'], `${path}.`)
  const target = required(value.target, `${path}.target`, 'the id of a model', filledText)
  return { target, ...defined({ weight: optional(value.weight, `${path}.weight`, number(0, maxWeight)) }) }
}
