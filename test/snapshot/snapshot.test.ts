import { cpSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { buildSnapshot, type Snapshot } from '../../src/snapshot/snapshot.ts'
import { cache } from '../helpers/router.ts'
import { slow } from '../helpers/slow.ts'
import { limit, processorTime } from '../helpers/time.ts'
import { acme, folderOf, plainDialect, writeIn } from '../manifest/files.ts'

const dialects = { 'providers/dialects/plain.yaml': plainDialect }
const prices = '[{ prompt_tokens_threshold: 0, input_price: 1, output_price: 2 }]'

/** The shipped dialects, read once. */
let shipped: KnownSources = new Map()

async function build(files: { [path: string]: string }, env = {}, strict = false) {
  const folder = folderOf({ 'config.yaml': '', ...files })
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), env, { known: shipped, strict })
  if (snapshot) shipped = snapshot.sources
  return { folder, snapshot, problems: problems.map((problem) => formatProblem(problem).replace(`${folder}/`, '')) }
}

test('the files of this project have no problems and are read in a moment', slow, async () => {
  const config = resolve(import.meta.dirname, '../../config.yaml')
  const { result, ms } = await processorTime(() => buildSnapshot(config, {}))
  const { snapshot, problems } = result
  expect(problems).toEqual([])
  expect(snapshot?.providers.size).toBeGreaterThan(10)
  expect(snapshot?.catalog.list().length).toBeGreaterThan(400)
  expect(ms).toBeLessThan(limit(3_000))
  const second = await buildSnapshot(config, {}, { previous: snapshot })
  expect(second.snapshot).toBe(snapshot)
})

test('while files are read again calls have their turns', async () => {
  const providers = resolve(import.meta.dirname, '../../providers')
  const catalog = resolve(import.meta.dirname, '../../catalog')
  const folder = folderOf({ 'config.yaml': `folders: { providers: providers, catalog: ${catalog} }\n` })
  cpSync(providers, join(folder, 'providers'), { recursive: true })
  const config = join(folder, 'config.yaml')
  let { snapshot } = await buildSnapshot(config, {}, { cache })
  const shares: number[] = []
  for (const change of ['a', 'b', 'c']) {
    writeIn(folder, 'providers/zz.yaml', `${acme.replace('acme', 'zz').replace('plain', 'openai-chat')}# ${change}\n`)
    const turns = longestTurn()
    const built = await buildSnapshot(config, {}, { previous: snapshot as Snapshot })
    expect(built.problems).toEqual([])
    snapshot = built.snapshot
    const { longest, all } = turns.end()
    shares.push(longest / all)
  }
  // Without turns it is nine tenths.
  expect(Math.min(...shares)).toBeLessThan(0.3)
})

/** The processor time of this thread from now on, and the most of it between two turns of the event loop. */
function longestTurn(): { end(): { longest: number; all: number } } {
  const spent = () => {
    const { user, system } = process.threadCpuUsage()
    return user + system
  }
  const first = spent()
  let [last, longest] = [first, 0]
  const look = () => {
    const now = spent()
    longest = Math.max(longest, now - last)
    last = now
  }
  let next = setImmediate(function again() {
    look()
    next = setImmediate(again)
  })
  return {
    end() {
      clearImmediate(next)
      look()
      return { longest, all: last - first }
    },
  }
}

test('folders need not exist', async () => {
  const { snapshot, problems } = await build({})
  expect(problems).toEqual([])
  expect(snapshot).toMatchObject({ generation: 1, providers: new Map() })
  expect(snapshot?.catalog.list()).toEqual([])
})

test('manifest, catalog and settings join, the settings on top', async () => {
  const { snapshot } = await build({
    ...dialects,
    'config.yaml': `providers: { acme: { base_url: "http://x.test", models: { a: { context_window: 3 }, c: { api: chat } } } }\n`,
    'providers/acme.yaml': `${acme}models: { a: { context_window: 2, max_output_tokens: 2 }, b: { api: chat } }\n`,
    'catalog/acme.yaml': `provider: acme\ndefaults: { api: chat, open_weights: true }\nmodels:\n  a: { context_window: 1, pricing: ${prices} }\n  z: { aliases: [zz] }\n`,
  })
  expect(snapshot?.providers.get('acme')?.baseUrl).toBe('http://x.test')
  expect(snapshot?.catalog.list().map(({ model }) => model)).toEqual(['a', 'z', 'b', 'c'])
  expect(snapshot?.catalog.find('acme', 'a')).toMatchObject({
    api: 'chat',
    open_weights: true,
    context_window: 3,
    max_output_tokens: 2,
    pricing: [{ input_price: 1 }],
  })
  expect(snapshot?.catalog.find('acme', 'zz')?.api).toBe('chat')
})

test('a deployment has the facts of the model that it is; one of an unknown model is a problem', async () => {
  const own = (models: string) => ({
    ...dialects,
    'config.yaml': `providers: { acme: { models: ${models} } }\n`,
    'providers/acme.yaml': `${acme}model_ids: { ignore: [case] }\n`,
    'catalog/acme.yaml': `provider: acme\nmodels: { big: { api: chat, pricing: ${prices} } }\n`,
  })
  const { snapshot, problems } = await build(own('{ mine: { is: Big } }'))
  expect(problems).toEqual([])
  expect(snapshot?.catalog.find('acme', 'MINE')).toMatchObject({ api: 'chat', pricing: [{ input_price: 1 }] })
  expect((await build(own('{ mine: { is: bog }, other: { is: mine }, mined: { is: big } }'))).problems).toEqual([
    'config.yaml:1:44: `acme` has no model `bog`; did you mean `big`?',
    'config.yaml:1:64: `mine` is itself a deployment of `bog`: name that one',
  ])
})

test('a provider without its secret is there, unconfigured; the others go on', async () => {
  const { snapshot, problems } = await build({
    ...dialects,
    'providers/acme.yaml': acme.replace('none', 'bearer, secret: "${ACME_KEY}"'),
    'providers/beta.yaml': acme.replaceAll('acme', 'beta'),
  })
  expect(problems).toEqual([])
  expect(snapshot?.providers.get('acme')?.missing).toEqual(['ACME_KEY'])
  expect(snapshot?.providers.get('beta')?.missing).toEqual([])
})

test('a switched-off provider is not there, nor are its models, even if its manifest is broken', async () => {
  const { snapshot, problems } = await build({
    ...dialects,
    'config.yaml': 'providers: { acme: { enabled: false } }\n',
    'providers/acme.yaml': 'slug: [\n',
    'catalog/acme.yaml': 'provider: acme\nmodels: { a: { api: chat } }\n',
  })
  expect(problems).toEqual([])
  expect(snapshot?.providers.size).toBe(0)
  expect(snapshot?.catalog.list()).toEqual([])
})

test('with strict files all problems of all files are reported, and there is no snapshot', async () => {
  const files = {
    ...dialects,
    'config.yaml': 'providers: { acne: { enabled: true }, acme: { models: { m: { context_window: 1 } } } }\n',
    'providers/acme.yaml': acme,
    'providers/beta.yaml': 'slug: beta\nnam: x\n',
    'providers/gamma.yml': '',
    'catalog/acme.yaml': 'provider: acme\nmodels: { a: { api: chat, aliases: [b, b] } }\n',
    'catalog/wrong.yaml': 'provider: acme\nmodels: {}\n',
  }
  const { snapshot, problems } = await build(files, {}, true)
  expect(snapshot).toBeUndefined()
  expect(problems.sort()).toEqual([
    'catalog/acme.yaml:2:40: the alias `b` already names the model `a`',
    'catalog/wrong.yaml:1:11: the models of `acme` must be in acme.yaml, not wrong.yaml',
    expect.stringMatching(/^config.yaml:1:14: there is no provider `acne` in .*; did you mean `acme`\?$/),
    'config.yaml:1:60: `m` needs `api`, such as chat',
    'providers/beta.yaml:1:1: the file needs `auth`',
    'providers/beta.yaml:1:1: the file needs `base_url`',
    'providers/beta.yaml:1:1: the file needs `name`',
    'providers/beta.yaml:2:1: unknown field `nam`; did you mean `name`?',
    'providers/gamma.yml:1:1: this file is not read: its name must end in .yaml',
  ])
})

describe('managed policies', () => {
  const catalog = (models: string) => `provider: acme\nmodels: { ${models} }\n`
  const files = (
    config: string,
    models = 'big: { api: chat, geolocation: eu }, small: { api: chat, geolocation: us }',
  ) => ({
    ...dialects,
    'config.yaml': config,
    'providers/acme.yaml': acme,
    'catalog/acme.yaml': catalog(models),
  })

  test('are in the snapshot by id, with their targets in order', async () => {
    const { snapshot, problems } = await build(
      files(
        'policies:\n  best: { description: The best, targets: [acme/small, acme/big] }\n  x@eu: { targets: [acme/big] }\n',
      ),
    )
    expect(problems).toEqual([])
    expect([...(snapshot?.config.policies.values() ?? [])]).toEqual([
      { id: 'best', description: 'The best', targets: ['acme/small', 'acme/big'] },
      { id: 'x@eu', description: '', targets: ['acme/big'] },
    ])
  })

  test('have bare ids and targets that exist, each once', async () => {
    const text =
      'policies:\n  policy/a: { targets: [acme/bog] }\n  b: { targets: [acne/big, acme/big, acme/big] }\n  best: { targets: [] }\n'
    const { snapshot, problems } = await build(files(text.replace('  best: { targets: [] }\n', '')))
    expect(snapshot).toBeUndefined()
    expect(problems).toEqual([
      expect.stringMatching(/^config.yaml:2:3: the id of a policy must .* without `policy\/`$/),
      'config.yaml:2:25: `acme/bog`: the provider `acme` has no model `bog`; did you mean `big`?',
      'config.yaml:3:18: `acne/big`: there is no provider `acne`; did you mean `acme`?',
      'config.yaml:3:38: `acme/big` is a duplicate',
    ])
    expect((await build(files(text))).problems).toEqual([
      expect.stringMatching(/^config.yaml:4:20: `policies.best.targets` /),
    ])
  })

  test('may name any model of a provider that passes on unknown models', async () => {
    const { problems } = await build({
      ...files('providers: { acme: { unknown_models: pass } }\npolicies: { a: { targets: [acme/other] } }\n'),
    })
    expect(problems).toEqual([])
  })

  test('that promise the EU have a target there; the others are left out and reported', async () => {
    const none = await build(files('policies:\n  a@eu: { targets: [acme/small] }\n'))
    expect(none.snapshot).toBeUndefined()
    expect(none.problems).toEqual(['config.yaml:2:3: `a@eu` ends in `@eu`, and no target has geolocation eu'])
    const some = await build(files('policies:\n  a@eu: { targets: [acme/small, acme/big] }\n'))
    expect(some.snapshot).toBeDefined()
    expect(some.problems).toEqual([
      'config.yaml:2:21: warning: `acme/small` is left out of `a@eu`: its geolocation is us, not eu',
    ])
  })

  test('lead to models of one API', async () => {
    const models = `{ acme: { models: { e1: { api: embedding }, d1: { api: decision }, both: { api: image, also: [chat] } } } }`
    const mixed = await build(
      files(
        `providers: ${models}\npolicies:\n  a: { targets: [acme/big, acme/e1] }\n  b: { targets: [acme/d1, acme/big] }\n`,
      ),
    )
    expect(mixed.snapshot).toBeUndefined()
    expect(mixed.problems).toEqual([
      'config.yaml:3:28: `acme/e1` has the API `embedding`, and `acme/big` has `chat`: all targets of a policy must have the same API',
      'config.yaml:4:27: `acme/big` has the API `chat`, and `acme/d1` has `decision`: all targets of a policy must have the same API',
    ])
    const same = await build(files(`providers: ${models}\npolicies:\n  a: { targets: [acme/big, acme/both] }\n`))
    expect(same.problems).toEqual([])
  })

  test('have weights and rules that mean something', async () => {
    const targets = 'targets: [{ target: acme/big, weight: 2 }, acme/small]'
    const weighted = await build(files(`policies:\n  a: { ${targets}, sort: weighted, total: 5m }\n`))
    expect(weighted.problems).toEqual([])
    expect(weighted.snapshot?.config.policies.get('a')).toMatchObject({
      targets: ['acme/big', 'acme/small'],
      weights: { 'acme/big': 2 },
      routing: { sort: 'weighted', totalMs: 300_000 },
    })
    const others = await build(
      files(
        `routing: { first_event: 0s }\npolicies:\n  a: { ${targets} }\n  b: { targets: [{ target: acme/big, weight: 0 }], sort: weighted, total: 25h }\n`,
      ),
    )
    expect(others.problems).toEqual([
      'config.yaml:3:17: warning: `a` has weights, which have no effect with `sort: order`; they need `sort: weighted`',
      'config.yaml:4:75: `total` must be more than 0 and at most 24h',
      'config.yaml:4:17: all weights are 0; one must be above 0',
      'config.yaml:1:25: `first_event` must be more than 0 and at most 24h',
    ])
  })

  test('continue a text where one of their targets can', async () => {
    const text = 'policies:\n  a: { targets: [acme/big, acme/small], on_cut: continue }\n'
    const none = await build(files(text))
    expect(none.snapshot).toBeDefined()
    expect(none.problems).toEqual([
      'config.yaml:2:49: warning: no target of `a` can continue a text of another one (trait `prefill: true`): `on_cut: continue` ends as `error`',
    ])
    const able = {
      ...files(text),
      'providers/acme.yaml': `${acme}traits: [{ match: small, facts: { prefill: true } }]\n`,
    }
    expect((await build(able)).problems).toEqual([])
  })

  test('go on without a provider that is switched off', async () => {
    const off = await build(
      files('providers: { acme: { enabled: false } }\npolicies: { a@eu: { targets: [acme/big] } }\n'),
    )
    expect(off.snapshot).toBeDefined()
    expect(off.problems).toEqual([
      'config.yaml:2:31: warning: `acme/big` is left out: the provider `acme` is switched off',
    ])
  })
})

test('a catalog without its provider is a warning only', async () => {
  const { snapshot, problems } = await build({
    'catalog/later.yaml': 'provider: later\nmodels: { a: { api: chat } }\n',
  })
  expect(problems).toEqual([
    'catalog/later.yaml:1:11: warning: there is no provider `later`: these models are not used',
  ])
  expect(snapshot?.catalog.list()).toEqual([])
})

test('after the first snapshot, the examples of changed files must pass', async () => {
  const { folder, snapshot } = await build({ ...dialects, 'providers/acme.yaml': acme })
  const config = join(folder, 'config.yaml')
  writeIn(
    folder,
    'providers/beta.yaml',
    `${acme.replaceAll('acme', 'beta')}examples: [{ name: e, answers: { said: a }, means: { finish: length } }]\n`,
  )
  const broken = await buildSnapshot(config, {}, { previous: snapshot })
  expect([...(broken.snapshot?.providers.keys() ?? [])]).toEqual(['acme'])
  expect(broken.problems).toMatchObject([
    { effect: 'unavailable: beta', line: 6, message: expect.stringContaining('expected "length", got "stop"') },
  ])
  rmSync(join(folder, 'providers/beta.yaml'))
  expect((await buildSnapshot(config, {}, { previous: snapshot })).snapshot).toBe(snapshot)
  writeIn(folder, 'providers/beta.yaml', acme.replaceAll('acme', 'beta'))
  const next = await buildSnapshot(config, {}, { previous: snapshot })
  expect(next.snapshot?.generation).toBe(2)
  const known = [...(snapshot?.sources ?? [])]
  expect(known.every(([file, source]) => next.snapshot?.sources.get(file) === source)).toBe(true)
})

test('a snapshot does not change', async () => {
  const { snapshot } = await build({})
  expect(Object.isFrozen(snapshot)).toBe(true)
})
