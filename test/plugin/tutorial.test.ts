import { execFile } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { pluginText, tsconfigText } from '../../src/cli/plugin.ts'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../helpers/router.ts'
import { slow } from '../helpers/slow.ts'
import { eventually, limit } from '../helpers/time.ts'
import { folderOf } from '../manifest/files.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/plugins.md'), 'utf8')

/** A block of code of the page: what is written after its language, such as the name of a file, and its text. */
type Block = { language: string; file: string; text: string }

function blocksOf(text: string): Block[] {
  const found = text.matchAll(/^```(\w+) ?(.*)\n((?:.*\n)*?)```$/gm)
  return [...found].map(([, language = '', file = '', code = '']) => ({ language, file, text: code }))
}

const section = page.slice(page.indexOf('## A first plugin'), page.indexOf('## Hooks'))
const steps = blocksOf(section)
const examples = blocksOf(page.slice(page.indexOf('## Hooks'))).filter(({ language }) => language === 'ts')

/** How soon a change is in use: within a second of a machine that has nothing else to do, in turns of a timer that this process gets. */
const turnMs = 10
const soonTurns = 1_000 / turnMs

let router: TestRouter
let settings: string
beforeAll(async () => {
  router = await testRouter({ files: simulatorOnly })
  const written = JSON.parse(readFileSync(join(router.folder, 'config.yaml'), 'utf8')) as Record<string, unknown>
  settings = Object.entries(written)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join('')
  // The watcher begins a moment after the start, and looks at everything once.
  await eventually(async () => {
    router.put('plugins/seen.txt', '')
    router.put('config.yaml', settings)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(router.snapshot().generation).toBeGreaterThan(1)
  })
})
afterAll(() => router.end())

/** Sends what a line of the shell does, and returns the answer as JSON. */
async function curl(line: string): Promise<unknown> {
  const [, path = ''] = /^curl \$ROUTER(\S+) /.exec(line) ?? []
  const [, body] = /-d '(.*)'\s*$/.exec(line) ?? []
  return await (await router.call(path, body)).json()
}

/** What an answer has to have, where the page shows a part of it; a text that ends in … begins like that. */
function shown(value: unknown): unknown {
  if (typeof value === 'string') return value.endsWith('…') ? expect.stringContaining(value.slice(0, -1)) : value
  if (Array.isArray(value)) return value.map(shown)
  if (typeof value !== 'object' || value === null) return value
  return expect.objectContaining(Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shown(each)])))
}

test('the tutorial, followed literally: write, see it act, break it, fix it, remove it', async () => {
  expect(steps.filter(({ language }) => language === 'json').length).toBeGreaterThan(5)
  let turns = 0
  const timer = setInterval(() => turns++, turnMs)
  onTestFinished(() => clearInterval(timer))
  let changedAt: number | undefined
  const took: number[] = []
  for (const [index, { language, file, text }] of steps.entries()) {
    if (language === 'ts') router.put(file, text)
    else if (language === 'yaml') router.put(file, settings + text)
    else if (text.startsWith('rm ')) rmSync(join(router.folder, text.slice(3).trim()))
    if (language === 'ts' || language === 'yaml') changedAt = turns
    if (language !== 'sh' || !text.startsWith('curl')) continue
    const answer = steps[index + 1]
    expect(answer?.language).toBe('json')
    const expected = shown(placed(JSON.parse(answer?.text ?? '')))
    await eventually(async () => expect(await curl(text)).toEqual(expected))
    if (changedAt !== undefined) took.push(turns - changedAt)
    changedAt = undefined
  }
  expect(took.length).toBeGreaterThan(4)
  expect(Math.min(...took)).toBeLessThan(limit(soonTurns))
})

/** Lines of the configuration are counted after the settings of the test. */
function placed(answer: { problems?: string[] }): object {
  const lines = settings.split('\n').length - 1
  const { problems, ...others } = answer
  const moved = problems?.map((problem) =>
    problem.replace(/^(config\.yaml:)(\d+)/, (_, name: string, line: string) => `${name}${Number(line) + lines}`),
  )
  return { ...others, ...(moved && { problems: moved }) }
}

test('every example is typed, and is set up as it stands', slow, async () => {
  const written = steps.filter(({ file }) => file.endsWith('.ts'))
  const named = examples.map(({ file, text }, index) => [file || `plugins/example-${index}.ts`, text] as const)
  const listed = named.flatMap(([file]) => (file.endsWith('.test.ts') ? [] : [file.replace(/plugins\/|\.ts/g, '')]))
  expect(listed.length).toBeGreaterThan(7)
  const polite = written.at(-1)?.text ?? ''
  const folder = folderOf({
    'config.yaml': `plugins:\n${listed.map((name) => `  - name: ${name}\n`).join('')}`,
    'plugins/polite.ts': polite,
    'plugins/new.ts': pluginText('new'),
    'plugins/tsconfig.json': tsconfigText(),
    ...Object.fromEntries(named),
  })
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), {})
  expect(problems.map(formatProblem)).toEqual([])
  for (const { close } of snapshot?.instances ?? []) await close()
  const execute = promisify(execFile)
  const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules/@types')]
  const checked = execute(join(root, 'node_modules/.bin/tsc'), ['-p', join(folder, 'plugins'), ...types])
  await checked.catch(({ stdout }) => expect(stdout).toBe(''))
  const main = [join(root, 'src/main.ts'), 'plugin', 'test', 'polite', '--config', join(folder, 'config.yaml')]
  expect((await execute(process.execPath, main)).stdout).toMatch(/fail 0\n/)
})
