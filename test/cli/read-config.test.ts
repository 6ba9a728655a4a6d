import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { run as check } from '../../src/cli/check.ts'
import { run as providers } from '../../src/cli/providers.ts'
import { locateConfig } from '../../src/cli/read-config.ts'
import { acme, folderOf, plainDialect } from '../manifest/files.ts'
import { ran } from './running.ts'

const names = ['DOT_ENV_A', 'DOT_ENV_B', 'DOT_ENV_C']
afterEach(() => {
  for (const name of names) delete process.env[name]
})

const files = {
  'config.yaml': 'folders: { providers: ./providers }\n',
  'providers/dialects/plain.yaml': plainDialect,
  'providers/acme.yaml': acme.replace('none', 'bearer, secret: "${DOT_ENV_A}"'),
}

test('variables of the .env file beside the configuration are used', async () => {
  const folder = folderOf({ ...files, '.env': 'DOT_ENV_A="from the file" # a comment\n' })
  const { stdout } = await ran(providers, '--config', join(folder, 'config.yaml'))
  expect(stdout).toMatch(/acme .* ready\n/)
  expect(process.env.DOT_ENV_A).toBe('from the file')
})

test('the environment goes before the .env file, also with an empty value', () => {
  const folder = folderOf({ ...files, '.env': 'DOT_ENV_A=file\nDOT_ENV_B=file\nDOT_ENV_C=file\n' })
  process.env.DOT_ENV_A = 'environment'
  process.env.DOT_ENV_B = ''
  locateConfig(join(folder, 'config.yaml'))
  expect(names.map((name) => process.env[name])).toEqual(['environment', '', 'file'])
})

test('a folder named .env is not a file of variables', () => {
  const folder = folderOf(files)
  mkdirSync(join(folder, '.env'))
  expect(locateConfig(join(folder, 'config.yaml'))).toBe(join(folder, 'config.yaml'))
})

test.each([
  'server: { port: 1 }',
  'providers: {}',
  'unknown_models: pass',
  'policies: {}\nplugins: []',
  'health: { window: 5s }',
  'routing: { sort: price }',
])('`check` takes a file with the settings %j for a configuration', async (text) => {
  const folder = folderOf({ ...files, 'my.yaml': `${text}\nno_setting: 1\n` })
  const { stdout } = await ran(check, join(folder, 'my.yaml'), '--config', join(folder, 'config.yaml'))
  expect(stdout).toContain('unknown field `no_setting`; known here: server, ')
})

test('`check` takes a manifest with a mistake for a manifest', async () => {
  const folder = folderOf({ ...files, 'beta.yaml': `${acme.replaceAll('acme', 'beta')}plugins: []\n` })
  const { stdout } = await ran(check, join(folder, 'beta.yaml'), '--config', join(folder, 'config.yaml'))
  expect(stdout).toContain('unknown field `plugins`')
})
