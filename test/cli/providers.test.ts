import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { run } from '../../src/cli/providers.ts'
import { acme, folderOf, plainDialect } from '../manifest/files.ts'
import { ran } from './running.ts'

function config(): string {
  const folder = folderOf({
    'config.yaml': 'providers: { gamma: { enabled: false } }\n',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': `${acme}models: { m: { api: chat } }\n`,
    'providers/beta.yaml': `${acme.replaceAll('acme', 'beta').replace('none', 'bearer, secret: "${NO_SUCH_KEY}"')}unknown_models: pass\n`,
    'providers/gamma.yaml': acme.replaceAll('acme', 'gamma'),
  })
  return join(folder, 'config.yaml')
}

test('each provider is listed with its state', async () => {
  const { code, stdout } = await ran(run, '--config', config())
  expect(code).toBe(0)
  expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
    'PROVIDER | NAME | DIALECT | MODELS | ADDRESS | STATE',
    'acme | Acme | plain | 1 | http://127.0.0.1:9/v1 | ready',
    'beta | Acme | plain | 0+any | http://127.0.0.1:9/v1 | set NO_SUCH_KEY',
    'gamma | 0 | off',
    '',
  ])
})

test('--markdown is the page of the documentation', async () => {
  const root = join(import.meta.dirname, '../..')
  const { code, stdout } = await ran(run, '--config', join(root, 'config.yaml'), '--markdown')
  expect(code).toBe(0)
  expect(stdout, 'inference-router providers --markdown > docs/providers.md').toBe(
    readFileSync(join(root, 'docs/providers.md'), 'utf8'),
  )
})

test('--json is for scripts, and shows no secret', async () => {
  const { stdout } = await ran(run, '--config', config(), '--json')
  expect(JSON.parse(stdout)).toEqual([
    expect.objectContaining({ slug: 'acme', state: 'ready', dialect: 'plain', models: 1, missing: [] }),
    expect.objectContaining({ slug: 'beta', state: 'unconfigured', missing: ['NO_SUCH_KEY'] }),
    { slug: 'gamma', state: 'off', missing: [], models: 0 },
  ])
})

test('the password of an address is not printed', async () => {
  const address = acme.replace('http://127.0.0.1:9/v1', '"http://me:a-long-password@127.0.0.1:9/v1?code=a-long-code"')
  const folder = folderOf({
    'config.yaml': '',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': address,
  })
  for (const more of [[], ['--json']]) {
    const { stdout } = await ran(run, '--config', join(folder, 'config.yaml'), ...more)
    expect(stdout).toContain('http://me:[secret]@127.0.0.1:9/v1?code=[secret]')
  }
})

test('problems of the files are reported; wrong usage gives 2', async () => {
  const folder = folderOf({ 'config.yaml': 'sever: 1\n' })
  expect(await ran(run, '--config', join(folder, 'config.yaml'))).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('config.yaml:1:1: unknown field `sever`'),
  })
  expect((await ran(run, 'surplus')).code).toBe(2)
  expect(await ran(run, '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('STATE') })
})
