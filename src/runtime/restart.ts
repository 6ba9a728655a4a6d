import { availableParallelism } from 'node:os'

/**
 * V8's helper threads, which collect memory and compile for every thread of the process. Node starts four, however few cores there
 * are, and a collection waits for its helpers: with more of them than there are cores to spare, streams wait too.
 */
const helperThreads = Math.min(4, Math.max(1, availableParallelism() - 1))

/**
 * Flags that Node and the C library read only when a process starts. The maximum that the young generation of the main thread may take, a
 * third of it (`runtime/young-generation.ts` keeps it smaller as long as that is enough). Few arenas: each keeps memory that only its
 * threads use again. No collections while nothing happens, which V8 makes some seconds after work: they find none of the objects that calls
 * are made of, so that compiled code which depends on their shapes is thrown away, and the next thousands of calls cost twice as much
 * (`runtime/collect.ts` collects instead). Most other flags of V8 would double the time that Node's own code takes to load: it was compiled
 * without them.
 */
export const serverFlags: readonly string[] = [
  '--max-semi-space-size=64',
  '--no-memory-reducer',
  `--v8-pool-size=${helperThreads}`,
]
/**
 * Returns the flags for a process whose code is loaded. A heap that grows by this much before it is collected, not several times: with 50
 * %, calls that wait for their providers cost 6 % more, because what they hold is old by then; with 100 % memory under load grows by 40 MB.
 * No compiler between the first and the last, Maglev: when calls begin, all their functions wait for it at once, each with tables of its
 * own, up to 50 MB that the C library does not give back; the last one is asked sooner instead, after half as many invocations. And nothing
 * is made old at once, as has been the case since the first request (`runtime/young-generation.ts`). `serving` is the number of threads
 * that serve calls: where that is one for every core, no helper threads take part in brief collections.
 */
export function lateFlags(serving: number): readonly string[] {
  return serving < availableParallelism() ? flagsOfAll : [...flagsOfAll, collectAlone]
}

const flagsOfAll: readonly string[] = [
  '--heap-growing-percent=70',
  '--no-maglev',
  '--invocation-count-for-turbofan=1500',
  '--no-allocation-site-pretenuring',
]
/**
 * Flag by which each thread collects its young generation alone. V8's helpers would take turns with the threads that serve, and every
 * collection would wait for them, which takes 4 to 11 % of a call's CPU. With a core to spare they make pauses shorter.
 */
const collectAlone = '--no-parallel-scavenge'

export const serverVariables = { MALLOC_ARENA_MAX: '2' }

/**
 * Starts the program of this process again as the same process, with what a server needs. The second time, the compiled code
 * of its first file is found as well, and Node's compiler of TypeScript, 18 MB, is not loaded. Flags that
 * were given stay as they are. A process with a channel to its parent is not started again, since the channel would be lost, nor one
 * with all such flags, nor on systems that cannot do it.
 */
export function restartAsServer(): void {
  const given = new Set([...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(' ')].map(nameOf))
  const missing = serverFlags.filter((flag) => !given.has(nameOf(flag)))
  if (missing.length === 0 || process.channel || !process.execve || process.platform === 'win32') return
  const words = [process.execPath, ...missing, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, words, { ...serverVariables, ...process.env } as Record<string, string>)
}

/** Returns the name of a flag as V8 reads it: `--no_memory_reducer` is about the same as `--memory-reducer`. */
function nameOf(flag: string): string {
  return flag
    .replaceAll('_', '-')
    .replace(/^--(?:no-)?/, '')
    .replace(/=.*/s, '')
}
