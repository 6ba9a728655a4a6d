import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type DatabaseFacts, inspectDatabase } from '../../store/sqlite/inspect.ts'
import { StoreError } from '../../store/store-error.ts'
import { type Finding, ok, problem, warning } from './finding.ts'
import { gigabytes } from './machine.ts'

/** Findings about the database, and its facts where it could be opened. */
export type KnownDatabase = { findings: Finding[]; facts?: DatabaseFacts }

/** Checks the database of a URL, its folder and its disk. Nothing is created, and no table is changed. */
export function checkDatabase(url: string): KnownDatabase {
  const path = url.slice('sqlite:'.length)
  if (path === ':memory:') {
    const fix = 'name a file in store.url'
    return {
      findings: [warning('database', 'it is in memory: keys and the ledger are lost when the router stops', fix)],
    }
  }
  const folder = existingFolder(dirname(path))
  const disk = diskFindings(folder)
  const refused = permissionFinding(path, folder)
  if (refused) return { findings: [refused, ...disk] }
  if (!existsSync(path)) return { findings: [ok('database', `${path} will be created by the first start`), ...disk] }
  try {
    const facts = inspectDatabase(path)
    return { facts, findings: [databaseFinding(path, facts), ...disk] }
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown
    const fix = 'see docs/operations.md, "When it fails"'
    return { findings: [problem('database', thrown.message, fix), ...disk] }
  }
}

function databaseFinding(path: string, { isServing, missingMigrations }: DatabaseFacts): Finding {
  const state = isServing ? 'a router runs with it' : 'no router runs with it'
  if (missingMigrations === 0) return ok('database', `${path} can be written; ${state}`)
  const message = `${path} has tables of an older version, which the next start changes for good`
  return warning('database', message, 'make a backup before that: older versions cannot use it afterwards')
}

/** Finds what does not let this user write the database. */
function permissionFinding(path: string, folder: string): Finding | undefined {
  const owner = statSync(path, { throwIfNoEntry: false })?.uid
  const user = process.getuid?.()
  if (owner !== undefined && user !== undefined && owner !== user) {
    const message = `${path} belongs to the user ${owner}, and this is ${user}: the files beside it would belong to another user than the router`
    return problem('database', message, 'run this as the same user as the router')
  }
  const fix = 'let the user of the router write the folder and the file: SQLite writes further files beside it'
  if (!isWritable(folder)) return problem('database', `the folder ${folder} cannot be written`, fix)
  if (owner !== undefined && !isWritable(path)) return problem('database', `${path} cannot be written`, fix)
  return undefined
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Returns the folder, or the nearest one above that exists, in which it would be created. */
function existingFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existingFolder(dirname(folder))
}

/** Space below which a busy router fails within hours, and at once. Bytes. */
const littleSpace = 2 ** 30
const minSpace = 100 * 2 ** 20
/** The kinds of network disks that Linux knows: NFS, SMB, CIFS, Ceph, AFS. */
const networkDisks: ReadonlySet<number> = new Set([0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0x00c36400, 0x5346414f])

function diskFindings(folder: string): Finding[] {
  const { bavail, bsize, ffree, files, type } = statfsSync(folder)
  const free = bavail * bsize
  const found: Finding[] = []
  if (process.platform === 'linux' && networkDisks.has(type)) {
    const fix = 'put it on a local disk: locks of network disks are not reliable'
    found.push(problem('disk', `${folder} is on a network disk`, fix))
  }
  if (files > 0 && ffree === 0)
    found.push(problem('disk', `${folder}: the disk takes no more files`, 'delete files there'))
  const message = `${gigabytes(free)} are free in ${folder}`
  const fix = 'make room: calls are refused when the ledger cannot be written'
  if (free < minSpace) found.push(problem('disk', message, fix))
  else found.push(free < littleSpace ? warning('disk', message, fix) : ok('disk', message))
  return found
}
