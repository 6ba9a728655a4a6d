import { chmodSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { directoryOf } from '../../src/app/directory.ts'
import type { RouterError } from '../../src/core/errors.ts'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { resolve } from '../../src/routing/names/resolve.ts'
import { type After, buildSnapshot, chosenFiles, type Snapshot } from '../../src/snapshot/snapshot.ts'
import { acme, folderOf, plainDialect, writeIn } from '../manifest/files.ts'

const beta = acme.replaceAll('acme', 'beta')
const price = '[{ prompt_tokens_threshold: 0, input_price: 1, output_price: 2 }]'
const catalog = (slug: string) => `provider: ${slug}\nmodels: { m: { api: chat, pricing: ${price} } }\n`
const usual = {
  'providers/dialects/plain.yaml': plainDialect,
  'providers/acme.yaml': acme,
  'providers/beta.yaml': beta,
  'catalog/acme.yaml': catalog('acme'),
  'catalog/beta.yaml': catalog('beta'),
}
const typo = (manifest: string) => `${manifest}tiemouts: {}\n`

/** The shipped dialects, read once. */
let shipped: KnownSources = new Map()

/** A folder with files, of which snapshots are built one after the other. */
function world(files: { [path: string]: string }) {
  const folder = folderOf({ 'config.yaml': '', ...files })
  const config = join(folder, 'config.yaml')
  const build = async (previous?: Snapshot, more: After = {}) => {
    const built = await buildSnapshot(config, {}, { previous, known: previous?.sources ?? shipped, ...more })
    shipped = built.snapshot?.sources ?? shipped
    const lines = built.problems.map((one) => formatProblem(one).replaceAll(`${folder}/`, ''))
    return { snapshot: built.snapshot as Snapshot, problems: built.problems, lines }
  }
  const put = (path: string, text: string) => writeIn(folder, path, text)
  const remove = (path: string) => rmSync(join(folder, path), { recursive: true })
  return { folder, build, put, remove }
}

/** The providers in use. */
const slugs = ({ providers }: Snapshot) => [...providers.keys()].sort()

/** What a call to a model ends with: its target, or its status, code and message. */
function called(snapshot: Snapshot, model: string): string {
  try {
    const [{ provider, model: found }] = resolve(model, directoryOf(snapshot)).targets
    return `${provider.slug}/${found}`
  } catch (thrown) {
    const { status, code, message } = thrown as RouterError
    return `${status} ${code}: ${message}`
  }
}

describe('at the start', () => {
  test('a broken manifest is left out: its models are unavailable by name, the others serve', async () => {
    const { build } = world({ ...usual, 'providers/acme.yaml': typo(acme) })
    const { snapshot, problems, lines } = await build()
    expect(slugs(snapshot)).toEqual(['beta'])
    expect(lines).toEqual(['providers/acme.yaml:6:1: unknown field `tiemouts`; did you mean `timeouts`?'])
    expect(problems).toMatchObject([{ kind: 'provider', line: 6, column: 1, effect: 'unavailable: acme' }])
    expect(called(snapshot, 'acme/m')).toBe(
      "503 model_unavailable: The model 'acme/m' is unavailable: the router has left out providers/acme.yaml because of an error in line 6, column 1.",
    )
    expect(called(snapshot, 'acme/other')).toContain('503 model_unavailable')
    expect(called(snapshot, 'acne/m')).toContain('404 model_not_found')
    expect(called(snapshot, 'beta/m')).toBe('beta/m')
  })

  test.each([
    ['not YAML', 'provider: [acme'],
    ['a wrong price', catalog('acme').replace('input_price: 1', 'input_price: free')],
    ['a name twice', `${catalog('acme')}models: {}\n`],
  ])(
    'without the prices of a broken catalog file (%s) its provider is unavailable, also for unknown models',
    async (_, text) => {
      const { build } = world({
        ...usual,
        'providers/acme.yaml': `${acme}unknown_models: pass\nmodels: { own: { api: chat } }\n`,
        'providers/shared.yaml': `${acme.replaceAll('acme', 'shared')}models_of: acme\n`,
        'catalog/acme.yaml': text,
      })
      const { snapshot, problems } = await build()
      expect(slugs(snapshot)).toEqual(['beta'])
      expect(problems).toMatchObject([{ kind: 'catalog', effect: 'unavailable: acme, shared' }])
      for (const model of ['acme/m', 'acme/own', 'acme/unheard-of', 'shared/m'])
        expect(called(snapshot, model)).toMatch(/^503 model_unavailable: .* catalog\/acme\.yaml .* line \d+/)
    },
  )

  test('aliases and policies of config.yaml keep a name that is unavailable, and the other targets serve', async () => {
    const policies = 'policies: { both: { targets: [acme/m, beta/m] }, gone: { targets: [acme/m] } }\n'
    const { build } = world({
      ...usual,
      'config.yaml': `providers: { acme: { timeouts: { total: 1m } } }\n${policies}`,
      'providers/acme.yaml': typo(acme),
    })
    const { snapshot, problems } = await build()
    expect(problems).toHaveLength(1)
    expect(called(snapshot, 'policy/both')).toBe('beta/m')
    expect(called(snapshot, 'policy/gone')).toMatch(/^503 model_unavailable: .*providers\/acme\.yaml/)
  })

  test('what is built on a broken manifest is unavailable too, and the problem says so', async () => {
    const { build } = world({
      ...usual,
      'providers/acme.yaml': typo(acme),
      'providers/child.yaml': `${acme.replaceAll('acme', 'child')}traits_of: acme\n`,
      'providers/grandchild.yaml': `${acme.replaceAll('acme', 'grandchild')}traits_of: child\n`,
      'providers/shared.yaml': `${acme.replaceAll('acme', 'shared')}models_of: acme\n`,
    })
    const { snapshot, problems } = await build()
    expect(slugs(snapshot)).toEqual(['beta', 'grandchild'])
    expect(problems).toMatchObject([{ kind: 'provider', effect: 'unavailable: acme, child, shared' }])
    expect(called(snapshot, 'child/m')).toMatch(/503 .*providers\/acme\.yaml/)
  })

  test('a broken dialect leaves out the manifests that are built on it, and only those', async () => {
    const { build } = world({
      ...usual,
      'providers/dialects/other.yaml': plainDialect.replace('dialect: plain', 'dialect: other'),
      'providers/dialects/plain.yaml': typo(plainDialect),
      'providers/beta.yaml': beta.replace('dialect: plain', 'dialect: other'),
    })
    const { snapshot, problems } = await build()
    expect(slugs(snapshot)).toEqual(['beta'])
    expect(problems).toMatchObject([{ kind: 'dialect', effect: 'unavailable: acme' }])
    expect(called(snapshot, 'acme/m')).toMatch(/503 .*dialects\/plain\.yaml/)
  })

  test('a broken dialect of the own folder is not replaced by the shipped one of the same name', async () => {
    const { build } = world({
      'providers/dialects/openai-chat.yaml': 'dialect: [',
      'providers/acme.yaml': acme.replace('dialect: plain', 'dialect: openai-chat'),
    })
    expect(called((await build()).snapshot, 'acme/m')).toMatch(/503 .*dialects\/openai-chat\.yaml/)
  })

  test('a copy under another name is left out alone; one whose slug nobody else has is unavailable by both names', async () => {
    const { build } = world({
      ...usual,
      'providers/copy.yaml': acme,
      'providers/new.yaml': acme.replaceAll('acme', 'neu'),
    })
    const { snapshot, problems } = await build()
    expect(slugs(snapshot)).toEqual(['acme', 'beta'])
    expect(problems.map((one) => 'effect' in one && one.effect)).toEqual(['unavailable: copy', 'unavailable: neu, new'])
    expect(called(snapshot, 'neu/m')).toContain('503')
  })

  test('a provider that is switched off is not unavailable, whatever its files say', async () => {
    const { build } = world({
      ...usual,
      'config.yaml': 'providers: { acme: { enabled: false } }\n',
      'providers/acme.yaml': 'slug: [',
      'catalog/acme.yaml': 'provider: [',
    })
    const { snapshot, problems } = await build()
    expect(problems).toMatchObject([{ kind: 'catalog', effect: 'the file is not used' }])
    expect(called(snapshot, 'acme/m')).toContain('404')
  })

  test.each<[what: string, make: (path: string) => void]>([
    ['empty', (path) => writeFileSync(path, '')],
    ['a directory', (path) => mkdirSync(path)],
    [
      'binary',
      (path) => writeFileSync(path, Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 7919) % 256))),
    ],
    ['not text', (path) => writeFileSync(path, Buffer.alloc(1_000_000))],
    ['huge', (path) => writeSparse(path, 4 * 1024 ** 3)],
    ['a device', (path) => symlinkSync('/dev/zero', path)],
    ['deeply nested', (path) => writeFileSync(path, `slug: ${'['.repeat(100_000)}`)],
    [
      'deeply nested and closed',
      (path) => writeFileSync(path, `slug: x\nexamples: ${'['.repeat(3_000)}${']'.repeat(3_000)}\n`),
    ],
    [
      'deeply nested by indentation',
      (path) => writeFileSync(path, Array.from({ length: 2_000 }, (_, level) => `${' '.repeat(level)}a:`).join('\n')),
    ],
    ['a bomb of aliases', (path) => writeFileSync(path, bomb)],
    ['a link to nothing', (path) => symlinkSync('nowhere', path)],
    ['a list', (path) => writeFileSync(path, '- 1\n- 2\n')],
    ['a text', (path) => writeFileSync(path, 'just words\n')],
    ['a prototype', (path) => writeFileSync(path, '__proto__: { slug: x }\nconstructor: 1\n')],
  ])('a file that is %s is a problem of its own', async (_, make) => {
    const { folder, build } = world(usual)
    for (const place of ['providers', 'catalog', 'providers/dialects']) {
      const path = join(folder, place, 'odd.yaml')
      make(path)
      const { snapshot, problems } = await build()
      expect(slugs(snapshot)).toEqual(['acme', 'beta'])
      expect(problems.length).toBeGreaterThan(0)
      for (const problem of problems) expect(problem).toMatchObject({ file: path, line: expect.any(Number) })
      if (place === 'providers') expect(called(snapshot, 'odd/m')).toMatch(/503 .*providers\/odd\.yaml/)
      rmSync(path, { recursive: true })
    }
  })

  test.skipIf(process.getuid?.() === 0)('a file that may not be read is a problem of its own', async () => {
    const { folder, build } = world(usual)
    chmodSync(join(folder, 'providers/acme.yaml'), 0)
    expect(called((await build()).snapshot, 'acme/m')).toContain('503')
  })

  test('a file with the ending yml is left out under its name', async () => {
    const { build, remove, put } = world(usual)
    remove('providers/acme.yaml')
    put('providers/acme.yml', acme)
    const { snapshot, problems } = await build()
    expect(problems).toMatchObject([{ kind: 'provider', effect: 'unavailable: acme' }])
    expect(called(snapshot, 'acme/m')).toMatch(/503 .*providers\/acme\.yml/)
  })

  test('another thread has the same, also where a left-out provider is switched off', async () => {
    const { folder, build } = world({
      ...usual,
      'config.yaml': 'providers: { off: { enabled: false }, acme: { timeouts: { total: 1m } } }\n',
      'providers/off.yml': acme.replaceAll('acme', 'off'),
      'providers/acme.yaml': typo(acme),
    })
    const { snapshot } = await build()
    expect(called(snapshot, 'off/m')).toContain('404')
    const config = join(folder, 'config.yaml')
    const elsewhere = await buildSnapshot(config, {}, { known: shipped, ...chosenFiles(snapshot) })
    expect(elsewhere.problems).toEqual([])
    expect(called(elsewhere.snapshot as Snapshot, 'acme/m')).toContain('503')
  })

  test('a broken config.yaml, and a folder that cannot be read, refuse the start', async () => {
    const broken = world({ ...usual, 'config.yaml': 'sever: {}\n' })
    expect((await broken.build()).snapshot).toBeUndefined()
    const settings = world({ ...usual, 'config.yaml': 'providers: { acne: { enabled: true } }\n' })
    expect((await settings.build()).snapshot).toBeUndefined()
    const noFolder = world({ 'config.yaml': '', providers: 'a file' })
    expect((await noFolder.build()).snapshot).toBeUndefined()
  })

  test('with strict files any error refuses the start', async () => {
    const { build } = world({ ...usual, 'providers/acme.yaml': typo(acme) })
    const { snapshot, lines } = await build(undefined, { strict: true })
    expect(snapshot).toBeUndefined()
    expect(lines).toEqual(['providers/acme.yaml:6:1: unknown field `tiemouts`; did you mean `timeouts`?'])
  })
})

describe('while it serves', () => {
  test('a broken edit keeps the previous version of that file, and other changes are loaded', async () => {
    const { build, put } = world(usual)
    const first = (await build()).snapshot
    put('providers/acme.yaml', typo(acme))
    put('catalog/beta.yaml', 'provider: [')
    put('providers/gamma.yaml', acme.replaceAll('acme', 'gamma'))
    const { snapshot: second, problems } = await build(first)
    expect(slugs(second)).toEqual(['acme', 'beta', 'gamma'])
    expect(second.providers.get('acme')).toBe(first.providers.get('acme'))
    expect(second.catalog.find('beta', 'm')).toMatchObject({ pricing: [{ input_price: 1 }] })
    expect(problems).toMatchObject([
      { kind: 'catalog', effect: 'the previous version stays in use' },
      { kind: 'provider', effect: 'the previous version stays in use' },
    ])
    expect((await build(second)).snapshot).toBe(second)
    put('providers/acme.yaml', acme.replace('Acme', 'Fixed'))
    put('catalog/beta.yaml', catalog('beta'))
    const third = await build(second)
    expect(third.problems).toEqual([])
    expect(third.snapshot.providers.get('acme')?.name).toBe('Fixed')
  })

  test('a broken edit alone is no new generation', async () => {
    const { build, put } = world(usual)
    const first = (await build()).snapshot
    put('providers/acme.yaml', typo(acme))
    const { snapshot, problems } = await build(first)
    expect(snapshot).toBe(first)
    expect(problems).toHaveLength(1)
  })

  test('a file that was left out serves when it is fixed, and is unknown when it is removed', async () => {
    const { build, put, remove } = world({ ...usual, 'providers/acme.yaml': typo(acme) })
    const first = (await build()).snapshot
    put('providers/acme.yaml', acme)
    expect(called((await build(first)).snapshot, 'acme/m')).toBe('acme/m')
    remove('providers/acme.yaml')
    remove('catalog/acme.yaml')
    const { snapshot, problems } = await build(first)
    expect(problems).toEqual([])
    expect(called(snapshot, 'acme/m')).toContain('404')
  })

  test('a new catalog file with an error takes nothing from a provider that served without it', async () => {
    const { build, put, remove } = world({ ...usual, 'providers/acme.yaml': `${acme}models: { own: { api: chat } }\n` })
    remove('catalog/acme.yaml')
    const first = (await build()).snapshot
    put('catalog/acme.yaml', 'provider: [')
    const { snapshot, problems } = await build(first)
    expect(called(snapshot, 'acme/own')).toBe('acme/own')
    expect(problems).toMatchObject([{ kind: 'catalog', effect: 'the file is not used' }])
  })

  test('a change that breaks a file which did not change is the one that is held back', async () => {
    const child = `${acme.replaceAll('acme', 'child')}traits_of: acme\n`
    const { build, put, remove } = world({ ...usual, 'providers/child.yaml': child })
    const first = (await build()).snapshot
    remove('providers/acme.yaml')
    put('providers/beta.yaml', beta.replace('Acme', 'Changed'))
    const { snapshot, problems } = await build(first)
    expect(slugs(snapshot)).toEqual(['acme', 'beta', 'child'])
    expect(snapshot.providers.get('beta')?.name).toBe('Changed')
    expect(problems).toMatchObject([
      {
        kind: 'provider',
        file: expect.stringContaining('child.yaml'),
        effect: 'the previous version of providers/acme.yaml stays in use',
      },
    ])
  })

  test('an example that fails keeps the previous version, of the file that changed', async () => {
    const example = (finish: string) => `examples: [{ name: e, answers: { said: a }, means: { finish: ${finish} } }]\n`
    const { build, put } = world({ ...usual, 'providers/acme.yaml': acme + example('stop') })
    const first = (await build()).snapshot
    put('providers/acme.yaml', acme + example('length'))
    put('providers/beta.yaml', beta.replace('Acme', 'Changed'))
    const second = await build(first)
    expect(second.snapshot.providers.get('acme')).toBe(first.providers.get('acme'))
    expect(second.snapshot.providers.get('beta')?.name).toBe('Changed')
    expect(second.problems).toMatchObject([{ message: expect.stringContaining('expected "length", got "stop"') }])
  })

  test('a broken config.yaml keeps the previous settings, and other changes are loaded', async () => {
    const { build, put } = world(usual)
    const first = (await build()).snapshot
    for (const text of ['sever: {}\n', 'policies: { a: { targets: [acme/unheard-of] } }\n']) {
      put('config.yaml', text)
      put('providers/gamma.yaml', acme.replaceAll('acme', 'gamma'))
      const { snapshot, problems } = await build(first)
      expect(slugs(snapshot)).toEqual(['acme', 'beta', 'gamma'])
      expect(snapshot.config).toBe(first.config)
      expect(problems).toMatchObject([{ kind: 'config', effect: 'the previous settings stay in use' }])
    }
  })

  test('with strict files any error holds back every change', async () => {
    const { build, put } = world(usual)
    const first = (await build()).snapshot
    put('providers/acme.yaml', typo(acme))
    put('providers/gamma.yaml', acme.replaceAll('acme', 'gamma'))
    expect((await build(first, { strict: true })).snapshot).toBeUndefined()
  })
})

const bomb = `a: &a [x, x, x, x, x, x, x, x, x]\n${[...'bcdefghi'].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[index]}`).join(', ')}]`).join('\n')}\n`

/** Writes a file of a size that takes no space on the disk. */
function writeSparse(path: string, bytes: number): void {
  writeFileSync(path, 'slug: x\n')
  truncateSync(path, bytes)
}
