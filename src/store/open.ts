import { controlPath, openSqlite } from './sqlite/open-sqlite.ts'
import type { Store } from './store.ts'
import { StoreError } from './store-error.ts'

export type { Store } from './store.ts'

/** Maximum time for which an event loop that serves may wait for the lock of another process. Milliseconds. */
export const eventLoopPatienceMs = 250

/**
 * Opens `sqlite:<path>` or `sqlite::memory:`, creating and migrating it where needed. `asRouter` locks it against a second
 * router, but not against commands; `patienceMs` is how long to wait for a router that is shutting down. Rejects with StoreError.
 */
export async function openStore(
  url: string,
  options: { asRouter?: boolean; patienceMs?: number } = {},
): Promise<Store> {
  return openSqlite(pathOf(url), options)
}

/**
 * The file through which a router on this database is asked to hand it over. Undefined where none can: the database is in
 * memory or does not exist yet. Throws StoreError where its tables are not those of this version.
 */
export function controlPathOf(url: string): string | undefined {
  return controlPath(pathOf(url))
}

function pathOf(url: string): string {
  const path = /^sqlite:(?:\/\/)?(.+)$/s.exec(url)?.[1]
  if (path) return path
  if (/^postgres(?:ql)?:/.test(url))
    throw new StoreError(
      `store.url is '${url.replace(/:.*/s, ':…')}': PostgreSQL is not supported yet; write "sqlite:<path of a file>"`,
    )
  throw new StoreError(`store.url is '${url}'; write "sqlite:<path of a file>" or "sqlite::memory:"`)
}
