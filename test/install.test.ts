import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const script = join(import.meta.dirname, '../.ci/install.mjs')
const ci = 'ci --no-audit --no-fund --loglevel=error'
const unlocked = 'install --no-package-lock --no-audit --no-fund --loglevel=error'

test('a locked install that succeeds is all that runs', () => {
  expect(install({ ci: '' })).toMatchObject({ status: 0, calls: [ci] })
})

test('packages newer than the lock file are not installed again', () => {
  expect(install({}, { installed: true })).toMatchObject({ status: 0, calls: [] })
})

test.each([
  ['code ETARGET\nnpm error notarget No matching version found for ajv@8.20.0.'],
  ['code E404\nnpm error 404 Not Found - GET https://registry.example/ajv/-/ajv-8.20.0.tgz - Not found'],
])('a version that the registry lacks leads to an install without the lock file: %s', (reason) => {
  const { status, calls, printed } = install({ ci: `npm error ${reason}`, install: '' })
  expect({ status, calls }).toEqual({ status: 0, calls: [ci, unlocked] })
  expect(printed).toContain(reason)
})

test('an install without the lock file that fails as well ends with its reason', () => {
  const { status, calls, printed } = install({ ci: 'npm error code ETARGET', install: 'npm error code EACCES' })
  expect({ status, calls }).toEqual({ status: 1, calls: [ci, unlocked] })
  expect(printed).toContain('npm install failed: EACCES')
})

test.each([
  ['EINTEGRITY', 'sha512-AAAA integrity checksum failed when using sha512: wanted sha512-AAAA but got sha512-BBBB.'],
  ['ENOTFOUND', 'network request to https://registry.example/ajv failed, reason: getaddrinfo ENOTFOUND ETARGET E404'],
  ['EUSAGE', '`npm ci` can only install packages when your package.json and package-lock.json are in sync.'],
])('%s ends the install with its reason', (code, reason) => {
  const { status, calls, printed } = install({ ci: `npm error code ${code}\nnpm error ${reason}` })
  expect({ status, calls }).toEqual({ status: 1, calls: [ci] })
  expect(printed).toContain(reason)
  expect(printed).toContain(`npm ci failed: ${code}`)
})

test('packages behind a link, which are those of another checkout, stay as they are', () => {
  expect(install({ ci: '' }, { linked: true })).toMatchObject({ status: 0, calls: [] })
})

test('without npm the install ends with the reason', () => {
  const { status, printed } = install()
  expect(status).toBe(1)
  expect(printed).toContain('npm ci failed: spawnSync npm ENOENT')
})

/**
 * Runs the script in a project of its own with an `npm` that fails with the given text on standard error, or succeeds
 * where the text is empty; without any texts there is no npm.
 */
function install(npm?: { ci?: string; install?: string }, { installed = false, linked = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'install-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['.ci', 'bin', linked ? 'elsewhere' : 'node_modules']) mkdirSync(join(folder, name))
  if (linked) symlinkSync(join(folder, 'elsewhere'), join(folder, 'node_modules'))
  copyFileSync(script, join(folder, '.ci/install.mjs'))
  writeFileSync(join(folder, 'package-lock.json'), '{}')
  if (installed) writeFileSync(join(folder, 'node_modules/.package-lock.json'), '{}')
  if (npm) fakeNpm(folder, npm)
  const { status, stderr } = spawnSync(process.execPath, [join(folder, '.ci/install.mjs')], {
    env: { ...process.env, PATH: [join(folder, 'bin'), ...(npm ? ['/usr/bin', '/bin'] : [])].join(delimiter) },
    encoding: 'utf8',
    timeout: 15_000,
  })
  const log = join(folder, 'calls')
  const calls = existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : []
  return { status, calls, printed: stderr }
}

/** Puts an executable `npm` into the project's `bin` that notes each call. */
function fakeNpm(folder: string, failures: { [command: string]: string }): void {
  for (const [command, text] of Object.entries(failures)) writeFileSync(join(folder, `${command}.stderr`), text)
  const path = join(folder, 'bin/npm')
  writeFileSync(
    path,
    `#!/bin/sh\necho "$*" >> '${folder}/calls'\ncat '${folder}/'"$1.stderr" >&2\n[ ! -s '${folder}/'"$1.stderr" ]\n`,
  )
  chmodSync(path, 0o755)
}
