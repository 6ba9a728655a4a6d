import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

/**
 * Gives the run a temporary folder of its own, in memory where there is enough: databases sync at every commit. All
 * routers of the run share a cache in it: of what was found out about files, and of compiled code for their threads.
 */
export default async function setup(project: TestProject): Promise<() => void> {
  const parent = hasRoom(memory) ? memory : tmpdir()
  removeLeftovers(parent)
  const folder = mkdtempSync(join(parent, `router-tests-${process.pid}-`))
  process.env.TMPDIR = folder
  process.env.INFERENCE_ROUTER_CACHE = join(folder, 'cache')
  process.env.NODE_COMPILE_CACHE = join(folder, 'cache/code')
  // A few files are done sooner without.
  const isNamed = process.argv.some((word) => word.endsWith('.test.ts'))
  if (!isNamed) await warm(project.config.execArgv)
  // Workers that end keep what they compiled until they are gone.
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
}

/** Fills the cache by a start. Processes that are killed keep nothing for the next one, and workers only when they end. */
async function warm(flags: readonly string[]): Promise<void> {
  const script = join(import.meta.dirname, 'warm.ts')
  await once(spawn(process.execPath, [...flags, script], { stdio: 'inherit' }), 'exit')
}

/** Runs that crashed or were killed have left their folders, which are named after their process. */
function removeLeftovers(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = /^router-tests-(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(parent, name), { recursive: true, force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it is another user's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

const memory = '/dev/shm'

function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize > 2 ** 30
}
