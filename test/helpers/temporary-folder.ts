import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Gives the run a temporary folder of its own, in memory where there is enough: databases sync at every commit. All
 * routers of the run share a cache in it: of what was found out about files, and of compiled code for their threads.
 */
export default function setup(): () => void {
  const folder = mkdtempSync(join(hasRoom(memory) ? memory : tmpdir(), 'router-tests-'))
  process.env.TMPDIR = folder
  process.env.INFERENCE_ROUTER_CACHE = join(folder, 'cache')
  process.env.NODE_COMPILE_CACHE = join(folder, 'cache/code')
  // Workers that end keep what they compiled until they are gone.
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
}

const memory = '/dev/shm'

function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize > 2 ** 30
}
