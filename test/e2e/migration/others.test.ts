import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../../src/cli/import/import.ts'
import type { Remark } from '../../../src/cli/import/plan.ts'
import { run as keys } from '../../../src/cli/key.ts'
import { ran } from '../../cli/running.ts'
import { type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { folderOf } from '../../manifest/files.ts'
import { echo, imported } from './imported.ts'

let provider: LoopbackProvider
beforeAll(async () => {
  provider = await loopbackProvider(echo)
})
afterAll(() => provider.close())

/** Imports a file, twice; returns the remarks by their effect. */
async function importFile(
  gateway: string,
  file: object,
  { args = [], env = {} }: { args?: string[]; env?: NodeJS.ProcessEnv } = {},
) {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  const folder = folderOf({ 'prod.json': JSON.stringify(file) })
  const config = join(folder, 'router/config.yaml')
  const command = [gateway, join(folder, 'prod.json'), '--config', config, '--json', ...args]
  const first = await ran(run, ...command)
  expect([first.code, first.stderr]).toEqual([0, ''])
  const { created, remarks } = JSON.parse(first.stdout) as { created: { [kind: string]: string[] }; remarks: Remark[] }
  const again = JSON.parse((await ran(run, ...command)).stdout)
  expect([again.files, Object.values(again.created).flat()]).toEqual([[], []])
  const at = (effect: Remark['effect']) => remarks.filter((one) => one.effect === effect).map(({ path }) => path)
  const newKey = async () => {
    const { stdout } = await ran(keys, 'create', 'new', '--json', '--config', config)
    return JSON.parse(stdout).api_key as string
  }
  return { config, created, remarks, at, newKey, printed: first.stdout }
}

describe('a Portkey config', () => {
  test('with fallbacks serves under its name: shared first, then in order', async () => {
    const file = {
      strategy: { mode: 'fallback', on_status_codes: [429, 503] },
      retry: { attempts: 2 },
      request_timeout: 20_000,
      cache: { mode: 'semantic', max_age: 60 },
      targets: [
        {
          provider: 'openai',
          api_key: 'literal-key-a',
          custom_host: `${provider.url}/failing/v1`,
          override_params: { model: 'gpt-x', temperature: 0.5 },
        },
        {
          strategy: { mode: 'loadbalance' },
          targets: [
            {
              provider: 'anthropic',
              api_key: 'literal-key-b',
              custom_host: `${provider.url}/anthropic`,
              weight: 0.7,
              override_params: { model: 'claude-sonnet-5' },
            },
            { virtual_key: 'groq-main-1a2b3c', override_params: { model: 'openai/gpt-oss-120b' }, weight: 0.3 },
          ],
        },
      ],
    }
    const { config, at, newKey, printed } = await importFile('portkey', file, { args: ['--name', 'assistant'] })
    expect(printed).not.toContain('literal-key')
    expect(readFileSync(join(config, '../.env'), 'utf8')).toContain('PORTKEY_ANTHROPIC_API_KEY=literal-key-b')
    expect(at('none').toSorted()).toEqual(['cache', 'targets[0].override_params.temperature'])
    expect(at('near')).toContain('targets[1].targets[1].virtual_key')
    const { ask } = await imported(config, {})
    expect(await ask(await newKey(), 'assistant')).toBe('anthropic literal-key-b claude-sonnet-5')
  })

  test('that sets no model serves the models that are named', async () => {
    const custom_host = `${provider.url}/mistral/v1`
    const targets = ['one', 'two'].map((key) => ({
      provider: 'mistral-ai',
      api_key: `literal-key-${key}`,
      custom_host,
    }))
    const file = { data: { config: JSON.stringify({ strategy: { mode: 'loadbalance' }, targets }) } }
    const without = await importFile('portkey', file)
    expect(without.remarks).toMatchObject([{ effect: 'manual', message: expect.stringContaining('--model') }])
    const { config, newKey, created } = await importFile('portkey', file, { args: ['--model', 'mistral-large-2512'] })
    expect(created.policies).toEqual(['mistral-large-2512'])
    const { ask } = await imported(config, {})
    expect(await ask(await newKey(), 'mistral-large-2512')).toMatch(
      /^mistral literal-key-(?:one|two) mistral-large-2512$/,
    )
  })

  test('whose virtual key is of no known provider needs its name', async () => {
    const file = { virtual_key: 'prod-7f', override_params: { model: 'gpt-5' } }
    expect((await importFile('portkey', file)).remarks).toMatchObject([
      { effect: 'manual', message: expect.stringContaining('--provider prod-7f=<slug>') },
    ])
    expect((await importFile('portkey', file, { args: ['--provider', 'prod-7f=openai'] })).created.aliases).toEqual([
      'prod',
    ])
  })
})

describe("Bifrost's file", () => {
  const file = (url: string) => ({
    $schema: 'https://www.getbifrost.ai/schema',
    providers: {
      mistral: {
        keys: [
          { name: 'a', value: 'env.MISTRAL_A', models: ['mistral-large-2512'], weight: 2 },
          { name: 'b', value: 'literal-key-b', models: ['mistral-large-2512'], weight: 1 },
        ],
        network_config: {
          base_url: `${url}/mistral/v1`,
          default_request_timeout_in_seconds: 30,
          max_retries: 3,
          retry_backoff_initial: 100,
        },
        concurrency_and_buffer_size: { concurrency: 50, buffer_size: 10 },
      },
      gemini: { keys: [{ name: 'g', value: 'env.GEMINI_API_KEY', models: ['*'], weight: 1 }] },
      'my-llm': {
        keys: [{ name: 'o', value: 'literal-key-own', models: ['own-1'], weight: 1 }],
        network_config: { base_url: `${url}/own/v1` },
        custom_provider_config: { base_provider_type: 'openai' },
      },
    },
    client: { allowed_origins: ['https://app.example.com'], max_request_body_size_mb: 20, enable_logging: true },
    governance: {
      budgets: [
        { id: 'b1', max_limit: 100, reset_duration: '1M', team_id: 't1' },
        { id: 'b2', max_limit: 1, reset_duration: '1d', virtual_key_id: 'v1' },
      ],
      rate_limits: [
        {
          id: 'r1',
          request_max_limit: 600,
          request_reset_duration: '1h',
          token_max_limit: 1000,
          token_reset_duration: '1m',
        },
      ],
      teams: [{ id: 't1', name: 'Science' }],
      virtual_keys: [
        {
          id: 'v1',
          name: 'lab',
          value: 'sk-bf-lab-0123456789',
          team_id: 't1',
          rate_limit_id: 'r1',
          provider_configs: [{ provider: 'mistral', allowed_models: ['mistral-large-2512'], weight: 1 }],
        },
        {
          id: 'v2',
          name: 'all',
          value: 'env.VK_ALL',
          provider_configs: [
            { provider: 'mistral', allowed_models: ['*'] },
            { provider: 'my-llm', allowed_models: ['*'], key_ids: ['o'] },
          ],
        },
        { id: 'v3', name: 'nothing', value: 'sk-bf-nothing-0123456789' },
        { id: 'v4', name: 'off', value: 'sk-bf-off-0123456789', is_active: false },
        { id: 'v5', name: 'unset', value: 'env.VK_UNSET' },
      ],
      routing_rules: [
        {
          id: 'x',
          name: 'x',
          cel_expression: "request.model == 'best'",
          targets: [{ provider: 'my-llm', model: 'own-1', weight: 1 }],
          fallbacks: ['mistral/mistral-large-2512'],
        },
        {
          id: 'y',
          name: 'y',
          cel_expression: "request.headers['x'] == '1'",
          targets: [{ provider: 'mistral', weight: 1 }],
        },
      ],
    },
    mcp: { client_configs: [{ name: 'files' }] },
  })
  const env = { MISTRAL_A: 'mistral-key-a', VK_ALL: 'sk-bf-all-0123456789' }

  test('keeps keys, models, teams and limits', async () => {
    const { config, created, printed } = await importFile('bifrost', file(provider.url), { env })
    expect(created).toMatchObject({ groups: ['Science'], keys: ['lab', 'all', 'nothing'] })
    expect(printed).not.toMatch(/literal-key|sk-bf-/)
    const settings = readFileSync(config, 'utf8')
    expect(settings).toContain('concurrent: 50')
    expect(settings).toContain('body_limit: 20mb')
    const { ask, router } = await imported(config, env)
    const answers = new Set<unknown>()
    for (let index = 0; index < 30; index++)
      answers.add(await ask('sk-bf-all-0123456789', 'mistral/mistral-large-2512'))
    expect([...answers].toSorted()).toEqual([
      'mistral literal-key-b mistral-large-2512',
      'mistral mistral-key-a mistral-large-2512',
    ])
    expect(await ask('sk-bf-lab-0123456789', 'mistral/mistral-large-2512')).toMatch(/^mistral /)
    expect(await ask('sk-bf-all-0123456789', 'my-llm/own-1')).toBe('own literal-key-own own-1')
    await expect(ask('sk-bf-lab-0123456789', 'my-llm/own-1')).rejects.toMatchObject({ status: 403 })
    await expect(ask('sk-bf-nothing-0123456789', 'mistral/mistral-large-2512')).rejects.toMatchObject({ status: 403 })
    await expect(ask('sk-bf-off-0123456789', 'my-llm/own-1')).rejects.toMatchObject({ code: 'invalid_key' })
    expect(router.problems()).toEqual([])
  })

  test('and what has no equivalent is reported by its path', async () => {
    const { at, remarks } = await importFile('bifrost', file(provider.url), { env })
    expect(at('manual')).toEqual(['governance.virtual_keys[4]'])
    expect(at('none').toSorted()).toEqual([
      'client.enable_logging',
      'governance.routing_rules[1]',
      'governance.virtual_keys[1].provider_configs[1].key_ids',
      'mcp',
      'providers.mistral.network_config.retry_backoff_initial',
    ])
    expect(remarks.map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        '600 in 1h became 10 a minute',
        '$1 in 1d became $30 a calendar month, all of which can be spent at once',
      ]),
    )
  })
})
