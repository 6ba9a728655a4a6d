import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../core/json.ts'
import { aliasNameProblem, policyIdProblem } from '../../core/names.ts'
import type { ModelDirectory } from '../../management/names.ts'
import type { Tables } from '../../store/tables.ts'
import { CommandError, UsageError } from '../command.ts'
import { addKnownKey, managedTogether } from '../managed.ts'
import type { ImportPlan, PlannedGroup, PlannedKey, PlannedName, Remark } from './plan.ts'

/** Records that an import created, and those that were there already. */
export type ImportedRecords = {
  created: { policies: string[]; aliases: string[]; groups: string[]; keys: string[] }
  unchanged: number
  remarks: Remark[]
}

type Context = { store: Tables; organization: string; directory: ModelDirectory; result: ImportedRecords }

/** Ends a transaction without its changes. */
class DryRun extends Error {
  readonly result: ImportedRecords

  constructor(result: ImportedRecords) {
    super('nothing is changed')
    this.result = result
  }
}

/** Creates the names, groups and keys of a plan in an organization, all or none of them; `dryRun` creates none, but does all checks. */
export async function createRecords(
  plan: ImportPlan,
  { store, organization, directory }: Omit<Context, 'result'>,
  { dryRun }: { dryRun: boolean },
): Promise<ImportedRecords> {
  try {
    return await store.atomically(async (tx) => {
      const result: ImportedRecords = {
        created: { policies: [], aliases: [], groups: [], keys: [] },
        unchanged: 0,
        remarks: [],
      }
      const context = { store: tx, organization, directory, result }
      for (const name of plan.names) await unlessRefused(name.path, context, (within) => createName(name, within))
      for (const group of plan.groups) await unlessRefused(group.path, context, (within) => createGroup(group, within))
      for (const key of plan.keys) await unlessRefused(key.path, context, (within) => createPlannedKey(key, within))
      if (dryRun) throw new DryRun(result)
      return result
    })
  } catch (thrown) {
    if (thrown instanceof DryRun) return thrown.result
    throw thrown
  }
}

/** Runs a change; one that is refused becomes a remark, and the others go on. */
async function unlessRefused(
  path: string,
  context: Context,
  change: (within: Context) => Promise<void>,
): Promise<void> {
  try {
    await context.store.atomically((tx) => change({ ...context, store: tx }))
  } catch (thrown) {
    if (!(thrown instanceof UsageError || thrown instanceof CommandError)) throw thrown
    context.result.remarks.push({ effect: 'manual', path, message: thrown.message })
  }
}

function remain({ result }: Context, path: string, what: string): void {
  result.remarks.push({ effect: 'manual', path, message: `${what} exists with other contents and was left as it is` })
}

/** Creates a name: an alias where one model serves it, else a policy, with an alias where its name cannot be that of a policy. */
async function createName({ name, targets, rules, path }: PlannedName, context: Context): Promise<void> {
  const [only, ...others] = targets
  if (only === undefined) return
  if (others.length === 0 && Object.keys(rules).length === 0) {
    if (only.target !== name) await createAlias(name, only.target, path, context)
    return
  }
  const isId = policyIdProblem(name) === undefined
  const id = isId ? name : name.replace(/[^\w.:@+-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '')
  await createPolicy(id, { targets: targets.map(written), ...rules }, path, context)
  if (!isId) await createAlias(name, `policy/${id}`, path, context)
}

function written({ target, weight }: PlannedName['targets'][number]): string | JsonObject {
  return weight === undefined || weight === 1 ? target : { target, weight }
}

async function createAlias(name: string, target: string, path: string, context: Context): Promise<void> {
  const problem = aliasNameProblem(name)
  if (problem !== undefined) throw new UsageError(`the name '${name}' ${problem}`)
  const { store, organization, result } = context
  const known = await store.names.alias(organization, name)
  if (known?.target === target) result.unchanged++
  else if (known) remain(context, path, `the alias '${name}'`)
  else {
    await managedTogether([{ method: 'post', path: '/alias', body: { name, target } }], context)
    result.created.aliases.push(name)
  }
}

async function createPolicy(id: string, body: JsonObject, path: string, context: Context): Promise<void> {
  const { store, organization, result } = context
  const known = await store.names.policy(organization, id)
  if (known) {
    const { id: _id, description: _description, targets, ...rules } = known
    if (isDeepStrictEqual({ targets: [...targets], ...rules }, body)) result.unchanged++
    else remain(context, path, `the policy '${id}'`)
    return
  }
  await managedTogether([{ method: 'put', path: '/policy/:id', params: { id }, body }], context)
  result.created.policies.push(id)
}

async function createGroup({ name, monthlyLimit }: PlannedGroup, context: Context): Promise<void> {
  const { store, organization, result } = context
  if (await store.groups.findByName(organization, name)) {
    result.unchanged++
    return
  }
  await managedTogether([{ method: 'post', path: '/group', body: { name, monthly_limit: monthlyLimit } }], context)
  result.created.groups.push(name)
}

async function createPlannedKey({ hash, prefix, body, group, path }: PlannedKey, context: Context): Promise<void> {
  const { store, organization, result } = context
  const digest = Buffer.from(hash, 'hex')
  const known = await store.keys.findByHash(digest)
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
  const found = group === undefined ? undefined : await store.groups.findByName(organization, group)
  if (group !== undefined && !found)
    throw new UsageError(`the group '${group}' was not created, so the key was not either`)
  const created = await addKnownKey(
    { ...body, ...(found && { group_id: found.id }) },
    { hash: digest, prefix },
    context,
  )
  result.created.keys.push(created.name)
}
