import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../src/cli/init/init.ts'
import { assignment } from '../../src/cli/init/new-files.ts'
import { run as providers } from '../../src/cli/providers.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

let server: LoopbackProvider
beforeAll(async () => {
  server = await loopbackProvider(({ path }, response) =>
    path === '/v1/models'
      ? answerJson(response, { object: 'list', data: [{ id: 'qwen3-8b', object: 'model' }] })
      : answerJson(response, {}, 404),
  )
})
afterAll(() => server.close())

/** No server of this machine is meant, and no variable of it. */
beforeEach(() => {
  const addresses = ['OLLAMA_BASE_URL', 'VLLM_BASE_URL', 'SGLANG_BASE_URL', 'LMSTUDIO_BASE_URL', 'LLAMA_CPP_BASE_URL']
  for (const name of Object.keys(process.env)) if (/_(?:API_KEY|TOKEN|KEY)$/.test(name)) vi.stubEnv(name, undefined)
  for (const name of addresses) vi.stubEnv(name, 'http://127.0.0.1:9/v1')
  onTestFinished(() => void vi.unstubAllEnvs())
})

const read = (folder: string, path: string) => readFileSync(join(folder, path), 'utf8')
const secret = 'sk-of-the-operator-0123456789'

test.each([
  [undefined, 'inference-router'],
  ['inference-router', 'npm run inference-router --'],
])(
  'without any provider it is the demo, and the next command is one that works there; npm runs %s',
  async (script, program) => {
    vi.stubEnv('npm_lifecycle_event', script)
    const folder = folderOf({})
    const { code, stdout } = await ran(run, folder)
    expect(code).toBe(0)
    expect(stdout).toContain('Written in')
    expect(stdout).toContain(`\n  ${program} serve --config ${folder}/config.yaml`)
    expect(stdout).toContain('OPENAI_BASE_URL=http://127.0.0.1:8787/v1')
    expect(read(folder, 'config.yaml')).toMatch(/\nproviders:\n {2}demo: \{\}\n$/)
    expect(existsSync(join(folder, 'providers'))).toBe(true)
  },
)

test('a provider whose variable is set is chosen: .env has its value, is for its owner alone, and no output has it', async () => {
  vi.stubEnv('GROQ_API_KEY', secret)
  const folder = folderOf({})
  const { code, stdout, stderr } = await ran(run, folder)
  expect([code, stdout + stderr]).toEqual([0, expect.not.stringContaining(secret)])
  expect(stdout).toMatch(/groq +GROQ_API_KEY is set/)
  expect(parseEnv(read(folder, '.env'))).toEqual({ GROQ_API_KEY: secret })
  expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600)
  expect(read(folder, '.gitignore')).toContain('.env\n')
  expect(read(folder, 'config.yaml')).toContain('providers: {}')
})

test('the configuration that it writes makes its providers ready without the environment', async () => {
  vi.stubEnv('GROQ_API_KEY', secret)
  vi.stubEnv('LMSTUDIO_BASE_URL', `${server.url}/v1`)
  const folder = folderOf({})
  const { stdout } = await ran(run, folder, '--json')
  expect(JSON.parse(stdout)).toMatchObject({
    written: ['config.yaml', 'providers/', '.env', '.gitignore'],
    providers: [
      { slug: 'groq', reason: 'environment', set: ['GROQ_API_KEY'] },
      { slug: 'lmstudio', reason: 'server', models: ['qwen3-8b'] },
    ],
  })
  vi.stubEnv('GROQ_API_KEY', undefined)
  vi.stubEnv('LMSTUDIO_BASE_URL', undefined)
  const listed = JSON.parse((await ran(providers, '--config', join(folder, 'config.yaml'), '--json')).stdout)
  const states = Object.fromEntries(listed.map(({ slug, state }: { slug: string; state: string }) => [slug, state]))
  expect(states).toMatchObject({ groq: 'ready', lmstudio: 'ready', demo: 'off', vllm: 'off', openai: 'unconfigured' })
  for (const name of ['GROQ_API_KEY', 'LMSTUDIO_BASE_URL']) delete process.env[name]
})

test('a named provider has a line to fill in, and names alone are written where that is wanted', async () => {
  vi.stubEnv('GROQ_API_KEY', secret)
  const folder = folderOf({})
  await ran(run, folder, '--provider', 'mistral', '--names-only')
  expect(parseEnv(read(folder, '.env'))).toEqual({ GROQ_API_KEY: '', MISTRAL_API_KEY: '' })
})

test('files that exist are left as they are, and what they lack is named', async () => {
  vi.stubEnv('GROQ_API_KEY', secret)
  const files = { 'config.yaml': '{ server: { port: 4100 } }\n', '.env': 'A=1\n', '.gitignore': 'x\n' }
  const folder = folderOf(files)
  writeFileSync(join(folder, 'config.yaml'), files['config.yaml'])
  const { code, stdout } = await ran(run, folder)
  expect(code).toBe(0)
  for (const [path, text] of Object.entries(files)) expect(read(folder, path)).toBe(text)
  expect(stdout).toContain('Left as they are')
  expect(stdout).toContain('.env has no line for GROQ_API_KEY.')
  expect(stdout).toContain('.gitignore does not name .env')
  expect(stdout).toContain('http://127.0.0.1:4100/v1')
})

test('a provider that does not exist is one line and exit code 1', async () => {
  const folder = folderOf({})
  expect(await ran(run, folder, '--provider', 'grok-q')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^There is no provider 'grok-q'.*\n$/),
  })
  expect(existsSync(join(folder, 'config.yaml'))).toBe(false)
})

test.each(['plain', 'with space', 'a#b', `it's`, 'a"b', "a'b`c", 'two\nlines', '', '$HOME', ' padded '])(
  'the value %j comes back from .env',
  (value) => {
    expect(parseEnv(assignment('X', value)).X).toBe(value)
  },
)

test('a value that .env cannot hold is not written', () => {
  const line = assignment('X', `a'b"c\`d\ne`)
  expect(line).toMatch(/^# X has a value/)
  expect(line).not.toContain(`d\ne`)
})
