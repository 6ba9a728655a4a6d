import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import type { Environment } from '../../manifest/read/environment.ts'
import { CommandError } from '../command.ts'
import type { FoundProvider } from './found-providers.ts'

/** Files that were written, and those that existed and were left as they are; relative to the folder. */
export type WrittenFiles = { written: string[]; kept: string[] }

/** A file to write: its mode, and its text. */
export type NewFile = { path: string; text: string; mode?: number }

/** Mode of a file with secrets: read and written by its owner alone. */
export const secretMode = 0o600

/** Writes files that do not exist yet. One that exists is never changed. Throws CommandError. */
export function writeNewFiles(folder: string, files: readonly NewFile[]): WrittenFiles {
  const result: WrittenFiles = { written: [], kept: [] }
  for (const { path, text, mode = 0o644 } of files) {
    const file = join(folder, path)
    try {
      if (path.endsWith('/')) {
        const existed = existsSync(file)
        mkdirSync(file, { recursive: true })
        result[existed ? 'kept' : 'written'].push(path)
        continue
      }
      mkdirSync(dirname(file), { recursive: true })
      const opened = openSync(file, 'wx', mode)
      writeSync(opened, text)
      closeSync(opened)
      result.written.push(path)
    } catch (thrown) {
      const { code, message } = thrown as NodeJS.ErrnoException
      if (code !== 'EEXIST') throw new CommandError(message)
      result.kept.push(path)
    }
  }
  return result
}

/** Returns the text of a configuration that names the providers which are off unless they are named. */
export function configText(found: readonly FoundProvider[]): string {
  const named = found.filter(({ mustBeNamed }) => mustBeNamed)
  const members = named.map(({ slug, address }) => `  ${slug}: {}${address ? `    # answers at ${address}` : ''}\n`)
  return `# Settings of this router. What is not here has its default: \`inference-router serve --help\`, docs/operations.md.
# A saved change is in use within a second. \`inference-router check\` says what is wrong.

server:
  host: 127.0.0.1       # 0.0.0.0 takes calls from other machines
  port: 8787

store:
  url: sqlite:data/router.sqlite

# Providers whose variables are set (in the environment, or in .env beside this file) need no entry. Servers without a secret do.
providers:${members.length === 0 ? ' {}\n' : `\n${members.join('')}`}`
}

/** Returns the text of a `.env` file with the variables of providers. */
export function dotEnvText(found: readonly FoundProvider[], env: Environment): string {
  const parts = found.flatMap(({ slug, set, missing }) => {
    const lines = [...set.map((name) => assignment(name, env[name] ?? '')), ...missing.map((name) => `${name}=\n`)]
    return lines.length === 0 ? [] : [`# ${slug}\n${lines.join('')}`]
  })
  return `# Variables of the router, read by all its commands. The environment goes before this file. Keep it out of version control.
# The first start prints a key, unless this is set to one of your own (20 characters or more, chosen at random):
# INFERENCE_ROUTER_ADMIN_KEY=

${parts.join('\n')}`
}

/** Returns a line that gives a variable its value, in the quotes that it needs. */
export function assignment(name: string, value: string): string {
  const forms = ['', "'", '`', '"'].map((quote) => `${name}=${quote}${value}${quote}\n`)
  const right = forms.find((form) => parseEnv(form)[name] === value)
  return right ?? `# ${name} has a value that such a file cannot hold: set it in the environment.\n`
}

/** Returns the variables that a `.env` file gives a value. */
export function variablesIn(file: string): NodeJS.Dict<string> {
  return existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {}
}
