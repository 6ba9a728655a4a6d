import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import { describe, expect, test } from 'vitest'

/**
 * The folders of src/ by rank, the lowest first. A file imports from its own folder and from lower ranks; folders of one
 * rank do not import each other. A folder without a rank belongs to the one around it.
 */
const ranks: readonly (readonly string[])[] = [
  ['core', 'runtime', 'simulator'],
  ['wire', 'media', 'observe', 'accounts', 'tokenizer', 'mapping/functions', 'mapping/compile/runtime'],
  ['mapping/compile', 'api', 'catalog', 'store'],
  ['mapping', 'api/chat', 'api/messages', 'api/responses', 'api/models', 'api/operations'],
  ['manifest'],
  ['access', 'money', 'plugin', 'routing', 'upstream'],
  ['call/types.ts', 'snapshot'],
  ['call/open', 'call/admission'],
  ['call/call-kind.ts'],
  ['call/targets', 'call/attempt'],
  ['call/reply'],
  ['call/plugins'],
  ['call'],
  ['call/kinds'],
  ['http'],
  ['management', 'workers/threads'],
  ['app'],
  ['workers'],
  ['app/router.ts'],
  ['cli'],
  ['main.ts'],
  ['start.js'],
]

const rankOf = new Map(ranks.flatMap((folders, rank) => folders.map((folder) => [folder, rank])))

/** Packages that only these folders import, subfolders included. */
const homes: Readonly<Record<string, string | readonly string[]>> = {
  express: 'http',
  '@fastify/busboy': 'http',
  undici: 'upstream',
  'better-sqlite3': 'store',
  'node:worker_threads': ['store', 'tokenizer', 'workers'],
  'gpt-tokenizer': 'tokenizer',
  jsonata: 'mapping',
  pino: 'observe',
  'prom-client': 'observe',
}

/** Translation is pure, values in and values out: these folders reach nothing outside the process. */
const pure = ['core', 'api', 'mapping', 'money']
const impure = /^node:(?:fs|fs\/promises|http|https|net|dns|dns\/promises|child_process|worker_threads)$/

const root = join(import.meta.dirname, '..')
const sources = ['.ts', '.js'].flatMap((ending) =>
  files('src', ending).map((path) => ({ path, text: readFileSync(join(root, 'src', path), 'utf8') })),
)

/** Paths below a folder of the project, with forward slashes. */
function files(folder: string, ending: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith(ending)).map((name) => name.replaceAll(sep, '/'))
}

/** The file itself where it has a rank, else the innermost folder that has one. */
function folderOf(path: string): string {
  let at = path
  while (!rankOf.has(at) && at !== '.') at = dirname(at)
  return at
}

/** The imports of a file, types included: packages by name, files of src/ by path. */
function importsOf({ path, text }: { path: string; text: string }): { packages: string[]; paths: string[] } {
  const specifiers = [...text.matchAll(/(?:\bfrom |\bimport |\bimport\()'([^']+)'/g)].map(([, name = '']) => name)
  const local = specifiers.filter((name) => name.startsWith('.'))
  return {
    packages: specifiers.filter((name) => !name.startsWith('.')),
    paths: local.map((name) => normalize(join(dirname(path), name)).replaceAll(sep, '/')),
  }
}

function isIn(folder: string, home: string): boolean {
  return folder === home || folder.startsWith(`${home}/`)
}

describe('imports', () => {
  test('go to lower ranks or stay in their folder', () => {
    const upwards = sources.flatMap((source) => {
      const from = folderOf(source.path)
      const own = rankOf.get(from) ?? Number.NEGATIVE_INFINITY
      return importsOf(source).paths.flatMap((path) => {
        const to = folderOf(path)
        // package.json is outside of src/.
        const isAllowed = to === from || path.startsWith('../') || (rankOf.get(to) ?? Number.POSITIVE_INFINITY) < own
        return isAllowed ? [] : [`${source.path} imports ${path}`]
      })
    })
    expect(upwards).toEqual([])
  })

  test.each(Object.entries(homes))('of %s are only in src/%s', (name, home) => {
    const allowed = [home].flat()
    const importers = sources.filter((source) =>
      importsOf(source).packages.some((imported) => imported === name || imported.startsWith(`${name}/`)),
    )
    expect(importers.length).toBeGreaterThan(0)
    expect(
      importers.map(({ path }) => path).filter((path) => !allowed.some((one) => isIn(folderOf(path), one))),
    ).toEqual([])
  })

  test.each(pure)('of src/%s reach nothing outside the process', (folder) => {
    const found = sources
      .filter(({ path }) => isIn(folderOf(path), folder))
      .filter((source) => importsOf(source).packages.some((name) => impure.test(name)))
    expect(found.map(({ path }) => path)).toEqual([])
  })
})

describe('the map in docs/architecture.md', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  /** Rows of the map: rank, folder, and contents. */
  const rows = [...page.matchAll(/^\| (\d+) \| `([\w./-]+)` \| (.+) \|$/gm)].map(([, rank, name = '', about = '']) => {
    const folder = name.replace(/\/$/, '')
    return { rank: Number(rank), folder, files: filesIn(about) }
  })

  function filesIn(text: string): string[] {
    return [...text.matchAll(/`([\w./-]+\.[tj]s)`/g)].map(([, name = '']) => name)
  }

  test('has every folder of src/ at its rank, and no other', () => {
    const mapped = rows.map(({ rank, folder }) => `${rank} ${folder}`).sort()
    expect(mapped).toEqual([...rankOf].map(([folder, rank]) => `${rank} ${folder}`).sort())
    expect([...new Set(sources.map(({ path }) => folderOf(path)))].sort()).toEqual([...rankOf.keys()].sort())
  })

  test('and all other pages name no file that does not exist', () => {
    const exists = (name: string) => existsSync(join(root, 'src', name)) || existsSync(join(root, name))
    const inRows = rows.flatMap(({ folder, files }) => files.map((name) => normalize(join(folder, name))))
    const pages = ['README.md', ...files('docs', '.md').map((name) => `docs/${name}`)]
    const elsewhere = pages.flatMap((name) => {
      const lines = readFileSync(join(root, name), 'utf8').split('\n')
      return lines.filter((line) => !/^\| \d/.test(line)).flatMap(filesIn)
    })
    expect(inRows.length + elsewhere.length).toBeGreaterThan(40)
    expect([...inRows, ...elsewhere].filter((name) => !exists(name))).toEqual([])
  })
})

test('no provider is named in the kernel: providers are data', () => {
  const slugs = files('providers', '.yaml')
    .filter((name) => !name.includes('dialects'))
    .map((name) => name.replace(/^.*\/|\.yaml$/g, ''))
  expect(slugs.length).toBeGreaterThan(10)
  const named = new RegExp(`(['"\`])(?:${slugs.join('|')})\\1`)
  const found = sources.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => (named.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  )
  expect(found).toEqual([])
})

/**
 * V8 keeps the accessors of an object literal in the old generation, and with them all that they can reach: those of a call keep the
 * whole call there until that is collected. These files make such objects once, at their load or for each mapping or account.
 */
const accessorsOnce = [
  'api/messages/known-members.ts',
  'manifest/read/chat-layer.ts',
  'manifest/read/operation-layer.ts',
  'mapping/compile/runtime/library-native.ts',
  'mapping/mapping.ts',
]

test('no object literal that is made for each call has accessors', () => {
  const found = sources.filter(({ text }) => /^ {4,}[gs]et \w+\(\w*\)[^{\n]* \{$/m.test(text))
  expect(found.map(({ path }) => path).sort()).toEqual(accessorsOnce)
})

test('no folder of src/ has more than 26 files directly in it, and src/ only the entry points', () => {
  const byFolder = Map.groupBy(sources, ({ path }) => dirname(path))
  expect([...byFolder].filter(([, inside]) => inside.length > 26).map(([folder]) => folder)).toEqual([])
  expect(byFolder.get('.')?.map(({ path }) => path)).toEqual(['main.ts', 'start.js'])
})

test('no file of logic is longer than 400 lines', () => {
  expect(sources.filter(({ text }) => text.split('\n').length > 401).map(({ path }) => path)).toEqual([])
})
