import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { defaultCreationLimits } from '../../src/core/creation-limits.ts'
import { defaultHealth, defaultRouting } from '../../src/core/routing/rules.ts'
import { loadConfig, needRestart } from '../../src/snapshot/config.ts'
import { findConfig } from '../../src/snapshot/find-config.ts'
import { folderOf, formatted } from '../manifest/files.ts'

async function load(text: string, env: { [name: string]: string } = {}) {
  const folder = folderOf({ 'config.yaml': text })
  const { config, problems } = await loadConfig(join(folder, 'config.yaml'), env)
  return { folder, config, problems: formatted(problems) }
}

test('everything has a default; paths are relative to the file', async () => {
  const { folder, config } = await load('# no folders\n')
  expect(config).toEqual({
    path: join(folder, 'config.yaml'),
    server: {
      host: '127.0.0.1',
      port: 8787,
      threads: 1,
      body: { bytes: 50 * 1024 * 1024, values: 200_000, unknownFields: 1_000 },
      cors: [],
      keepAlive: 'late',
      clientTimeoutMs: 30_000,
      clientMinRate: 1_024,
      limits: { concurrent: 5_000, queue: 1_000 },
    },
    errors: { keepMs: 7 * 24 * 3_600_000 },
    answers: { bytes: 32 * 1024 * 1024, eventBytes: 8 * 1024 * 1024, values: 250_000 },
    manage: { port: null, limits: defaultCreationLimits },
    store: { url: `sqlite:${join(folder, 'data/router.sqlite')}` },
    folders: Object.fromEntries(
      ['providers', 'catalog', 'plugins'].map((kind) => [
        kind,
        [
          { path: join(folder, kind), isShipped: false },
          { path: resolve(import.meta.dirname, '../..', kind), isShipped: true },
        ],
      ]),
    ),
    media: {
      schemes: ['https'],
      maxBytes: 20 * 1024 * 1024,
      maxTotalBytes: 50 * 1024 * 1024,
      maxFiles: 20,
      timeoutMs: 10_000,
      allowHosts: [],
    },
    budget: { defaultOutputTokens: 4_096, abandoned: 'prompt', usageWaitMs: 10_000 },
    providers: {},
    unknownModels: 'refuse',
    unprefixedModels: 'refuse',
    refuseRetired: false,
    policies: new Map(),
    organizations: new Map(),
    routing: defaultRouting,
    health: defaultHealth,
    plugins: [],
    metrics: { enabled: true, public: false, series: 1_000, labels: [] },
    console: { enabled: true },
  })
})

test('the file of this project has the defaults', async () => {
  const file = resolve(import.meta.dirname, '../../config.yaml')
  const { config, problems } = await loadConfig(file, {})
  const { config: defaults } = await load('')
  expect(problems).toEqual([])
  expect(config?.server).toEqual(defaults?.server)
  expect(config?.answers).toEqual(defaults?.answers)
  expect(config?.manage).toEqual(defaults?.manage)
  expect(config?.media).toEqual(defaults?.media)
  expect(config?.metrics).toEqual(defaults?.metrics)
  expect(config?.console).toEqual(defaults?.console)
  expect({ routing: config?.routing, health: config?.health }).toEqual({
    routing: defaults?.routing,
    health: defaults?.health,
  })
  expect(config?.store.url).toBe(`sqlite:${resolve(import.meta.dirname, '../../data/router.sqlite')}`)
  expect(Object.keys(parse(readFileSync(file, 'utf8')))).toEqual([
    'server',
    'answers',
    'manage',
    'errors',
    'store',
    'folders',
    'media',
    'budget',
    'providers',
    'unknown_models',
    'unprefixed_models',
    'refuse_retired',
    'policies',
    'routing',
    'health',
    'metrics',
    'organizations',
    'console',
    'plugins',
  ])
})

test('values come from the environment, numbers as well; references of providers are resolved later', async () => {
  const text = `server: { host: "\${HOST}", port: "\${PORT:-8080}", body_limit: 1.5kb, max_values: 9, max_unknown_fields: 0, cors: ["\${PAGE}"] }
store: { url: "sqlite::memory:" }
folders: { providers: "\${FOLDER:-p}" }
providers:
  acme: { secret: "\${ACME_KEY}", base_url: "http://\${ACME_HOST}" }
  other:
`
  const { folder, config, problems } = await load(text, { HOST: '1', PAGE: 'https://a.example' })
  expect(problems).toEqual([])
  expect(config).toMatchObject({
    server: { host: '1', port: 8080, body: { bytes: 1536, values: 9, unknownFields: 0 }, cors: ['https://a.example'] },
    store: { url: 'sqlite::memory:' },
    folders: { providers: [{ path: join(folder, 'p'), isShipped: false }] },
    providers: { acme: { secret: '${ACME_KEY}', base_url: 'http://${ACME_HOST}' }, other: {} },
  })
})

test('media limits are sizes and durations, from the environment as well', async () => {
  const text = `media:
  schemes: [https, http]
  max_bytes: "\${MAX}"
  max_total_bytes: 1kb
  max_files: "\${FILES}"
  timeout: 500ms
  allow_hosts: ["\${HOST}", files.internal, "10.0.0.7:9000", "[::1]:80"]
`
  const { config, problems } = await load(text, { MAX: '512', FILES: '0', HOST: '127.0.0.1' })
  expect(problems).toEqual([])
  expect(config?.media).toEqual({
    schemes: ['https', 'http'],
    maxBytes: 512,
    maxTotalBytes: 1024,
    maxFiles: 0,
    timeoutMs: 500,
    allowHosts: ['127.0.0.1', 'files.internal', '10.0.0.7:9000', '[::1]:80'],
  })
})

test('sections with comments only are empty', async () => {
  const { problems } = await load('server:\n  # port: 1\nproviders:\npolicies:\nplugins:\n')
  expect(problems).toEqual([])
})

test.each([
  ['a typo', 'sever: {}\n', '1:1 unknown field `sever`; did you mean `server`?'],
  ['a port that is none', 'server: { port: 99999 }\n', '1:17 `server.port` must be at most 65535, not 99999'],
  ['a port of letters', 'server: { port: "${P:-x}" }\n', '1:17 `server.port` must be a whole number'],
  [
    'a variable that is not set',
    'server: { host: "${NO_SUCH}" }\n',
    '1:17 the variable NO_SUCH is not set: set it, or write ${NO_SUCH:-a default}',
  ],
  [
    'a size',
    'server: { body_limit: much }\n',
    '1:23 `server.body_limit` must be a size: a number of bytes, or one with a unit',
  ],
  [
    'another database',
    'store: { url: "postgres://x" }\n',
    '1:15 `store.url` must be the address of a database: sqlite:',
  ],
  ['a scheme nobody speaks', 'media: { schemes: [ftp] }\n', '1:20 `media.schemes[0]` must be one of'],
  ['a host with a path', 'media: { allow_hosts: [a/b] }\n', '1:24 `media.allow_hosts[0]` must be the name or address'],
  ['a time without a unit', 'media: { timeout: "10" }\n', '1:19 `media.timeout` must be a duration'],
  ['a policy without targets', 'policies: { best: {} }\n', '1:19 `policies.best` needs `targets`'],
  [
    'a target that is no model',
    'policies: { best: { targets: [gpt] } }\n',
    '1:31 `policies.best.targets[0]` must be a model',
  ],
  ['a plugin without a name', 'plugins: [{ options: {} }]\n', '1:11 `plugins[0]` needs `name`'],
  [
    'organizations of a plugin',
    'plugins: [{ name: x, organizations: some }]\n',
    '1:37 `plugins[0].organizations` must be',
  ],
])('%s is told with its place', async (_, text, expected) => {
  const { config, problems } = await load(text)
  expect(problems).toEqual([expect.stringContaining(expected)])
  expect(config).toBeUndefined()
})

test('a file that is named must exist', async () => {
  const { config, problems } = await loadConfig('/nowhere/config.yaml', {})
  expect(config).toBeUndefined()
  expect(formatted(problems)).toEqual(['1:1 the configuration cannot be read: there is no such file'])
})

test('the file is the one that is named, else that of the environment, else the usual one', () => {
  expect(findConfig('a.yaml', { INFERENCE_ROUTER_CONFIG: 'b.yaml' })).toBe(resolve('a.yaml'))
  expect(findConfig(undefined, { INFERENCE_ROUTER_CONFIG: 'b.yaml' })).toBe(resolve('b.yaml'))
  expect(findConfig(undefined, {})).toBe(resolve('config.yaml'))
})

test('settings that apply from the next start are known by name', async () => {
  const { config: before } = await load('')
  const { config: after } = await load(
    'server: { port: 1, body_limit: 1mb }\nmanage: { port: 2 }\nstore: { url: sqlite:x }\n',
  )
  expect(before && after && needRestart(before, after)).toEqual(['server.port', 'manage.port', 'store.url'])
  expect(before && needRestart(before, before)).toEqual([])
})

test.each([
  ['30m', 1_800_000],
  ['1.5d', 129_600_000],
  ['off', 0],
  [0, 0],
])('messages of providers are stored for errors.keep: %s', async (keep, keepMs) => {
  const { config } = await load(`errors: { keep: ${keep} }`)
  expect(config?.errors).toEqual({ keepMs })
})

test.each(['7', 'never', '7 days', '-1d'])('errors.keep is no %s', async (keep) => {
  const { config, problems } = await load(`errors: { keep: ${keep} }`)
  expect([config, problems.length > 0]).toEqual([undefined, true])
})
