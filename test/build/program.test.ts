import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { newestBetween } from '../../tools/build/node-binary.ts'
import { isUsed } from '../../tools/build/packages.ts'
import {
  filesBelow,
  ownFiles,
  project,
  projectManifest,
  readableByAll,
  writeProgram,
} from '../../tools/build/program.ts'

/** A folder with the program where npm puts packages, below node_modules, where Node takes no TypeScript. */
const folder = mkdtempSync(join(tmpdir(), 'program-'))
const program = join(folder, 'node_modules/inference-router')

beforeAll(() => {
  writeProgram(program)
  symlinkSync(join(project, 'node_modules'), join(program, 'node_modules'))
})

const files = () => filesBelow(program).filter((path) => !path.startsWith('node_modules'))

test('every relative import names a file that is there', () => {
  const modules = files().filter((path) => /^(?:src|tools|plugins)\/.*\.js$/.test(path))
  const missing = modules.flatMap((path) => {
    const text = readFileSync(join(program, path), 'utf8')
    const named = [...text.matchAll(/(?:from |import |import\(|require\(|new URL\()'(\.{1,2}\/[^'$]+)'/g)]
    return named.map(([, name = '']) => join(dirname(join(program, path)), name)).filter((one) => !existsSync(one))
  })
  expect(modules.length).toBeGreaterThan(400)
  expect(missing).toEqual([])
})

test('it has JavaScript, and of TypeScript only declarations and what browsers load', () => {
  expect(files().filter((path) => /(?<!\.d)\.ts$/.test(path) && !path.startsWith('console/'))).toEqual([])
  expect(files().filter((path) => /(?:^|\/)test\/|\.test\.|tsconfig|\.env|data\//.test(path))).toEqual([])
})

test('files of your own that are not in git are no part of it', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'checkout-'))
  const git = (...args: string[]) => execFileSync('git', ['-C', checkout, ...args])
  git('init', '--quiet')
  for (const name of ['shipped', 'mine']) {
    mkdirSync(join(checkout, 'providers'), { recursive: true })
    writeFileSync(join(checkout, `providers/${name}.yaml`), 'slug: x\n')
    if (name === 'shipped') git('add', 'providers')
  }
  writeFileSync(join(checkout, '.gitignore'), 'mine.yaml\n')
  expect([...ownFiles(checkout)]).toEqual(['providers/mine.yaml'])
  // A copy inside another repository, which tracks none of it, is built as it is.
  expect([...ownFiles(join(checkout, 'providers'))]).toEqual([])
  const left = mkdtempSync(join(tmpdir(), 'left-'))
  const own = [...filesBelow(join(project, 'providers')).slice(0, 1)].map((path) => `providers/${path}`)
  writeProgram(left, new Set([...own, 'plugins/heal-json/repair.ts']))
  const written = filesBelow(left)
  expect(written).not.toContain(own[0])
  expect(written).not.toContain('plugins/heal-json/repair.js')
  expect(written).toContain('plugins/heal-json/index.js')
})

test('files have the same permissions whatever those of the checkout are', () => {
  const folder = mkdtempSync(join(tmpdir(), 'modes-'))
  mkdirSync(join(folder, 'below'))
  for (const [path, mode] of [
    ['below/private', 0o600],
    ['script', 0o700],
    ['shared', 0o664],
  ] as const) {
    writeFileSync(join(folder, path), '')
    chmodSync(join(folder, path), mode)
  }
  readableByAll(folder)
  const modes = filesBelow(folder).map((path) => [path, statSync(join(folder, path)).mode & 0o777])
  expect(Object.fromEntries(modes)).toEqual({ 'below/private': 0o644, script: 0o755, shared: 0o644 })
})

test('it runs below node_modules', () => {
  const printed = execFileSync(process.execPath, [join(program, 'src/start.js'), '--version'], { encoding: 'utf8' })
  expect(printed).toBe(`${projectManifest().version}\n`)
})

test('shipped plugins and plugins in TypeScript load in it', () => {
  mkdirSync(join(folder, 'plugins'), { recursive: true })
  writeFileSync(
    join(folder, 'plugins/mine.ts'),
    `import { definePlugin } from 'inference-router/plugin'\nexport default definePlugin({ description: 'mine' as string, setup: () => ({}) })\n`,
  )
  writeFileSync(join(folder, 'config.yaml'), 'plugins: [{ name: mask-pii }, { name: mine }]\n')
  const { status, stdout, stderr } = run(['check'])
  expect(`${stdout}${stderr}`).not.toMatch(/mask-pii|mine\.ts/)
  expect(status).toBe(0)
})

test('without a configuration, the working folder has providers, and demo serves', () => {
  const here = mkdtempSync(join(tmpdir(), 'empty-'))
  mkdirSync(join(here, 'providers'))
  writeFileSync(
    join(here, 'providers/dropin.yaml'),
    'slug: dropin\nname: D\nbase_url: http://127.0.0.1:9/v1\nauth: { scheme: none }\ndialect: openai-chat\nmodels: { m1: { api: chat } }\n',
  )
  const models = JSON.parse(run(['models', '--json'], here).stdout) as { id: string }[]
  expect(models.map(({ id }) => id)).toEqual(expect.arrayContaining(['dropin/m1', 'demo/echo']))
})

test('`upgrade --check` has the changelog', () => {
  const { notes } = JSON.parse(run(['upgrade', '--check', '--json'], folder).stdout)
  expect(notes.length).toBeGreaterThan(0)
})

test('its types fit plugins, and refuse wrong ones', () => {
  const check = (hook: string) => {
    const at = mkdtempSync(join(folder, 'typed-'))
    writeFileSync(
      join(at, 'plugin.ts'),
      `import { definePlugin } from 'inference-router/plugin'\nexport default definePlugin({ description: 'd', setup: () => ({ ${hook} }) })\n`,
    )
    const compilerOptions = {
      module: 'nodenext',
      strict: true,
      noEmit: true,
      target: 'es2024',
      types: ['node'],
      typeRoots: [join(project, 'node_modules/@types')],
      lib: ['es2024', 'esnext.disposable'],
    }
    writeFileSync(join(at, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(at, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['plugin.ts'] }))
    return spawnSync(process.execPath, [join(project, 'node_modules/typescript/bin/tsc'), '-p', at], {
      encoding: 'utf8',
    })
  }
  expect(check('reply: (reply) => reply').stdout).toBe('')
  expect(check('reply: (reply) => reply.nothing').stdout).toContain("Property 'nothing' does not exist")
})

test('an older Node is told which one is needed', () => {
  const text = readFileSync(join(project, 'src/start.js'), 'utf8')
  const [, major, minor] = /major < (\d+) \|\| \(major === \1 && minor < (\d+)\)/.exec(text) ?? []
  expect(projectManifest().engines).toEqual({ node: `>=${major}.${minor}` })
  // An import that Node resolves before it runs anything would fail first.
  expect(text).not.toMatch(/^import /m)
  const old = `Object.defineProperty(process.versions, 'node', { value: '22.23.3' }); import(${JSON.stringify(join(program, 'src/start.js'))})`
  const { status, stderr } = spawnSync(process.execPath, ['-e', old], { encoding: 'utf8' })
  expect({ status, lines: stderr.trim().split('\n').length }).toEqual({ status: 1, lines: 1 })
  expect(stderr).toContain(`needs Node ${major}.${minor} or later`)
})

test.each([
  ['ajv/dist/2020.js', true],
  ['ajv/dist/2020.d.ts', false],
  ['yaml/dist/doc/directives.js', true],
  ['better-sqlite3/deps/sqlite3/sqlite3.c', false],
  ['better-sqlite3/LICENSE', true],
  ['pino/docs/api.md', false],
  ['amaro/LICENSE.md', true],
])('%s is part of a build: %s', (path, expected) => {
  expect(isUsed(path)).toBe(expected)
})

test('of the versions that npm has, the newest up to that of the lock file is taken', () => {
  expect(newestBetween('24.11.0', '24.21.0', ['24.0.0', '24.9.0', '24.18.1', '24.22.0', '26.1.0'])).toBe('24.18.1')
  expect(newestBetween('24.11.0', '24.21.0', ['24.21.0', '24.21.0-rc.1', '24.20.0'])).toBe('24.21.0')
  expect(newestBetween('24.11.0', '24.21.0', ['24.0.0', '26.10.0'])).toBeUndefined()
})

function run(args: string[], cwd = folder) {
  return spawnSync(process.execPath, [join(program, 'src/start.js'), ...args], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
}
