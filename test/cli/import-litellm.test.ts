import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { stringify } from 'yaml'
import { run as aliases } from '../../src/cli/alias.ts'
import { run } from '../../src/cli/import/import.ts'
import type { Remark } from '../../src/cli/import/plan.ts'
import { run as listKeys } from '../../src/cli/key.ts'
import { folderOf } from '../manifest/files.ts'
import { ran } from './running.ts'

beforeEach(() => {
  onTestFinished(() => void vi.unstubAllEnvs())
})

/** What a dry run reports about a LiteLLM configuration. */
async function planned(file: object, rows?: object) {
  const folder = folderOf({ 'litellm.yaml': stringify(file), 'rows.json': JSON.stringify(rows ?? {}) })
  const config = join(folder, 'router/config.yaml')
  const database = rows ? ['--database', join(folder, 'rows.json')] : []
  const result = await ran(
    run,
    'litellm',
    join(folder, 'litellm.yaml'),
    ...database,
    '--config',
    config,
    '--dry-run',
    '--json',
  )
  expect([result.code, result.stderr]).toEqual([0, ''])
  expect(existsSync(config)).toBe(false)
  return JSON.parse(result.stdout) as { created: { [kind: string]: string[] }; files: string[]; remarks: Remark[] }
}

const deployment = (name: string, params: object) => ({ model_name: name, litellm_params: params })
const messages = ({ remarks }: { remarks: Remark[] }) =>
  remarks.map(({ effect, path, message }) => `${effect} ${path}: ${message}`)

test('models are those of the providers that LiteLLM means, by whatever name it has for them', async () => {
  const models = {
    'gpt-5': 'openai/gpt-5',
    'gemini/gemini-2.5-pro': 'google/gemini-2.5-pro',
    'hosted_vllm/any-model': 'vllm/any-model',
    'ollama_chat/any-model': 'ollama/any-model',
    'lm_studio/any-model': 'lmstudio/any-model',
    'together_ai/openai/gpt-oss-120b': 'together/openai/gpt-oss-120b',
    'bedrock/converse/us.anthropic.claude-sonnet-4-5-20250929-v1:0':
      'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  }
  const model_list = Object.keys(models).map((model, index) => deployment(`name-${index}`, { model }))
  const folder = folderOf({ 'litellm.yaml': stringify({ model_list }) })
  const config = join(folder, 'router/config.yaml')
  expect(await ran(run, 'litellm', join(folder, 'litellm.yaml'), '--config', config)).toMatchObject({ code: 0 })
  const listed = JSON.parse((await ran(aliases, 'list', '--json', '--config', config)).stdout)
  expect(listed.aliases.map(({ target }: { target: string }) => target)).toEqual(Object.values(models))
})

test('names with an asterisk say how models are called here', async () => {
  const found = await planned({
    model_list: [deployment('openai/*', { model: 'openai/*' }), deployment('gemini/*', { model: 'gemini/*' })],
  })
  expect(messages(found)).toEqual([
    'near model_list[0]: models are called as openai/<model> here as well',
    "near model_list[1]: 'gemini/*' has no equivalent: models are called as google/<model>, or without a provider with unprefixed_models: first",
  ])
})

test('models and providers that nobody here has are to do, and the others are imported', async () => {
  const found = await planned({
    model_list: [
      deployment('a', { model: 'no-such-model-anywhere' }),
      deployment('b', { model: 'nobody/x', custom_llm_provider: 'nobody' }),
      deployment('c', { model: 'openai/no-such-model' }),
      deployment('d', { model: 'openai/gpt-5' }),
    ],
  })
  expect(found.created.aliases).toEqual(['d'])
  expect(messages(found)).toEqual([
    expect.stringMatching(/^manual model_list\[0\]: no provider here offers 'no-such-model-anywhere'/),
    expect.stringMatching(/^manual model_list\[1\]: there is no provider 'nobody' here/),
    expect.stringMatching(/^manual model_list\[2\]: the catalog has no model 'no-such-model' of openai/),
  ])
})

test('an address in a variable that is not set is pointed out', async () => {
  vi.stubEnv('NO_SUCH_BASE', undefined)
  const params = { model: 'azure/prod', api_base: 'os.environ/NO_SUCH_BASE' }
  const found = await planned({
    model_list: [{ ...deployment('a', params), model_info: { base_model: 'azure/gpt-5' } }],
  })
  expect(messages(found)).toEqual([expect.stringContaining('near model_list[0]: NO_SUCH_BASE is not set here')])
})

test.each([
  ['sk-1234', 'has fewer than 20 characters'],
  ['os.environ/NO_SUCH_MASTER_KEY', 'NO_SUCH_MASTER_KEY is not set'],
])('the master key %s is not imported', async (master_key, reason) => {
  const found = await planned({ model_list: [], general_settings: { master_key } })
  expect(found.created.keys).toEqual([])
  expect(messages(found)).toEqual([expect.stringContaining(`manual general_settings.master_key: ${reason}`)])
})

test('keys may call what they and their team list: all, none, groups, patterns', async () => {
  const token = (index: number) => String(index).repeat(64).slice(0, 64)
  const keys = [
    { token: token(1), key_alias: 'all', models: ['all-proxy-models'] },
    { token: token(2), key_alias: 'none', models: ['no-default-models'] },
    { token: token(3), key_alias: 'pattern', models: ['gemini/*'], team_id: 't' },
    { token: token(4), key_alias: 'wider', models: ['openai/*', 'mine'], team_id: 't' },
  ]
  const teams = [{ team_id: 't', team_alias: 'T', models: ['mine', 'gemini/*', 'openai/gpt-5'] }]
  const model_list = [deployment('mine', { model: 'openai/gpt-5' })]
  const folder = folderOf({ 'litellm.yaml': stringify({ model_list }), 'rows.json': JSON.stringify({ keys, teams }) })
  const config = join(folder, 'router/config.yaml')
  const result = await ran(
    run,
    'litellm',
    join(folder, 'litellm.yaml'),
    '--database',
    join(folder, 'rows.json'),
    '--config',
    config,
  )
  expect(result.code).toBe(0)
  const listed = JSON.parse((await ran(listKeys, 'list', '--json', '--config', config)).stdout) as {
    keys: { name: string; models: string[] | null }[]
  }
  expect(Object.fromEntries(listed.keys.map(({ name, models }) => [name, models]))).toEqual({
    all: null,
    none: [],
    pattern: ['google/*'],
    wider: ['mine'],
  })
  expect(result.stdout).toContain("'openai/gpt-5' was not imported: it cannot be called")
  expect(result.stdout).toContain('No key may manage this organization yet')
})

test('limits that have no equivalent are to do for the keys that they limited; models of an organization restrict its keys', async () => {
  const token = (letter: string) => letter.repeat(64)
  const rows = {
    LiteLLM_BudgetTable: [
      { budget_id: 'b1', max_budget: 100 },
      { budget_id: 'b2', allowed_models: ['gpt-5'] },
    ],
    LiteLLM_OrganizationTable: [
      { organization_id: 'o1', organization_alias: 'Acme', budget_id: 'b1', models: ['gpt-5'] },
    ],
    LiteLLM_TeamTable: [{ team_id: 't1', team_alias: 'Team', organization_id: 'o1', models: [], rpm_limit: 5 }],
    LiteLLM_VerificationToken: [
      { token: token('a'), key_alias: 'own', organization_id: 'o1', total_spend: 3, key_type: 'llm_api' },
      { token: token('b'), key_alias: 'of the team', team_id: 't1' },
      { token: token('c'), key_alias: 'daily', tpd_limit: 1_000, budget_id: 'b2' },
    ],
  }
  const names = ['gpt-5', 'claude']
  const model_list = names.map((name) =>
    deployment(name, { model: name === 'gpt-5' ? 'openai/gpt-5' : 'anthropic/claude-sonnet-4-5' }),
  )
  const folder = folderOf({ 'litellm.yaml': stringify({ model_list }), 'rows.json': JSON.stringify(rows) })
  const config = ['--config', join(folder, 'router/config.yaml')]
  const done = await ran(
    run,
    'litellm',
    join(folder, 'litellm.yaml'),
    '--database',
    join(folder, 'rows.json'),
    ...config,
    '--json',
  )
  const lost = messages(JSON.parse(done.stdout))
  expect(lost).toEqual([
    'manual LiteLLM_OrganizationTable: 1 organization: inference-router org create makes one, and import takes its name with --org',
    'manual LiteLLM_TeamTable.rpm_limit: groups have a monthly limit only: give its keys rate limits (Team)',
    'manual LiteLLM_OrganizationTable.budget_id: the max_budget of organization Acme no longer limits its keys: set limits of their own (own, of the team)',
    'manual LiteLLM_BudgetTable.allowed_models: no equivalent: check whether the key may do more than before (daily)',
    'manual LiteLLM_VerificationToken.tpd_limit: no equivalent: check whether the key may do more than before (daily)',
  ])
  const { keys: made } = JSON.parse((await ran(listKeys, 'list', '--json', ...config)).stdout)
  const models = made.map(({ name, models }: { name: string; models: string[] | null }) => [name, models])
  expect(Object.fromEntries(models)).toEqual({ own: ['gpt-5'], 'of the team': ['gpt-5'], daily: null })
})

test('an import that would break the configuration writes nothing', async () => {
  const folder = folderOf({ 'litellm.yaml': stringify({ model_list: [deployment('a', { model: 'openai/gpt-5' })] }) })
  mkdirSync(join(folder, 'router'))
  const config = join(folder, 'router/config.yaml')
  writeFileSync(config, 'no_such_setting: 1\n')
  const { code, stderr } = await ran(run, 'litellm', join(folder, 'litellm.yaml'), '--config', config)
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('unknown field `no_setting`'.replace('no_setting', 'no_such_setting')),
  ])
  expect(existsSync(join(folder, 'router/data'))).toBe(false)
})
