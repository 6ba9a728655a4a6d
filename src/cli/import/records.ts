import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../core/json.ts'
import { aliasNameProblem, policyIdProblem } from '../../core/names.ts'
import type { ModelDirectory } from '../../management/names.ts'
import type { Store } from '../../store/open.ts'
import { CommandError, UsageError } from '../command.ts'
import { addKnownKey, managedTogether } from '../managed.ts'
import type { ImportPlan, PlannedGroup, PlannedKey, PlannedName, Remark } from './plan.ts'

/** Records that an import created, and those that were there already. */
export type ImportedRecords = {
  created: { policies: string[]; aliases: string[]; groups: string[]; keys: string[] }
  unchanged: number
  remarks: Remark[]
}

type Context = { store: Store; organization: string; directory: ModelDirectory; result: ImportedRecords }

/** Ends a transaction without its changes. */
class DryRun extends Error {}

/** Creates the names, groups and keys of a plan in an organization, all or none of them; `dryRun` creates none, but does all checks. */
export function createRecords(
  plan: ImportPlan,
  { store, organization, directory }: Omit<Context, 'result'>,
  { dryRun }: { dryRun: boolean },
): ImportedRecords {
  const result: ImportedRecords = {
    created: { policies: [], aliases: [], groups: [], keys: [] },
    unchanged: 0,
    remarks: [],
  }
  const context = { store, organization, directory, result }
  try {
    store.atomically(() => {
      for (const name of plan.names) unlessRefused(name.path, context, () => createName(name, context))
      for (const group of plan.groups) unlessRefused(group.path, context, () => createGroup(group, context))
      for (const key of plan.keys) unlessRefused(key.path, context, () => createPlannedKey(key, context))
      if (dryRun) throw new DryRun()
    })
  } catch (thrown) {
    if (!(thrown instanceof DryRun)) throw thrown
  }
  return result
}

/** Runs a change; one that is refused becomes a remark, and the others go on. */
function unlessRefused(path: string, { store, result }: Context, change: () => void): void {
  try {
    store.atomically(change)
  } catch (thrown) {
    if (!(thrown instanceof UsageError || thrown instanceof CommandError)) throw thrown
    result.remarks.push({ effect: 'manual', path, message: thrown.message })
  }
}

function remain({ result }: Context, path: string, what: string): void {
  result.remarks.push({ effect: 'manual', path, message: `${what} exists with other contents and was left as it is` })
}

/** Creates a name: an alias where one model serves it, else a policy, with an alias where its name cannot be that of a policy. */
function createName({ name, targets, rules, path }: PlannedName, context: Context): void {
  const [only, ...others] = targets
  if (only === undefined) return
  if (others.length === 0 && Object.keys(rules).length === 0) {
    if (only.target !== name) createAlias(name, only.target, path, context)
    return
  }
  const isId = policyIdProblem(name) === undefined
  const id = isId ? name : name.replace(/[^\w.:@+-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '')
  createPolicy(id, { targets: targets.map(written), ...rules }, path, context)
  if (!isId) createAlias(name, `policy/${id}`, path, context)
}

function written({ target, weight }: PlannedName['targets'][number]): string | JsonObject {
  return weight === undefined || weight === 1 ? target : { target, weight }
}

function createAlias(name: string, target: string, path: string, context: Context): void {
  const problem = aliasNameProblem(name)
  if (problem !== undefined) throw new UsageError(`the name '${name}' ${problem}`)
  const { store, organization, result } = context
  const known = store.names.alias(organization, name)
  if (known?.target === target) result.unchanged++
  else if (known) remain(context, path, `the alias '${name}'`)
  else {
    managedTogether([{ method: 'post', path: '/alias', body: { name, target } }], context)
    result.created.aliases.push(name)
  }
}

function createPolicy(id: string, body: JsonObject, path: string, context: Context): void {
  const { store, organization, result } = context
  const known = store.names.policy(organization, id)
  if (known) {
    const { id: _id, description: _description, targets, ...rules } = known
    if (isDeepStrictEqual({ targets: [...targets], ...rules }, body)) result.unchanged++
    else remain(context, path, `the policy '${id}'`)
    return
  }
  managedTogether([{ method: 'put', path: '/policy/:id', params: { id }, body }], context)
  result.created.policies.push(id)
}

function createGroup({ name, monthlyLimit }: PlannedGroup, context: Context): void {
  const { store, organization, result } = context
  if (store.groups.findByName(organization, name)) {
    result.unchanged++
    return
  }
  managedTogether([{ method: 'post', path: '/group', body: { name, monthly_limit: monthlyLimit } }], context)
  result.created.groups.push(name)
}

function createPlannedKey({ hash, prefix, body, group, path }: PlannedKey, context: Context): void {
  const { store, organization, result } = context
  const digest = Buffer.from(hash, 'hex')
  const known = store.keys.findByHash(digest)
  if (known) {
    if (known.organization !== organization || known.revokedAt !== null)
      result.remarks.push({
        effect: 'manual',
        path,
        message: 'the key is known here, in another organization or revoked, and was left as it is',
      })
    else result.unchanged++
    return
  }
  const found = group === undefined ? undefined : store.groups.findByName(organization, group)
  if (group !== undefined && !found)
    throw new UsageError(`the group '${group}' was not created, so the key was not either`)
  const created = addKnownKey({ ...body, ...(found && { group_id: found.id }) }, { hash: digest, prefix }, context)
  result.created.keys.push(created.name)
}
