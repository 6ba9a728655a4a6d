import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { folderOfList, type ListPackage, type ListSource } from './lists.ts'

/** Downloads the package of a list into the cache, unless this version is there. No code of the package is run. */
export function downloadList(source: ListSource & { package: ListPackage }, cache: string): 'kept' | 'downloaded' {
  const folder = folderOfList(cache, source)
  if (existsSync(folder)) return 'kept'
  const unfinished = `${folder}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  const { npm, pypi, version } = source.package
  if (npm !== undefined) {
    run('npm', ['pack', '--silent', '--pack-destination', unfinished, `${npm}@${version}`])
    const [archive] = readdirSync(unfinished)
    run('tar', ['-xzf', join(unfinished, archive as string), '-C', unfinished, '--strip-components=1'])
  } else {
    run('pip', ['install', '--quiet', '--no-deps', '--no-compile', '--target', unfinished, `${pypi}==${version}`])
  }
  renameSync(unfinished, folder)
  return 'downloaded'
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], timeout: maxMs })
}

/** Maximum time of a download. Milliseconds. */
const maxMs = 300_000
