import { filledText, required } from '../api/check.ts'
import { aliasNameProblem } from '../core/names.ts'
import type { Alias } from '../store/names.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { done, json, type ManagementRooms, type ManageRoute, missing, noted, pathPart, rulesOf } from './manage.ts'
import { type Directory, modelsBehind, refuseOutsideEurope, targetCheck } from './names.ts'
import { pageOf } from './page.ts'
import { aliasName, invalid, membersOf } from './read.ts'

/** `/v1/manage/alias`: the organization's other names for models and policies. */
export function aliasRoutes({ store, directory }: ManagementRooms): ManageRoute[] {
  const { names } = store
  const entry = ({ name, target }: Alias) => ({ name, target })
  return [
    {
      path: '/v1/manage/alias',
      answer: (asked) =>
        json(
          pageOf(asked, {
            name: 'aliases',
            read: names.aliases,
            isCursor: (name) => aliasNameProblem(name) === undefined,
            idOf: ({ name }) => name,
            entry,
          }),
        ),
    },
    {
      path: '/v1/manage/alias',
      method: 'post',
      answer: (asked) => {
        const { organization } = asked
        const body = membersOf(asked.body, ['name', 'target'])
        const name = required(body.name, 'name', 'what a model is to be called', aliasName)
        const target = required(body.target, 'target', 'the id of a model or a policy', filledText)
        const known = noted(store, asked, () => {
          refuseWrongTarget({ name, target }, directory(), rulesOf(store, organization))
          const before = names.alias(organization, name)
          const after = entry(names.setAlias(organization, { name, target }))
          const action = before ? 'alias.change' : 'alias.create'
          return { result: before, action, subject: name, after, ...(before && { before: entry(before) }) }
        })
        return json({ name, target }, known ? 200 : 201)
      },
    },
    {
      path: '/v1/manage/alias/*name',
      answer: (asked) => {
        const name = pathPart(asked, 'name')
        return json(entry(names.alias(asked.organization, name) ?? missing('alias', name)))
      },
    },
    {
      path: '/v1/manage/alias/*name',
      method: 'delete',
      answer: (asked) => {
        const name = pathPart(asked, 'name')
        noted(store, asked, () => {
          const before = names.alias(asked.organization, name) ?? missing('alias', name)
          names.removeAlias(asked.organization, name)
          return { result: undefined, action: 'alias.delete', subject: name, before: entry(before) }
        })
        return done
      },
    },
  ]
}

function refuseWrongTarget({ name, target }: Alias, directory: Directory, rules: OrganizationRules): void {
  if (name === target) throw invalid("'target' is the alias itself; name a model or a policy.", 'target')
  targetCheck(directory, rules)(target, 'target')
  refuseOutsideEurope(name, modelsBehind(target, directory, rules), { path: 'target', directory })
}
