// Installs the packages when they are missing or older than the lock file. Runs on any Node that npm came with.
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'

const modified = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0
const installed = modified('../node_modules/.package-lock.json')

if (installed === 0 || installed < modified('../package-lock.json')) {
  console.error('Installing packages (once)…')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const options = { cwd: new URL('..', import.meta.url), stdio: ['ignore', 2, 2], shell: process.platform === 'win32' }
  const { status } = spawnSync(npm, ['ci', '--no-audit', '--no-fund', '--loglevel=error'], options)
  process.exitCode = status ?? 1
}
