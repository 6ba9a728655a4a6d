import { all } from './api.ts'
import type { Group, KeyEntry } from './entries.ts'

/** Returns the names of the keys and groups of the organization by their ids. */
export async function namesById(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const [keys, groups] = await Promise.all([
    all<KeyEntry>('v1/manage/apikey', 'keys', signal),
    all<Group>('v1/manage/group', 'groups', signal),
  ])
  return new Map([...keys, ...groups].map(({ id, name }) => [id, name]))
}
