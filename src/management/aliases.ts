import { filledText, required } from '../api/check.ts'
import { aliasNameProblem } from '../core/names.ts'
import type { Alias } from '../store/names.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { limitsOf, requireCapacity } from './creation-limits.ts'
import {
  changedBy,
  json,
  type ManageRoute,
  missing,
  noContent,
  pathPart,
  type RecordContext,
  rulesOf,
} from './manage.ts'
import { type ModelDirectory, modelsBehind, refuseOutsideEu, targetCheck } from './names.ts'
import { pageOf } from './page.ts'
import { aliasName, invalid, membersOf } from './read.ts'

/** Serves `/v1/manage/alias`: the organization's aliases of models and policies. */
export function aliasRoutes(context: RecordContext): ManageRoute[] {
  const { store, directory } = context
  const { names } = store
  const entry = ({ name, target }: Alias) => ({ name, target })
  return [
    {
      path: '/v1/manage/alias',
      handle: (request) =>
        pageOf(request, {
          name: 'aliases',
          read: names.aliases,
          isCursor: (name) => aliasNameProblem(name) === undefined,
          idOf: ({ name }) => name,
          entry,
        }),
    },
    {
      path: '/v1/manage/alias',
      method: 'post',
      handle: async (request) => {
        const { organization } = request
        const body = membersOf(request.body, ['name', 'target'])
        const name = required(body.name, 'name', 'the name of the alias', aliasName)
        const target = required(body.target, 'target', 'the id of a model or a policy', filledText)
        const replaced = await changedBy(request, store, async (tx) => {
          refuseWrongTarget({ name, target }, directory(), await rulesOf(tx, organization))
          const before = await tx.names.alias(organization, name)
          if (!before) requireCapacity('aliases', await tx.names.countAliases(organization), limitsOf(context))
          const after = entry(await tx.names.setAlias(organization, { name, target }))
          const action = before ? 'alias.change' : 'alias.create'
          return {
            result: before,
            organization: request.organization,
            action,
            subject: name,
            after,
            ...(before && { before: entry(before) }),
          }
        })
        return json({ name, target }, replaced ? 200 : 201)
      },
    },
    {
      path: '/v1/manage/alias/*name',
      handle: async (request) => {
        const name = pathPart(request, 'name')
        return json(entry((await names.alias(request.organization, name)) ?? missing('alias', name)))
      },
    },
    {
      path: '/v1/manage/alias/*name',
      method: 'delete',
      handle: async (request) => {
        const name = pathPart(request, 'name')
        await changedBy(request, store, async (tx) => {
          const before = (await tx.names.alias(request.organization, name)) ?? missing('alias', name)
          await tx.names.removeAlias(request.organization, name)
          return {
            result: undefined,
            organization: request.organization,
            action: 'alias.delete',
            subject: name,
            before: entry(before),
          }
        })
        return noContent
      },
    },
  ]
}

function refuseWrongTarget({ name, target }: Alias, directory: ModelDirectory, rules: OrganizationRules): void {
  if (name === target) throw invalid("'target' is the alias itself; name a model or a policy.", 'target')
  targetCheck(directory, rules)(target, 'target')
  refuseOutsideEu(name, modelsBehind(target, directory, rules), { path: 'target', directory })
}
