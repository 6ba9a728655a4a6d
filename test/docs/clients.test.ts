import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { alone, type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { blocksOf, commandsOf, fileOf, guidePages, runPage } from './guides.ts'

/*
 * The pages about clients, followed to the letter against the simulator.
 *
 * The SDKs that the project has run in every test. Set CLIENTS_FOLDER to a folder with further clients to run them too: command line agents and
 * packages of npm in `node_modules`, packages of PyPI in `venv`. Never run: Open WebUI, LibreChat, n8n and the extension of Cline, whose pages
 * say so; their base URL, key and list of models are checked by requests.
 */

const root = join(import.meta.dirname, '../..')
const more = process.env.CLIENTS_FOLDER
const python = more && existsSync(join(more, 'venv/bin/python')) ? join(more, 'venv/bin/python') : undefined

let router: TestRouter
let home: string
/** Calls that were settled before the test. */
let earlier: Set<string>

beforeAll(async () => {
  router = await testRouter({ providers: alone({ demo: {} }) })
})
afterAll(() => router.end())
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'client-'))
  earlier = new Set((await settledCalls()).map(({ id }) => id))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const pages = guidePages().filter((page) => page.startsWith('docs/clients/'))
const page = (name: string) => `docs/clients/${name}.md`

/** A text of a page for this router: its address, the key of the test, and the simulator in place of any other model. */
function here(text: string): string {
  return text
    .replaceAll(/http:\/\/(?:127\.0\.0\.1|host\.docker\.internal):8787/g, router.url)
    .replaceAll('ir-...', testKey)
    .replaceAll(/\b(?:anthropic|openai)\/(?:claude|gpt)-[\w.-]+/g, 'demo/echo')
}

describe('requests of the pages', () => {
  test.each(pages)('%s: every call is answered', async (path) => {
    const steps = await runPage(path, router, { HOME: home }, home)
    for (const { command, output } of steps.filter(({ command }) => command.includes('/v1/models -H')))
      expect([command, output]).toEqual([command, expect.stringContaining('"id":"demo/echo"')])
  })

  test.each(pages)('%s: names the address of the router and its key', (path) => {
    const all = blocksOf(path).map(({ text }) => text)
    expect(all.join('\n')).toMatch(/http:\/\/(?:127\.0\.0\.1|host\.docker\.internal):8787/)
    expect(all.join('\n')).toMatch(/\$KEY\b|env\.KEY\b|environ\["KEY"\]/)
  })
})

describe('programs of the pages, with packages of the project', () => {
  test.each([
    ['openai-sdk', 'You said: Hello\nYou said: Hello\nYou said: Hello\n2\ntrue\n'],
    ['anthropic-sdk', 'You said: Hello\nYou said: Hello\ntrue\n'],
    ['vercel-ai-sdk', 'You said: Hello\nYou said: Hello\nYou said: Hello\nYou said: Hello\n2\n'],
  ])('%s in TypeScript', async (name, expected) => {
    expect(await runTypeScript(name, root)).toBe(expected)
  })
})

describe.skipIf(!more)('programs of the pages, with packages of CLIENTS_FOLDER', () => {
  test.skipIf(!python).each([
    ['openai-sdk', 'You said: Hello\nYou said: Hello\nYou said: Hello\n2\nTrue\n'],
    ['anthropic-sdk', 'You said: Hello\nYou said: Hello\n'],
    ['langchain', 'You said: Hello\nYou said: Hello\n2\n'],
    ['llamaindex', 'You said: Hello\n2\n'],
  ])('%s in Python', async (name, expected) => {
    const file = join(home, 'program.py')
    writeFileSync(file, here(blocksOf(page(name)).find(({ kind }) => kind === 'python')?.text ?? ''))
    const { stdout } = await promisify(execFile)(python ?? '', [file], { env: { ...clean(), KEY: testKey } })
    expect(stdout).toBe(expected)
  })

  test.skipIf(!isInstalled('@langchain/openai')).each([
    ['langchain', 'You said: Hello\n2\n'],
    ['llamaindex', 'You said: Hello\n'],
  ])('%s in TypeScript', async (name, expected) => {
    expect(await runTypeScript(name, more ?? '')).toBe(expected)
  })

  test.skipIf(!isInstalled('@anthropic-ai/claude-code'))('Claude Code', async () => {
    const settings = JSON.parse(here(fileOf(page('claude-code'), 'json', '{')))
    expect(Object.keys(settings.env)).toEqual(exportsOf('claude-code').map(([name]) => name))
    await runAgent('claude-code', ['claude', '-p', 'Hello'], { IS_SANDBOX: '1' })
    expect(await apisOfCalls()).toContain('messages')
  })

  test.skipIf(!isInstalled('@openai/codex'))('Codex', async () => {
    put('.codex/config.toml', fileOf(page('codex'), 'toml', 'config.toml'))
    await runAgent('codex', ['codex', 'exec', '--skip-git-repo-check', 'Hello'])
    expect(await apisOfCalls()).toContain('responses')
  })

  test.skipIf(!isInstalled('@github/copilot')).each([
    ['chat', {}],
    ['responses', { COPILOT_PROVIDER_WIRE_API: 'responses' }],
    ['messages', { COPILOT_PROVIDER_TYPE: 'anthropic', COPILOT_PROVIDER_BASE_URL: '' }],
  ])('Copilot CLI by the API %s', async (api, settings: NodeJS.ProcessEnv) => {
    const base = settings.COPILOT_PROVIDER_BASE_URL === '' && { COPILOT_PROVIDER_BASE_URL: router.url }
    await runAgent('copilot-cli', ['copilot', '-p', 'Hello'], { COPILOT_OFFLINE: 'true', ...settings, ...base })
    expect(await apisOfCalls()).toContain(api)
  })

  test.skipIf(!isInstalled('opencode-ai'))('opencode', async () => {
    put('.config/opencode/opencode.json', fileOf(page('opencode'), 'json', '{'))
    const command = commandsOf(page('opencode')).find(({ command }) => command.startsWith('opencode '))?.command ?? ''
    await runAgent('opencode', here(command).replaceAll('"', '').split(' ').slice(0, 4).concat('Hello'))
    expect(await apisOfCalls()).toContain('chat')
  })

  test.skipIf(!isInstalled('cline'))('Cline on the command line', async () => {
    const login = commandsOf(page('cline')).find(({ command }) => command.startsWith('cline auth'))?.command ?? ''
    await runAgent('cline', here(login).replace('$KEY', testKey).split(' '))
    await runAgent('cline', ['cline', 'Explain this repository'])
    expect(await apisOfCalls()).toContain('chat')
  })
})

describe('settings of clients that no test runs', () => {
  test('the endpoint of LibreChat is the address of the router, with a list to fetch', async () => {
    const [endpoint] = parse(here(fileOf(page('librechat'), 'yaml', 'librechat.yaml'))).endpoints.custom
    expect(endpoint).toMatchObject({ baseURL: `${router.url}/v1`, models: { fetch: true } })
    expect(await statusOf(`${endpoint.baseURL}/models`)).toBe(200)
  })

  test('the connection of Open WebUI is the address of the router', async () => {
    const { environment } = parse(here(fileOf(page('open-webui'), 'yaml', 'compose.yaml'))).services['open-webui']
    expect(await statusOf(`${environment.OPENAI_API_BASE_URL}/models`)).toBe(200)
  })
})

async function statusOf(url: string): Promise<number> {
  return (await fetch(url, { headers: { authorization: `Bearer ${testKey}` } })).status
}

/** Runs the TypeScript of a page with the packages of a folder, and returns what it prints. */
async function runTypeScript(name: string, folder: string): Promise<string> {
  symlinkSync(join(folder, 'node_modules'), join(home, 'node_modules'))
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(home, 'program.ts'), here(blocksOf(page(name)).find(({ kind }) => kind === 'ts')?.text ?? ''))
  const options = { env: { ...clean(), KEY: testKey }, cwd: home }
  const { stdout } = await promisify(execFile)(process.execPath, ['program.ts'], options)
  return stdout
}

/** Variables for clients: none that would lead them elsewhere, and a home of their own. */
function clean(): NodeJS.ProcessEnv {
  return {
    PATH: [join(more ?? root, 'node_modules/.bin'), dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: home,
    CI: 'true',
    NO_COLOR: '1',
    TERM: 'dumb',
  }
}

/** Variables that a page sets. */
function exportsOf(name: string): [name: string, value: string][] {
  return commandsOf(page(name)).flatMap(({ command }) => {
    const [, variable, value] = /^export ([A-Z_]+)=(\S+)$/.exec(here(command)) ?? []
    return variable && value ? [[variable, value]] : []
  })
}

/** Runs a command line agent with the variables of its page. It may fail afterwards: the simulator calls tools that nobody allows. */
async function runAgent(name: string, [program = '', ...args]: string[], also: NodeJS.ProcessEnv = {}): Promise<void> {
  const work = join(home, 'work')
  mkdirSync(work, { recursive: true })
  const env = { ...clean(), ...Object.fromEntries(exportsOf(name)), ...also }
  const running = promisify(execFile)(program, args, { env, cwd: work, timeout: 30_000, killSignal: 'SIGKILL' })
  running.child.stdin?.end()
  await running.catch(() => undefined)
}

type Settled = { id: string; api: string }

async function settledCalls(): Promise<Settled[]> {
  return ((await (await router.call('/v1/manage/calls?outcome=complete')).json()) as { calls: Settled[] }).calls
}

/** Client APIs of the calls that the test has made. */
async function apisOfCalls(): Promise<string[]> {
  return (await settledCalls()).filter(({ id }) => !earlier.has(id)).map(({ api }) => api)
}

function put(path: string, text: string): void {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), here(text))
}

function isInstalled(name: string): boolean {
  return more !== undefined && existsSync(join(more, 'node_modules', name))
}
