import { readFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import type { Config } from '../../snapshot/config.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Checks the version of Node against the one that the program requires: `>=24.11`. */
export function checkNode(required: string, found = process.versions.node): Finding[] {
  const least = required.replace(/^>=/, '').split('.').map(Number)
  const parts = found.split('.').map(Number)
  const different = least.findIndex((part, at) => part !== parts[at])
  const isEnough = different < 0 || (parts[different] ?? 0) > (least[different] ?? 0)
  if (isEnough)
    return [ok('node', `Node ${found}, ${availableParallelism()} cores, ${gigabytes(totalmem())} of memory`)]
  return [
    problem(
      'node',
      `Node ${found} runs this, which needs ${required}`,
      'start it with `npm start`, which brings its own Node',
    ),
  ]
}

/** Connections of a call, to its client and to its provider. */
const filesPerCall = 2
/** Files of the process itself: the database, the log, the watched folders. */
const ownFiles = 100
/** Below this a router with few calls runs out as well. */
const minFiles = 1_024

/** Checks whether the process may open enough files for the calls that may run at once. */
export function checkDescriptors({ server: { limits } }: Pick<Config, 'server'>, limit = maxOpenFiles()): Finding[] {
  if (limit === undefined) return [ok('descriptors', 'the limit of open files is not known on this system')]
  const needed = limits.concurrent * filesPerCall + ownFiles
  const found = `${limit === Infinity ? 'any number of' : limit} files may be open at once`
  if (limit >= needed) return [ok('descriptors', `${found}: enough for ${limits.concurrent} calls`)]
  const fix = `raise the limit (\`ulimit -n ${needed}\`, LimitNOFILE of systemd), or lower server.limits.concurrent`
  const message = `${found}; ${limits.concurrent} calls (server.limits.concurrent) need ${needed}`
  return [limit < minFiles ? problem('descriptors', message, fix) : warning('descriptors', message, fix)]
}

/** Reads the limit of open files; undefined where the system does not state it there. */
function maxOpenFiles(): number | undefined {
  try {
    const [, soft = ''] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    if (soft === 'unlimited') return Infinity
    return soft === '' ? undefined : Number(soft)
  } catch {
    return undefined
  }
}

/** Clocks that differ by more are wrong: signatures and tokens of cloud providers allow some minutes. Milliseconds. */
const maxSkewMs = 60_000
const smallSkewMs = 5_000

/**
 * Checks this machine's clock: against the providers that answered, by how far it is ahead of each; without them, against the newest row
 * of the ledger.
 */
export function checkClock(skews: readonly number[], newestAt: number | undefined, now = Date.now()): Finding[] {
  const fix = 'synchronize the clock (NTP): signatures, tokens, price changes and budgets of the month depend on it'
  const [first, ...others] = skews
  if (first === undefined) {
    const time = new Date(now).toISOString()
    if (newestAt === undefined || newestAt <= now + smallSkewMs) {
      return [ok('clock', `it is ${time}; a call to a provider (--call) compares it`)]
    }
    return [
      problem(
        'clock',
        `it is ${time}, earlier than the newest call of the ledger (${new Date(newestAt).toISOString()})`,
        fix,
      ),
    ]
  }
  // One provider's clock may be wrong; most of them are not.
  const sorted = [first, ...others].sort((one, other) => one - other)
  const median = sorted[Math.floor(sorted.length / 2)] ?? first
  const size = Math.abs(median)
  if (size <= smallSkewMs)
    return [ok('clock', `it agrees with ${skews.length} provider${skews.length === 1 ? '' : 's'}`)]
  const message = `it is ${(size / 1_000).toFixed(0)} s ${median > 0 ? 'ahead of' : 'behind'} the clocks of providers`
  return [size > maxSkewMs ? problem('clock', message, fix) : warning('clock', message, fix)]
}

/** Writes a size in GB or MB. */
export function gigabytes(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GB` : `${Math.floor(bytes / 2 ** 20)} MB`
}
