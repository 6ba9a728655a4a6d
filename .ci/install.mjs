// Installs the packages when they are missing or older than the lock file. Runs on any Node that npm came with.
import { spawnSync } from 'node:child_process'
import { lstatSync, statSync } from 'node:fs'

// npm's error codes for a version, or its archive, that the registry does not have.
const missingVersion = ['ETARGET', 'E404']

const modified = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0
const installed = modified('../node_modules/.package-lock.json')

// npm would delete what is behind a link: the packages of another checkout.
const isLink = lstatSync(new URL('../node_modules', import.meta.url), { throwIfNoEntry: false })?.isSymbolicLink()

if (!isLink && (installed === 0 || installed < modified('../package-lock.json'))) {
  console.error('Installing packages (once)…')
  process.exitCode = install()
}

function install() {
  const locked = npm('ci')
  if (!missingVersion.includes(locked.code)) return locked.status
  console.error('The registry lacks a version of package-lock.json: installing what package.json asks for.')
  return npm('install', '--no-package-lock').status
}

/** Runs npm with its output shown; returns its exit status and, where it failed, its error code. */
function npm(...args) {
  const windows = process.platform === 'win32'
  const { error, status, signal, stderr } = spawnSync(
    windows ? 'npm.cmd' : 'npm',
    [...args, '--no-audit', '--no-fund', '--loglevel=error'],
    { cwd: new URL('..', import.meta.url), stdio: ['ignore', 2, 'pipe'], encoding: 'utf8', shell: windows },
  )
  if (stderr) process.stderr.write(stderr)
  if (status === 0) return { status }
  const code = /^npm (?:error|ERR!) code (\S+)/m.exec(stderr ?? '')?.[1]
  console.error(`npm ${args[0]} failed: ${error?.message ?? code ?? signal ?? `exit status ${status}`}`)
  return { status: status ?? 1, code }
}
