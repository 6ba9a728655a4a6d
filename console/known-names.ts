import { all } from './api.ts'
import type { Group, KeyEntry } from './entries.ts'

/** Returns the names of records by their ids; those that several have are followed by the end of the id. */
export function namesWithIds(records: readonly { id: string; name: string }[]): ReadonlyMap<string, string> {
  const counts = Map.groupBy(records, ({ name }) => name)
  const isShared = (name: string) => (counts.get(name)?.length ?? 0) > 1
  return new Map(records.map(({ id, name }) => [id, isShared(name) ? `${name} …${id.slice(-12)}` : name]))
}

/** Returns the names of the keys and groups of the organization by their ids. */
export async function namesById(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const [keys, groups] = await Promise.all([
    all<KeyEntry>('v1/manage/apikey', 'keys', signal),
    all<Group>('v1/manage/group', 'groups', signal),
  ])
  return new Map([...keys, ...groups].map(({ id, name }) => [id, name]))
}
