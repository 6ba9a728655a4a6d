import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { type Config, loadConfig } from '../snapshot/config.ts'
import { findConfig } from '../snapshot/find-config.ts'
import { CommandError, problemLine } from './command.ts'

/**
 * Finds the configuration of a command, and adds the variables of the `.env` file beside it to the environment of the process. Variables
 * that are set keep their values. Throws CommandError for a file that cannot be read.
 */
export function locateConfig(named: string | undefined): string {
  const path = findConfig(named, process.env)
  for (const [name, value] of Object.entries(dotEnvBeside(path))) process.env[name] ??= value
  return path
}

/** Reads the configuration of a command. Throws CommandError for one with problems. */
export async function configOf(named: string | undefined): Promise<Config> {
  const { config, problems } = await loadConfig(locateConfig(named), process.env)
  if (config) return config
  throw new CommandError(problems.map((problem) => problemLine(problem).trimEnd()).join('\n'))
}

/** Returns the variables of the `.env` file beside a configuration; none where there is no such file. Throws CommandError. */
export function dotEnvBeside(config: string): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(join(dirname(config), '.env'), 'utf8'))
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException
    // A folder of this name is one of Python's environments.
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return {}
    throw new CommandError(message)
  }
}
