import { existsSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../src/cli/check.ts'
import { slow } from '../helpers/slow.ts'
import { acme, folderOf, plainDialect, writeIn } from '../manifest/files.ts'
import { ran } from './running.ts'

/** All that a chat model says of itself. */
const facts = [
  ...[
    'api: chat',
    'created: 1',
    'context_window: 9',
    'max_output_tokens: 9',
    'description: M',
    'data_retention: false',
  ],
  ...['data_retention_days: 0', 'data_used_for_training: false', 'privacy_comments: None.', 'geolocation: eu'],
  ...['open_weights: true', 'model_lab: acme', 'model_canonical_name: m'],
].join(', ')
const tier = '{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 1e-6 }'

const good = {
  'config.yaml': '',
  'providers/dialects/plain.yaml': plainDialect,
  'providers/acme.yaml': `${acme}examples: [{ name: e, answers: { said: a }, means: { finish: stop } }]\n`,
  'catalog/acme.yaml': `provider: acme\nmodels:\n  m: { ${facts}, pricing: [${tier}] }\n`,
}

function project(files: { [path: string]: string } = {}) {
  const folder = folderOf({ ...good, ...files })
  return { folder, config: join(folder, 'config.yaml'), at: (path: string) => join(folder, path) }
}

test('files without problems give a summary and 0', async () => {
  const { config } = project()
  // The dialects of the project are always among them.
  expect(await ran(run, '--config', config)).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^1 provider, \d+ dialects, 1 model, \d+ examples, \d+ mappings: no problems\n$/),
    stderr: '',
  })
})

test('the files of this project have no problems', slow, async () => {
  const { code, stdout } = await ran(run)
  expect(stdout).toMatch(/^\d+ providers, \d+ dialects, \d+ models, \d+ examples, \d+ mappings: no problems\n$/)
  expect(code).toBe(0)
})

test('each problem is one line with its place, in order, and the exit code is 1', async () => {
  const { config, at } = project({
    'providers/acme.yaml': `${good['providers/acme.yaml'].replace('finish: stop', 'finish: length')}`,
    'providers/beta.yaml': `${acme.replaceAll('acme', 'beta')}modles: {}\n`,
    'catalog/later.yaml': 'provider: later\nmodels: {}\n',
  })
  const { code, stdout } = await ran(run, '--config', config)
  const seen = (path: string) => (relative('', at(path)).startsWith('..') ? at(path) : relative('', at(path)))
  expect(stdout.split('\n')).toEqual([
    `${seen('catalog/later.yaml')}:1:11: warning: there is no provider \`later\`: these models are not used`,
    `${seen('providers/acme.yaml')}:6:62: example 'e': means (from answers) differs at finish: expected "length", got "stop"`,
    `${seen('providers/beta.yaml')}:6:1: unknown field \`modles\`; did you mean \`models\`?`,
    expect.stringMatching(/^1 provider, \d+ dialects, 1 model, \d+ examples, \d+ mappings: 2 errors, 1 warning$/),
    '',
  ])
  expect(code).toBe(1)
})

test('a switched-off provider is checked as well', slow, async () => {
  const { config } = project({
    'config.yaml': 'providers: { acme: { enabled: false } }\n',
    'providers/acme.yaml': 'slug: acme\n',
  })
  expect((await ran(run, '--config', config)).code).toBe(1)
})

test('models of the catalog of which not every fact is stated are errors, and so are empty prices', slow, async () => {
  const told = async (models: { [name: string]: string }) => {
    const lines = Object.entries(models).map(([name, model]) => `  ${name}: { ${model} }\n`)
    const { config } = project({ 'catalog/acme.yaml': `provider: acme\nmodels:\n${lines.join('')}` })
    const { code, stdout } = await ran(run, '--config', config)
    return [code, ...stdout.trimEnd().split('\n')]
  }
  const whole = `${facts}, pricing: [${tier}]`
  const sound = { whole, over: 'shutdown: 2026-01-01, api: chat', picture: 'api: image' }
  expect(await told(sound)).toEqual([0, expect.stringContaining('no problems')])
  const wrong = { lab: whole.replace('model_lab: acme, ', ''), price: facts, prices: `${facts}, pricing: []` }
  expect(await told({ whole, ...wrong })).toEqual([
    1,
    expect.stringMatching(/acme\.yaml:4:8: `lab` has no model_lab$/),
    expect.stringMatching(/acme\.yaml:5:10: `price` has no pricing$/),
    expect.stringMatching(/acme\.yaml:6:11: `prices` has no pricing$/),
    expect.stringContaining('3 errors'),
  ])
})

test('prices that can only be mistakes are errors, wherever they are written', async () => {
  const priced = (...tiers: string[]) =>
    `{ ${facts}, pricing: [${tiers.map((one) => `{ prompt_tokens_threshold: ${one} }`)}] }`
  const catalog = {
    sound: priced(
      '0, input_price: 1e-6, cached_price: 1e-6, output_price: 9e-4',
      '5, input_price: 9e-5, output_price: 9e-4',
    ),
    free: priced('0, input_price: 0, output_price: 0'),
    cached: priced('0, input_price: 1e-6, cached_price: 2e-6, output_price: 1e-6'),
    million: priced('0, input_price: 2, output_price: 8e-6'),
    tiers: priced('0, input_price: 1e-6, output_price: 1e-6', '5, input_price: 1e-9, output_price: 1e-6'),
    slip: priced('0, input_price: 1e-9, output_price: 1e-9'),
  }
  const { config, at } = project({
    'config.yaml': 'providers: { acme: { models: { mine: { pricing: { input: 3, output: 1e-6 }, is: sound } } } }\n',
    'providers/acme.yaml': `${good['providers/acme.yaml']}models: { own: { api: chat, pricing: { input: 5, output: 1e-6 } } }\n`,
    'catalog/acme.yaml': `provider: acme\nmodels:\n${Object.entries(catalog)
      .map(([name, entry]) => `  ${name}: ${entry}\n`)
      .join('')}by_api:\n  embedding:\n    models: { e: { pricing: { input: 4 } } }\n`,
  })
  const { code, stdout } = await ran(run, '--config', config)
  expect([code, ...stdout.trimEnd().split('\n')]).toEqual([
    1,
    expect.stringMatching(
      /acme\.yaml:5:\d+: `cached`: `cached_price` is 0.000002, more than the `input_price` of 0.000001$/,
    ),
    expect.stringMatching(
      /acme\.yaml:6:\d+: `million`: `input_price` is 2 USD for one token: 2 USD for a million are 2e-6$/,
    ),
    expect.stringMatching(/acme\.yaml:7:\d+: `tiers`: `input_price` is 0.000001, and 1e-9 beside it/),
    expect.stringMatching(/acme\.yaml:7:\d+: `tiers`: `input_price` is 1e-9, and 0.000001 beside it/),
    expect.stringMatching(/acme\.yaml:7:\d+: `tiers`: `output_price` is 0.000001, and 1e-9 beside it/),
    expect.stringMatching(/acme\.yaml:8:\d+: `slip`: `input_price` is 1e-9, and 0.000001 beside it/),
    expect.stringMatching(/acme\.yaml:8:\d+: `slip`: `output_price` is 1e-9, and 0.000001 beside it/),
    expect.stringMatching(/acme\.yaml:11:\d+: `e`: `input_price` is 4 USD/),
    expect.stringMatching(/config\.yaml:1:\d+: `mine`: `input_price` is 3 USD/),
    expect.stringMatching(/providers\/acme\.yaml:\d+:\d+: `own`: `input_price` is 5 USD/),
    expect.stringContaining('errors'),
  ])
  expect((await ran(run, at('providers/acme.yaml'), '--config', config)).code).toBe(1)
  expect((await ran(run, at('catalog/acme.yaml'), '--config', config)).code).toBe(1)
})

test('single files and folders are checked by their kind', slow, async () => {
  const { config, at } = project({ 'catalog/acme.yaml': 'provider: acme\nmodels: { m: {} }\n' })
  const summary = async (...paths: string[]) =>
    (await ran(run, ...paths.map(at), '--config', config)).stdout.split('\n').at(-2)
  expect(await summary('providers/acme.yaml')).toBe(
    '1 provider, 0 dialects, 0 models, 1 example, 0 mappings: no problems',
  )
  expect(await summary('providers/dialects/plain.yaml')).toEqual(
    expect.stringMatching(/^0 providers, 1 dialect, 0 models, 0 examples, \d+ mappings: no problems$/),
  )
  expect(await summary('catalog')).toBe(
    '0 providers, 0 dialects, 0 models, 0 examples, 0 mappings: 1 error, 0 warnings',
  )
  expect(await summary('providers', 'config.yaml')).toEqual(
    expect.stringMatching(/^2 providers, \d+ dialects, 0 models, \d+ examples, \d+ mappings: 1 error, 0 warnings$/),
  )
})

test('a manifest anywhere is checked with the dialects of the configuration', async () => {
  const { config } = project()
  const elsewhere = folderOf({ 'beta.yaml': acme.replaceAll('acme', 'beta') })
  expect(await ran(run, join(elsewhere, 'beta.yaml'), '--config', config)).toMatchObject({ code: 0 })
})

test('every mapping is compiled, or interpreted with the construct that made it so: a warning', async () => {
  const patch = `patch: { reply: '$eval("$")' }`
  const { config, at } = project({ 'providers/acme.yaml': `${acme}endpoints: { chat: { ${patch} } }\n` })
  const { code, stdout } = await ran(run, at('providers'), '--mappings', '--config', config)
  expect(code).toBe(0)
  expect(stdout).toContain('providers/acme.yaml:6:38: endpoints.chat.patch.reply: interpreted ($eval)\n')
  expect(stdout).toContain('providers/dialects/plain.yaml:7:7: endpoints.chat.request: compiled\n')
  expect(stdout).toMatch(
    /acme\.yaml:6:38: warning: the mapping `endpoints\.chat\.patch\.reply` is interpreted.*: \$eval is/,
  )
  expect(stdout).toMatch(/, \d+ mappings \(1 interpreted\): 0 errors, 1 warning\n$/)

  const { stdout: quiet } = await ran(run, at('providers'), '--config', config)
  expect(quiet.split('\n')).toHaveLength(5)
  const { stdout: json } = await ran(run, at('providers'), '--json', '--config', config)
  expect(JSON.parse(json)).toMatchObject({
    checked: { interpreted: 1 },
    mappings: expect.arrayContaining([
      {
        file: at('providers/acme.yaml'),
        line: 6,
        column: 38,
        name: 'endpoints.chat.patch.reply',
        compiled: false,
        construct: '$eval',
      },
    ]),
  })
})

test('the mappings of variants are among them', async () => {
  const variant = `{ match: ^x, endpoints: { chat: { patch: { reply: '$eval("$")' } } } }`
  const { config, at } = project({ 'providers/acme.yaml': `${acme}variants: [${variant}]\n` })
  const { stdout } = await ran(run, at('providers/acme.yaml'), '--mappings', '--config', config)
  expect(stdout).toMatch(/^\S+acme\.yaml:6:\d+: endpoints\.chat\.patch\.reply: interpreted \(\$eval\)\n/)
})

test('--print prints the JavaScript of each mapping below its place, with the lines of stack traces', async () => {
  const patch = `patch: { reply: '$eval("$")' }`
  const { config, at } = project({ 'providers/acme.yaml': `${acme}endpoints: { chat: { ${patch} } }\n` })
  const printed = async (...args: string[]) =>
    (await ran(run, ...args, '--mappings', '--print', '--config', config)).stdout
  const all = await printed(at('providers'))
  const blocks = all.split('\n\n')
  const block = blocks.find((one) => one.includes('plain.yaml:7:7: endpoints.chat.request\n'))?.split('\n') ?? []
  expect(block.slice(0, 3)).toEqual([
    expect.stringMatching(/^\/\/ .*providers\/dialects\/plain\.yaml:7:7: endpoints\.chat\.request$/),
    `// mapping://${at('providers/dialects/plain.yaml')}/endpoints.chat.request`,
    '"use strict"',
  ])
  expect(block.at(-1)).toBe('}')
  expect(() => new Function(block.join('\n'))).not.toThrow()
  expect(all).toMatch(/acme\.yaml:6:38: endpoints\.chat\.patch\.reply\n\/\/ Interpreted: \$eval is not compiled\.\n\n/)

  const some = await printed(at('providers/acme.yaml'))
  expect(some).toContain('endpoints.chat.patch.reply')
  expect(some).not.toContain('plain.yaml')

  const { mappings } = JSON.parse(await printed(at('providers/dialects'), '--json'))
  expect(mappings[0]).toMatchObject({
    name: 'endpoints.chat.request',
    url: expect.stringMatching(/^mapping:.*plain\.yaml\/endpoints\.chat\.request$/),
    code: expect.stringContaining('return (input, bindings) => {'),
  })
  expect(await ran(run, '--print')).toMatchObject({ code: 2, stderr: expect.stringContaining('--mappings') })
})

test('a key with an old name is a warning at its place, and the exit code is 0', async () => {
  const { config, at } = project({
    'config.yaml': 'health:\n  share: 0.4\n  open_most: 20s\n',
    'providers/acme.yaml': `${acme}governed: { boost: { effect: cost } }\n`,
  })
  const problems = [
    [at('config.yaml'), 3, 3, '`open_most` has been renamed to `max_open`: '],
    [at('providers/acme.yaml'), 6, 1, '`governed` has been renamed to `restricted`: '],
  ].map(([file, line, column, message]) => {
    return { file, line, column, severity: 'warning', message: expect.stringContaining(String(message)) }
  })
  const { code, stdout } = await ran(run, '--config', config, '--json')
  expect(JSON.parse(stdout).problems).toEqual(problems)
  expect(code).toBe(0)
  for (const { file, line, column } of problems) {
    const printed = await ran(run, String(file), '--config', config)
    expect(printed.stdout).toMatch(new RegExp(`:${line}:${column}: warning: \`\\w+\` has been renamed to \`\\w+\``))
    expect(printed.code).toBe(0)
  }
})

test('lists the fields that never reach a provider, for named files', slow, async () => {
  const { config, at } = project({ 'providers/acme.yaml': `${acme}endpoints: { chat: { unsupported: [system] } }\n` })
  const { stdout } = await ran(run, at('providers/acme.yaml'), '--config', config)
  const [line = ''] = stdout.split('\n')
  expect(line).toMatch(/acme\.yaml does not support: .*\bseed\b.*\bparts\.image\b.*\bsystem$/)
  expect(line).not.toMatch(/max_output_tokens|parts\.text|messages/)
  const { stdout: whole } = await ran(run, '--config', config)
  expect(whole).not.toContain('does not support')
})

test('--json is for scripts', slow, async () => {
  const { config, at } = project({ 'providers/acme.yaml': 'slug: 1\n' })
  const { code, stdout } = await ran(run, '--config', config, '--json')
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    checked: { providers: 0, models: 0 },
    problems: expect.arrayContaining([
      { file: at('providers/acme.yaml'), line: 1, column: 7, message: expect.any(String), severity: 'error' },
    ]),
  })
})

test('wrong usage gives 2 and the help, --help gives 0', async () => {
  expect(await ran(run, '--frob')).toMatchObject({ code: 2, stderr: expect.stringContaining('inference-router check') })
  expect(await ran(run, '/no/such/file.yaml')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('/no/such/file.yaml'),
  })
  expect(await ran(run, '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('exit code is 1') })
})

test('a configuration that cannot be read is reported', async () => {
  const { code, stdout } = await ran(run, '--config', '/no/such/config.yaml')
  expect(stdout).toContain('/no/such/config.yaml:1:1: the configuration cannot be read: there is no such file')
  expect(code).toBe(1)
})

test('plugins are set up, and ended again', slow, async () => {
  const plugin = `import { writeFileSync } from 'node:fs'
export default {
  setup: () => ({ record() {}, async [Symbol.asyncDispose]() { writeFileSync(new URL('ended', import.meta.url), '') } }),
}
`
  const { config, at } = project({ 'config.yaml': 'plugins: [{ name: one }]\n', 'plugins/one.ts': plugin })
  const { code, stdout } = await ran(run, '--config', config)
  expect(stdout).toMatch(/ examples, 1 plugin, \d+ mappings: no problems\n$/)
  expect([code, existsSync(at('plugins/ended'))]).toEqual([0, true])
  writeFileSync(at('plugins/one.ts'), plugin.replace('record', 'records'))
  const wrong = await ran(run, '--config', config)
  expect(wrong.stdout).toContain('plugins/one.ts:3:19: unknown member `records`; did you mean `record`?\n')
  expect(wrong.code).toBe(1)
  expect((await ran(run, at('plugins/one.ts'))).stderr).toContain(
    'is checked together with the configuration that lists it',
  )
})

test('a second check of the same files compiles no mapping, and finds every mistake that was made since', async () => {
  const compiled = countCompiled()
  const { config, folder } = project()
  vi.stubEnv('INFERENCE_ROUTER_CACHE', join(folder, 'cache'))
  const check = async () => (await ran(run, '--config', config)).stdout
  await check()
  expect(compiled.count).toBeGreaterThan(10)
  compiled.count = 0
  expect(await check()).toContain('no problems')
  expect(compiled.count).toBe(0)
  writeIn(folder, 'providers/dialects/plain.yaml', plainDialect.replace('"finish": "stop"', '"finish": "length"'))
  for (let time = 0; time < 2; time++) expect(await check()).toContain("example 'e': means (from answers) differs")
  writeIn(folder, 'providers/dialects/plain.yaml', plainDialect.replace('"id": id', '"id": $eval("id")'))
  for (let time = 0; time < 2; time++) expect(await check()).toMatch(/is interpreted, .*\n.*\(1 interpreted\)/)
  writeIn(folder, 'providers/dialects/plain.yaml', plainDialect)
  expect(await check()).toContain('no problems')
})

/** Counts the functions that are made of texts, as those of mappings are. */
function countCompiled(): { count: number } {
  const counted = { count: 0 }
  vi.stubGlobal(
    'Function',
    new Proxy(Function, {
      construct(target, given) {
        counted.count++
        return Reflect.construct(target, given)
      },
    }),
  )
  onTestFinished(() => {
    vi.unstubAllGlobals()
    vi.unstubAllEnvs()
  })
  return counted
}
