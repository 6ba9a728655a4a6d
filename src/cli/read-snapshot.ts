import { closeAll } from '../plugin/instances.ts'
import { type Built, buildSnapshot } from '../snapshot/snapshot.ts'
import { earlierFiles } from './earlier-files.ts'

/** The snapshot of a configuration for a command that calls no model: its plugins have ended. */
export async function readSnapshot(configPath: string | undefined): Promise<Built> {
  const cache = earlierFiles(process.env)
  const built = await buildSnapshot(configPath, process.env, { cache })
  await cache.written()
  await closeAll(built.snapshot?.instances ?? [])
  return built
}
