import { chmodSync, closeSync, constants, openSync, statSync } from 'node:fs'

/** Creates a file that nobody but its owner may read. One that exists is left as it is: `keepPrivate` is for those. */
export function createPrivate(path: string): void {
  const { O_CREAT, O_EXCL, O_WRONLY } = constants
  unlessRefused(() => closeSync(openSync(path, O_CREAT | O_EXCL | O_WRONLY, ownerOnly)))
}

/** Takes the permissions of everybody but the owner from a file, if it exists. */
export function keepPrivate(path: string): void {
  unlessRefused(() => {
    const file = statSync(path)
    if (file.isFile() && (file.mode & others) !== 0) chmodSync(path, file.mode & 0o7700)
  })
}

/** Read and write for the owner, nothing for others. */
export const ownerOnly = 0o600
const others = 0o077

/**
 * The system may refuse, for instance because the file exists or belongs to another user, or because the disk knows no
 * permissions. What matters of it is reported when the file is opened.
 */
function unlessRefused(change: () => void): void {
  try {
    change()
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === undefined) throw thrown
  }
}
