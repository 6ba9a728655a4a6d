import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Data that tests use where it is available, by the environment variable that overrides its folder. */
const folders = {
  RECORDINGS: 'recordings',
  SPECS: 'specs',
  FACTS: 'facts',
  JSONATA_SUITE: 'jsonata-suite',
} as const

/** The path of a folder of data, or of a file in it: beside the checkout unless its variable says otherwise. */
export function dataPath(variable: keyof typeof folders, file = ''): string {
  const folder = process.env[variable] ?? join(import.meta.dirname, '../../../shared', folders[variable])
  return join(resolve(folder), file)
}

/** The reason why a folder of data, or a file in it, cannot be read; undefined when it can. */
export function missingData(variable: keyof typeof folders, file?: string): string | undefined {
  const path = dataPath(variable, file)
  return existsSync(path) ? undefined : `no ${path} (set ${variable})`
}

/** The reasons why folders of data cannot be read. */
export function allMissingData(): string[] {
  return (Object.keys(folders) as (keyof typeof folders)[]).flatMap((variable) => missingData(variable) ?? [])
}
