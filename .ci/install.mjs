// Installs the packages when they are missing or older than the lock file. Runs on any Node that npm came with.
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'

const modified = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0
const installed = modified('../node_modules/.package-lock.json')

if (installed === 0 || installed < modified('../package-lock.json')) {
  console.error('Installing packages (once)…')
  // A registry may lack one of the exact versions: then what package.json asks for will do.
  process.exitCode = npm('ci') === 0 ? 0 : npm('install', '--no-package-lock')
}

function npm(...args) {
  const windows = process.platform === 'win32'
  const options = { cwd: new URL('..', import.meta.url), stdio: ['ignore', 2, 2], shell: windows }
  return (
    spawnSync(windows ? 'npm.cmd' : 'npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], options).status ??
    1
  )
}
