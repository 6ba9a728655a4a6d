import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Gives the run a temporary folder of its own, in memory where there is enough: databases sync at every commit. Servers that
 * run as processes of their own share a cache in it.
 */
export default function setup(): () => void {
  const folder = mkdtempSync(join(hasRoom(memory) ? memory : tmpdir(), 'router-tests-'))
  process.env.TMPDIR = folder
  process.env.INFERENCE_ROUTER_CACHE = join(folder, 'cache')
  return () => rmSync(folder, { recursive: true, force: true })
}

const memory = '/dev/shm'

function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize > 2 ** 30
}
