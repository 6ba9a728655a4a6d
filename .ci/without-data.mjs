// Runs the tests that use optional data (recordings, published specifications, facts, JSONata's suite) as they run on a checkout that
// has none, and collects all other files: one without any test fails there.
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const root = join(import.meta.dirname, '..')
const nowhere = join(root, 'node_modules/.no-data')
const variables = ['RECORDINGS', 'SPECS', 'FACTS', 'JSONATA_SUITE']
const helper = normalize('test/helpers/optional-data.ts')

const tests = globSync('test/**/*.test.ts', { cwd: root })
const users = tests.filter((file) => imports(file, new Set()))
const others = tests.filter((file) => !users.includes(file))
if (users.length === 0) throw new Error(`no test imports ${helper}`)

// No name matches: these files are only collected.
process.exitCode = vitest(users) || vitest([...others, '--testNamePattern=^only collected$', '--silent'])

/** Whether a file imports the helper, itself or through others. */
function imports(file, seen) {
  if (file === helper) return true
  if (seen.has(file)) return false
  seen.add(file)
  const text = readFileSync(join(root, file), 'utf8')
  const specifiers = [...text.matchAll(/(?:\bfrom |\bimport |\bimport\()'(\.[^']+\.ts)'/g)]
  return specifiers.some(([, path]) => {
    const imported = normalize(join(dirname(file), path))
    return imported.startsWith('test') && existsSync(join(root, imported)) && imports(imported, seen)
  })
}

function vitest(args) {
  const env = { ...process.env, ...Object.fromEntries(variables.map((name) => [name, nowhere])) }
  const program = join(root, 'node_modules/vitest/vitest.mjs')
  const command = [program, 'run', '--config', 'test/vitest.config.ts', '--reporter=minimal', ...args]
  return spawnSync(process.execPath, command, { cwd: root, env, stdio: 'inherit' }).status ?? 1
}
