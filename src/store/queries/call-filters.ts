/** Filters of calls; a missing one lets all pass. `labels` are those that the key currently has, `extra` are fields of the metadata. */
export type CallFilters = {
  id?: string
  key?: string
  group?: string
  provider?: string
  model?: string
  requested?: string
  operation?: string
  outcome?: string
  code?: string
  user?: string
  requestId?: string
  labels?: readonly (readonly [name: string, value: string])[]
  extra?: readonly (readonly [name: string, value: string])[]
}

/** Checks whether a label or a field of the metadata may have this name in a filter. */
export function isFilterName(name: string): boolean {
  return /^[^"\p{Cc}]{1,128}$/u.test(name)
}

type Equal = Exclude<keyof CallFilters, 'labels' | 'extra'>

/** The columns that are compared as they are. */
const columns: { readonly [name in Equal]: string } = {
  id: 'id',
  key: 'key',
  group: 'group_id',
  provider: 'provider',
  model: 'model',
  requested: 'requested',
  operation: 'operation',
  outcome: 'outcome',
  code: 'error',
  user: 'user',
  requestId: 'request_id',
}

/** Conditions on rows of the ledger, each with `AND` before it. What clients choose is bound, never part of the SQL. */
export function filterSql({ labels = [], extra = [], ...equal }: CallFilters): string {
  const conditions = [
    ...Object.keys(equal).map((name) => `${columns[name as Equal]} = @${name}`),
    ...labels.map((_, index) => {
      const value = `labels ->> @label${index} = @labelValue${index}`
      return `EXISTS (SELECT 1 FROM api_keys WHERE api_keys.id = ledger.key AND ${value})`
    }),
    ...extra.map((_, index) => `metadata -> @extra${index} IN (@extraValue${index}, @extraText${index})`),
  ]
  return conditions.map((condition) => `AND ${condition}`).join(' ')
}

/** Returns the values that are bound to the conditions. */
export function filterParameters({ labels = [], extra = [], ...equal }: CallFilters): Record<string, string> {
  const path = (name: string) => `$.${JSON.stringify(name)}`
  return {
    ...equal,
    ...Object.fromEntries(
      labels.flatMap(([name, value], index) => [
        [`label${index}`, path(name)],
        [`labelValue${index}`, value],
      ]),
    ),
    ...Object.fromEntries(
      extra.flatMap(([name, value], index) => [
        [`extra${index}`, path(name)],
        // A text, or anything else: a number, true, an object.
        [`extraText${index}`, JSON.stringify(value)],
        [`extraValue${index}`, value],
      ]),
    ),
  }
}
