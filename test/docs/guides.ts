import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import type { Out } from '../../src/cli/command.ts'
import { ran } from '../cli/running.ts'
import { pause } from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { timeFactor } from '../helpers/time.ts'

const root = join(import.meta.dirname, '../..')

/** Folders of `docs/` whose pages lead readers through something. */
export const guideFolders = ['start', 'clients', 'deploy', 'tasks', 'concepts', 'help']

/** A fenced block of a page: the word after its fence, and its text. */
export type Block = { kind: string; text: string }

/** One command of a page: the status that a comment announces, and whether the router must be stopped before it. */
type Command = { command: string; expected: number; isStopped: boolean }

/** One command of a page, as it was run. */
export type Step = { command: string; status: number; output: string }

/** Paths of all guides below the root of the project. */
export function guidePages(): string[] {
  return guideFolders.flatMap((folder) =>
    readdirSync(join(root, 'docs', folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${folder}/${name}`),
  )
}

/** Reads the fenced blocks of a page, in their order. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)].map(([, kind = '', inner = '']) => ({
    kind,
    text: inner,
  }))
}

/** Reads the blocks of this kind that begin with a comment that names the file. */
export function fileOf(page: string, kind: string, name: string): string {
  const found = blocksOf(page).find((block) => block.kind === kind && block.text.split('\n')[0]?.includes(name))
  if (!found) throw new Error(`${page} has no ${name}`)
  return found.text
}

/** Splits the shell blocks of a page into commands, each with the status that a comment before it announces. */
export function commandsOf(page: string): Command[] {
  return blocksOf(page)
    .filter(({ kind }) => kind === 'sh')
    .flatMap(({ text }) => splitShell(text))
}

function splitShell(text: string): Command[] {
  const found: Command[] = []
  const isStopped = /^# Stop the router first/.test(text)
  let expected = 200
  let begun = ''
  for (const line of text.replaceAll(/\\\n\s*/g, '').split('\n')) {
    const announced = /^# HTTP (\d+)/.exec(line)
    if (announced) expected = Number(announced[1])
    if (begun === '' && (line.trim() === '' || line.startsWith('#'))) continue
    begun += begun === '' ? line : ` ${line.trim()}`
    if (begun.split("'").length % 2 === 0) continue
    found.push({ command: begun.replace(/\s+#\s.*$/, ''), expected, isStopped })
    begun = ''
    expected = 200
  }
  return found
}

/** Settings of a page's `config.yaml`, as a test router takes them: with providers that the test moves to loopback. */
export function settingsOf(page: string, providers: Record<string, object> = {}) {
  const { providers: own = {}, ...settings } = parse(fileOf(page, 'yaml', 'config.yaml')) as Record<string, object>
  delete (settings as { server?: object }).server
  return { settings, providers: { ...own, ...providers } as Record<string, object> }
}

/** Starts a router with the configuration of a page. */
export function routerOf(
  page: string,
  providers: Record<string, object> = {},
  env: NodeJS.ProcessEnv = {},
): Promise<TestRouter> {
  return testRouter({ ...settingsOf(page, providers), env })
}

/** Commands that a reader runs elsewhere, or once, and the programs of clients; tests leave out no others. */
const elsewhere =
  /^(?:npm start|npm run inference-router -- serve|npm install|pip install|chmod|sudo|claude|codex|copilot|cline|opencode)\b|^\(umask 077; sqlite3/

/**
 * Runs every command of a page as written, against this router: `curl` in a shell, the router's own commands in this process. `$KEY` is the key of the test, and a variable that the page sets to `ir-…` is the key that was created last. Throws at a command that fails, and at one that it cannot run.
 */
export async function runPage(
  page: string,
  router: TestRouter,
  also: NodeJS.ProcessEnv = {},
  folder = router.folder,
): Promise<Step[]> {
  const env: NodeJS.ProcessEnv = { ...process.env, KEY: testKey, ...also }
  const steps: Step[] = []
  for (const { command, expected, isStopped } of commandsOf(page)) {
    if (isStopped) await router.stop(1_000)
    const [, name, value] = /^export ([A-Z_]+)=(\S+)$/.exec(command) ?? []
    if (name && value) env[name] = (name.endsWith('_KEY') && lastKey(steps)) || (env[name] ?? value)
    else if (command.startsWith('curl '))
      steps.push(await runCurl({ command, expected }, { url: router.url, env, folder }, steps.at(-1)))
    else if (elsewhere.test(command)) continue
    else if (command.startsWith('npm run ')) steps.push(await runCommand(command, { router, env, folder }))
    else throw new Error(`${page}: not run: ${command}`)
  }
  return steps
}

function lastKey(steps: Step[]): string | undefined {
  return steps.findLast(({ output }) => /ir-[\w-]{20,}/.test(output))?.output.match(/ir-[\w-]{20,}/)?.[0]
}

/** Runs curl once; after a change by a command, which a running router knows within two seconds, until it answers as announced. */
async function runCurl(
  { command, expected }: { command: string; expected: number },
  { url, env, folder }: { url: string; env: NodeJS.ProcessEnv; folder: string },
  before: Step | undefined,
): Promise<Step> {
  const here = `${command.replaceAll('http://127.0.0.1:8787', url)} -s -w '\\n%{http_code}'`
  const until = Date.now() + (before?.command.startsWith('npm ') ? 5_000 * timeFactor : 0)
  for (;;) {
    const { stdout } = await promisify(execFile)('bash', ['-c', here], { env, cwd: folder })
    const at = stdout.lastIndexOf('\n')
    const step = { command, status: Number(stdout.slice(at + 1)), output: stdout.slice(0, at) }
    if (expected === 200 ? step.status < 300 : step.status === expected) return step
    if (Date.now() > until) throw new Error(`${command}: HTTP ${step.status}, not ${expected}: ${step.output}`)
    await pause(100)
  }
}

async function runCommand(
  command: string,
  { router, env, folder }: { router: TestRouter; env: NodeJS.ProcessEnv; folder: string },
): Promise<Step> {
  const [, words = ''] = /^npm run (?:-s )?inference-router -- (.*)$/.exec(command) ?? []
  if (!words) throw new Error(`not a command of the router: ${command}`)
  const { stdout: split } = await promisify(execFile)('bash', ['-c', `printf '%s\\0' ${words}`], { env })
  const [name = '', ...args] = split.split('\0').slice(0, -1)
  const { run } = (await import(moduleOf(name))) as { run: (args: string[], out: Out) => Promise<number> }
  const { code, stdout, stderr } = await inFolder(folder, () =>
    ranAlone(run, ...args, '--config', join(router.folder, 'config.yaml')),
  )
  if (code !== 0) throw new Error(`${command}: exit code ${code}: ${stdout}${stderr}`)
  return { command, status: code, output: stdout }
}

async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await work()
  } finally {
    process.chdir(before)
  }
}

/** Runs a command's function, and removes the variables of a `.env` file that it has added to those of this process. */
export async function ranAlone(...command: Parameters<typeof ran>): ReturnType<typeof ran> {
  const known = new Set(Object.keys(process.env))
  try {
    return await ran(...command)
  } finally {
    for (const name of Object.keys(process.env)) if (!known.has(name)) delete process.env[name]
  }
}

/** Finds the module of a command: some are in a folder, with others or alone. */
function moduleOf(command: string): string {
  const places = [`${command}.ts`, `${command}/${command}.ts`, `backup/${command}.ts`]
  return places.map((place) => join(root, 'src/cli', place)).find((path) => existsSync(path)) ?? command
}
