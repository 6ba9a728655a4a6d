import { join } from 'node:path'
import { loadConfig } from '../../src/snapshot/config.ts'
import { type Files, readFiles } from '../../src/snapshot/load-files.ts'
import { cache } from './router.ts'

let read: Promise<Files> | undefined

/** All files that the project ships, providers without their variables included; read once in a worker. */
export function shippedFiles(): Promise<Files> {
  read ??= readShipped()
  return read
}

async function readShipped(): Promise<Files> {
  const { config, source, problems } = await loadConfig(join(import.meta.dirname, '../../config.yaml'), {})
  if (!config) throw new Error(`config.yaml cannot be read: ${problems.map(({ message }) => message).join(', ')}`)
  return await readFiles({ config, source, env: {}, everything: true, cache })
}
