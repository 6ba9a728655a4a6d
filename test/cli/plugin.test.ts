import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { run } from '../../src/cli/plugin.ts'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { slow } from '../helpers/slow.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

const root = join(import.meta.dirname, '../..')
const execute = promisify(execFile)

/** Runs the program itself; rejects where it fails. */
const main = (...args: string[]) => execute(process.execPath, [join(root, 'src/start.js'), ...args])

test('a new plugin is typed, tested, and set up as it is', slow, async () => {
  const folder = folderOf({ 'config.yaml': 'folders: { plugins: ./mine }\nplugins: []\n' })
  const config = ['--config', join(folder, 'config.yaml')]
  const { code, stdout } = await ran(run, 'new', 'plums', ...config)
  expect(code).toBe(0)
  expect(stdout).toContain('mine/plums.ts\n')
  expect(stdout).toContain('    - { name: plums, options: { word: plum } }\n')
  const tested = await main('plugin', 'test', 'plums', ...config)
  expect(tested.stdout).toMatch(/pass 2\n(?:.*\n)*.*fail 0\n/)
  expect((await main('plugin', 'test', ...config)).stdout).toMatch(/pass 2\n/)
  await execute(join(root, 'node_modules/.bin/tsc'), [
    '-p',
    join(folder, 'mine'),
    '--types',
    'node',
    '--typeRoots',
    join(root, 'node_modules/@types'),
  ])
  writeFileSync(
    join(folder, 'config.yaml'),
    `folders: { plugins: ./mine }\n${stdout.slice(stdout.indexOf('  plugins:')).replace(/^ {2}/gm, '').split('\n').slice(0, 2).join('\n')}\n`,
  )
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), {})
  expect(problems.map(formatProblem)).toEqual([])
  expect(snapshot?.plugins.map(({ name }) => name)).toEqual(['plums'])
})

test('a plugin that fails its test fails the command', async () => {
  const folder = folderOf({ 'config.yaml': '' })
  const config = ['--config', join(folder, 'config.yaml')]
  await ran(run, 'new', 'plums', ...config)
  const file = join(folder, 'plugins/plums.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace('403', '404'))
  await expect(main('plugin', 'test', 'plums', ...config)).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/404 !== 403/),
  })
})

test('a plugin whose types are wrong fails `plugin test` and `check`, at its place', slow, async () => {
  const folder = folderOf({ 'config.yaml': 'plugins: [{ name: plums, options: { word: plum } }]\n' })
  const config = ['--config', join(folder, 'config.yaml')]
  await ran(run, 'new', 'plums', ...config)
  const file = join(folder, 'plugins/plums.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace('log.debug(', 'log.debugged?.('))
  const place = expect.stringMatching(/plugins\/plums\.ts:\d+:\d+: Property 'debugged' does not exist/)
  await expect(main('plugin', 'test', 'plums', ...config)).rejects.toMatchObject({ code: 1, stdout: place })
  await expect(main('check', ...config)).rejects.toMatchObject({ code: 1, stdout: place })
})

test('nothing is overwritten, and names are those of files', async () => {
  const folder = folderOf({ 'config.yaml': '', 'plugins/taken/index.ts': '', 'tsconfig.json': '{}' })
  const config = ['--config', join(folder, 'config.yaml')]
  const again = await ran(run, 'new', 'taken', ...config)
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('plugins/taken/index.ts already exists')])
  for (const name of ['../other', 'Upper', '']) expect((await ran(run, 'new', name, ...config)).code).toBe(2)
  expect((await ran(run, 'test', 'none', ...config)).stderr).toContain('There is no file')
  await ran(run, 'new', 'free', ...config)
  expect(existsSync(join(folder, 'plugins/tsconfig.json'))).toBe(false)
})

test('a plugin that leaves something open keeps no command from its end', slow, async () => {
  const plugin = 'setInterval(() => {}, 1_000)\nexport default { setup: () => ({}) }'
  const folder = folderOf({ 'config.yaml': 'plugins: [{ name: busy }]\n', 'plugins/busy.ts': plugin })
  expect((await main('check', '--config', join(folder, 'config.yaml'))).stdout).toContain('1 plugin')
})
