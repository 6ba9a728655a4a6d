import { filledText, list, listOf, optional, required } from '../api/check.ts'
import type { Json } from '../core/json.ts'
import { type Policy, policyIdProblem } from '../core/names.ts'
import {
  type Asked,
  done,
  json,
  type ManagementRooms,
  type ManageRoute,
  missing,
  noted,
  pathPart,
  rulesOf,
} from './manage.ts'
import { type Directory, modelCheck, refuseOutsideEurope } from './names.ts'
import { pageOf } from './page.ts'
import { invalid, membersOf, policyId, remark } from './read.ts'

/** `/v1/manage/policy`: the organization's named lists of targets, asked in their order. */
export function policyRoutes({ store, directory }: ManagementRooms): ManageRoute[] {
  const { names } = store
  const found = (asked: Asked) => {
    const id = pathPart(asked, 'id')
    return names.policy(asked.organization, id) ?? missing('policy', id)
  }
  const put = (asked: Asked, policy: Policy, { isNew }: { isNew: boolean }) =>
    noted(store, asked, () => {
      const before = names.policy(asked.organization, policy.id)
      if (before && isNew) {
        throw invalid(`There is already a policy '${policy.id}'; PUT /v1/manage/policy/${policy.id} changes it.`, 'id')
      }
      const after = entry(names.setPolicy(asked.organization, policy))
      const action = before ? 'policy.change' : 'policy.create'
      return { result: before, action, subject: policy.id, after, ...(before && { before: entry(before) }) }
    })
  return [
    {
      path: '/v1/manage/policy',
      answer: (asked) =>
        json(
          pageOf(asked, {
            name: 'policies',
            read: names.policies,
            isCursor: (id) => policyIdProblem(id) === undefined,
            idOf: ({ id }) => id,
            entry,
          }),
        ),
    },
    {
      path: '/v1/manage/policy',
      method: 'post',
      answer: (asked) => {
        const policy = policyFrom(asked.body, undefined, directory())
        put(asked, policy, { isNew: true })
        return json(entry(policy), 201)
      },
    },
    { path: '/v1/manage/policy/:id', answer: (asked) => json(entry(found(asked))) },
    {
      path: '/v1/manage/policy/:id',
      method: 'put',
      answer: (asked) => {
        const policy = policyFrom(asked.body, pathPart(asked, 'id'), directory())
        return json(entry(policy), put(asked, policy, { isNew: false }) ? 200 : 201)
      },
    },
    {
      path: '/v1/manage/policy/:id',
      method: 'delete',
      answer: (asked) => {
        noted(store, asked, () => {
          const before = found(asked)
          refuseNamed(before.id, rulesOf(store, asked.organization).aliases)
          names.removePolicy(asked.organization, before.id)
          return { result: undefined, action: 'policy.delete', subject: before.id, before: entry(before) }
        })
        return done
      },
    },
  ]
}

function entry({ id, description, targets }: Policy) {
  return { id, description, targets: [...targets] }
}

/** The policy of a body; its id may be left out of it where the path names it. */
function policyFrom(body: unknown, pathId: string | undefined, directory: Directory): Policy {
  const members = membersOf(body, ['id', 'description', 'targets'])
  const id = required(members.id ?? pathId, 'id', 'what the policy is called', policyId)
  if (pathId !== undefined && id !== pathId) {
    throw invalid(`'id' is '${id}', but the path names '${pathId}'; a policy keeps its id.`, 'id')
  }
  const description = optional(members.description, 'description', remark) ?? ''
  const targets = required(members.targets, 'targets', 'an array of models', (value, path) =>
    targetsFrom(value, path, directory),
  )
  refuseOutsideEurope(id, targets, { path: 'targets', directory })
  return { id, description, targets }
}

function targetsFrom(value: Json, path: string, directory: Directory): string[] {
  const count = list(value, path).length
  if (count < 1 || count > mostTargets)
    throw invalid(`'${path}' has ${count} models; 1 to ${mostTargets} may be.`, path)
  const targets = listOf(filledText)(value, path)
  const checkName = modelCheck(directory)
  targets.forEach((target, index) => {
    checkName(target, `${path}[${index}]`)
    if (targets.indexOf(target) < index) throw invalid(`'${path}[${index}]' stands there twice: '${target}'.`, path)
  })
  return targets
}

const mostTargets = 64

/** What aliases lead to stays. */
function refuseNamed(id: string, aliases: ReadonlyMap<string, string>): void {
  const alias = [...aliases].find(([, target]) => target === id || target === `policy/${id}`)
  if (alias) throw invalid(`The alias '${alias[0]}' leads to this policy: change or delete that one first.`)
}
