import { defaultCreationLimits } from '../core/creation-limits.ts'
import type { JsonObject } from '../core/json.ts'
import { parseTime } from '../core/time.ts'
import { labelsWithin } from '../management/read.ts'
import { audited } from '../store/audit.ts'
import { type KeyRecord, type Level, levels, type Permissions } from '../store/keys.ts'
import type { Tables } from '../store/tables.ts'
import {
  actor,
  checked,
  groupOf,
  modelsFrom,
  monthlyLimitFrom,
  pluginStates,
  rateLimitFields,
  rateLimitOptions,
} from './admin.ts'
import { type Args, UsageError } from './command.ts'
import type { ManagedRequest, OptionNames } from './managed.ts'

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const

/** The options of the properties that a key is created with, and that can be changed later. */
export const propertyOptions = {
  instance: text,
  content: text,
  'monthly-limit': text,
  expires: text,
  label: texts,
  ...rateLimitOptions,
  models: texts,
  plugin: texts,
  group: text,
} as const

/** The options by the fields of the management API that they fill. */
export const optionNames: OptionNames = {
  monthly_limit: '--monthly-limit',
  expires_at: '--expires',
  labels: '--label',
  models: '--models',
  plugins: '--plugin',
}

/** Returns the permissions of a new key: unless options say otherwise, it calls models. Throws UsageError. */
export function permissionsFrom({ text }: Args): JsonObject {
  return {
    manage: levelFrom(text('manage') ?? 'none', '--manage', levels),
    completions: levelFrom(text('completions') ?? 'write', '--completions', levels),
    operate: levelFrom(text('operate') ?? 'none', '--operate', levels),
    instance: levelFrom(text('instance') ?? 'none', '--instance', ['none', 'read']),
    content: levelFrom(text('content') ?? 'none', '--content', levels),
  }
}

/** The permissions that `key edit` grants and takes back, for which the management API has no request. */
export type EditedPermissions = { instance?: 'none' | 'read'; content?: Level }

/** Returns the permissions that options of `key edit` name. Throws UsageError. */
export function editedPermissions({ text }: Args): EditedPermissions {
  const [instance, content] = [text('instance'), text('content')]
  return {
    ...(instance !== undefined && { instance: levelFrom(instance, '--instance', ['none', 'read']) }),
    ...(content !== undefined && { content: levelFrom(content, '--content', levels) }),
  }
}

/** Returns the properties that options name, as fields of the management API. Throws UsageError. */
export function propertiesFrom(args: Args): JsonObject {
  const { text, texts } = args
  const [limit, expires] = [text('monthly-limit'), text('expires')]
  const [labels, models, plugins] = [texts('label'), texts('models'), texts('plugin')]
  const limits = rateLimitFields(args)
  return {
    ...(limit !== undefined && { monthly_limit: monthlyLimitFrom(limit, '--monthly-limit') }),
    ...(expires !== undefined && { expires_at: timeFrom(expires) }),
    ...(labels.length > 0 && { labels: checked(labelCheck, Object.fromEntries(labels.map(labelFrom)), '--label') }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(models.length > 0 && { models: modelsFrom(models, '--models') }),
    ...(plugins.length > 0 && { plugins: pluginStates(plugins) }),
  }
}

const labelCheck = labelsWithin(defaultCreationLimits)

/** Returns the field of the group that an option names, null for none. Rejects with CommandError. */
export async function groupField(
  { text }: Args,
  tables: Pick<Tables, 'groups'>,
  organization: string,
): Promise<JsonObject> {
  const name = text('group')
  if (name === undefined) return {}
  return { group_id: name === 'none' ? null : (await groupOf(tables, organization, name)).id }
}

/** Returns the requests that change the properties of a key. */
export function keyChanges(id: string, { limits, ...properties }: JsonObject): ManagedRequest[] {
  const change = (property: string, body: JsonObject): ManagedRequest => ({
    method: 'post',
    path: `/apikey/:id/${property}`,
    params: { id },
    body,
  })
  return [
    ...Object.entries(properties).map(([field, value]) => change(paths[field] ?? field, { [field]: value ?? null })),
    ...(limits === undefined ? [] : [change('limits', limits as JsonObject)]),
  ]
}

/** The last steps of the paths at which fields are changed. */
const paths: { readonly [field: string]: string } = {
  monthly_limit: 'limit',
  expires_at: 'expiry',
  labels: 'label',
  models: 'access',
  group_id: 'group',
}

/** Grants permissions or takes them back, each with an entry in the log of changes. */
export async function editPermissions(tables: Tables, id: string, edited: EditedPermissions): Promise<void> {
  for (const area of ['instance', 'content'] as const) {
    const level = edited[area]
    if (level === undefined) continue
    await audited(tables, actor, async (tx) => {
      const { organization, permissions: before } = (await tx.keys.find(id)) as KeyRecord
      const { [area]: _, ...others } = before
      const after: Permissions = { ...others, ...(level !== 'none' && { [area]: level }) }
      const result = await tx.keys.update(id, { permissions: after })
      const states = { before: { permissions: { ...before } }, after: { permissions: { ...after } } }
      return { result, organization, action: `apikey.${area}`, subject: id, ...states }
    })
  }
}

/** Returns one of some levels. Throws UsageError. */
export function levelFrom<Known extends string>(text: string, option: string, known: readonly Known[]): Known {
  const level = known.find((one) => one === text)
  if (level) return level
  throw new UsageError(`${option} is '${text}'; write ${known.join(', ')}`)
}

function labelFrom(text: string): [name: string, value: string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError(`--label is '${text}'; write NAME=VALUE`)
  return [name, value]
}

function timeFrom(text: string): string | null {
  if (text === 'never') return null
  const time = parseTime(text)
  if (time === undefined) throw new UsageError(`--expires is '${text}'; write a time as 2027-01-31T00:00:00Z`)
  if (time <= Date.now()) throw new UsageError(`--expires is '${text}', which has passed; write a time in the future`)
  return text
}
