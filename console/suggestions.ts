import { all, api } from './api.ts'
import type { CallEntry, Group, KeyEntry, RefusedEntry } from './entries.ts'
import { namesWithIds } from './known-names.ts'
import { callableNames } from './lists.ts'

/** Suggestions for filters of calls: the values of each by its parameter, and the ids of those that are found by name. */
export type Suggestions = {
  options: { readonly [filter: string]: readonly string[] }
  /** Names by ids, of the filters that the API takes ids for. */
  names: { readonly [filter: string]: ReadonlyMap<string, string> }
}

/** Number of the latest calls whose users, errors and tags are suggested. */
const looked = 200

/** Returns what calls can be filtered by. */
export async function suggestions(signal: AbortSignal): Promise<Suggestions> {
  const [keys, groups, asked, { providers }, { calls }, { refusals }] = await Promise.all([
    all<KeyEntry>('v1/manage/apikey', 'keys', signal),
    all<Group>('v1/manage/group', 'groups', signal),
    callableNames(signal),
    api<{ providers: { slug: string; configured: boolean }[] }>('v1/manage/providers', { signal }),
    api<{ calls: CallEntry[] }>('v1/manage/calls', { query: { limit: looked }, signal }),
    api<{ refusals: RefusedEntry[] }>('v1/manage/refusals', { query: { limit: looked }, signal }),
  ])
  const names = { key: namesWithIds(keys), group: namesWithIds(groups) }
  return {
    names,
    options: {
      model: asked.filter((name) => name.includes('/')),
      asked,
      provider: providers.filter(({ configured }) => configured).map(({ slug }) => slug),
      key: [...names.key.values()],
      group: [...names.group.values()],
      user: distinct(calls.map(({ user }) => user)),
      code: distinct([...calls, ...refusals].map(({ code }) => code)),
      tag: distinct([...keys.flatMap(({ labels }) => pairs('label', labels)), ...calls.flatMap(tagsOf)]),
    },
  }
}

/** Returns the names of labels and tags that usage can be grouped by: `label.team`, `extra.feature`. */
export async function tagNames(signal: AbortSignal): Promise<string[]> {
  const [keys, { calls }] = await Promise.all([
    all<KeyEntry>('v1/manage/apikey', 'keys', signal),
    api<{ calls: CallEntry[] }>('v1/manage/calls', { query: { limit: looked }, signal }),
  ])
  const labels = keys.flatMap(({ labels }) => Object.keys(labels).map((name) => `label.${name}`))
  const fields = calls.flatMap(({ extra = {} }) => Object.keys(extra).map((name) => `extra.${name}`))
  return distinct([...labels, ...fields])
}

/** Returns the id of what a text names: by its whole name, or by a part of it that no other has; the text itself where there is none. */
export function idNamed(text: string, names: ReadonlyMap<string, string>): string {
  if (text === '' || names.has(text)) return text
  const found = [...names]
  const exact = found.find(([, name]) => name === text)
  if (exact) return exact[0]
  const similar = found.filter(([, name]) => name.toLowerCase().includes(text.toLowerCase()))
  return similar.length === 1 ? (similar[0]?.[0] ?? text) : text
}

function tagsOf({ extra = {} }: CallEntry): string[] {
  return pairs('extra', extra)
}

/** Writes texts by their names as filters: `label.team=web`. */
function pairs(kind: string, values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    typeof value === 'string' && value.length <= maxLength ? [`${kind}.${name}=${value}`] : [],
  )
}

/** Length from which values are texts of their own rather than something to filter by. Characters. */
const maxLength = 100

function distinct(values: readonly (string | undefined)[]): string[] {
  return [...new Set(values.filter((value) => value !== undefined && value !== ''))].toSorted() as string[]
}
