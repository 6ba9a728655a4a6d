import { rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect } from 'vitest'
import { formatProblem, isFileProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { type Built, buildSnapshot, chosenFiles, type Snapshot } from '../../src/snapshot/snapshot.ts'
import { cache } from '../helpers/router.ts'
import { testInRuns } from '../helpers/slow.ts'
import { folderOf, plainDialect, writeIn } from '../manifest/files.ts'

/** Every file, and what it may become; undefined is none. The first is what it is at the beginning. */
const versions: { [path: string]: readonly (string | undefined)[] } = {
  'config.yaml': [
    '',
    'providers: { acme: { base_url: "http://one.test" } }\n',
    'providers: { acme: { base_url: "http://${HOST}" }, beta: { enabled: false } }\n',
    'providers: { acme: { timeouts: { total: 7s } }, beta: { unknown_models: pass } }\n',
    'providers: { acme: { headers: { x-more: "${MORE:-none}" }, models: { c: { api: chat } } } }\n',
    'providers: { acme: { secret: "${SECRET}" }, beta: { models: { z: { api: chat } } } }\n',
    'providers: { acme: { limits: { concurrent: 3 } } }\n',
  ],
  'providers/dialects/plain.yaml': [
    plainDialect,
    plainDialect.replace('/generate', '/v2/generate'),
    `${plainDialect}headers: { x-dialect: "1" }\n`,
    `${plainDialect}exports: '$twice := function($x) { $x & $x };'\n`,
    plainDialect.replace('END', 'END }'),
  ],
  'providers/dialects/other.yaml': [
    plainDialect.replace('plain', 'other'),
    plainDialect.replace('plain', 'other').replace('"limit"', '"most"'),
    undefined,
  ],
  'providers/acme.yaml': [
    manifest('acme', 'traits: [{ match: "a*", facts: { fast: true } }]\nmodels: { a: { api: chat } }\n'),
    manifest('acme', 'traits: [{ match: "a*", facts: { slow: true } }]\nmodels: { a: { api: chat, tools: true } }\n'),
    manifest('acme', 'models: { b: { api: chat } }\nmodels_of: gamma\n'),
    manifest('acme', 'headers: { x-host: "${HOST}" }\n').replace('scheme: none', 'scheme: bearer, secret: "${SECRET}"'),
    undefined,
  ],
  'providers/beta.yaml': [
    manifest('beta', 'traits_of: acme\nmodels_of: acme\n'),
    manifest('beta', 'variants: [{ match: "z*", dialect: other, traits_of: acme }]\n'),
    manifest('beta', 'define: "$both := function($x) { $twice($x) };"\n'),
    manifest('beta', 'models_of: nobody\n'),
  ],
  'providers/gamma.yaml': [
    manifest('gamma', 'models: { g: { api: chat } }\n'),
    manifest('gamma', 'models: { g: { api: chat, vision: true } }\nunknown_models: pass\n'),
    undefined,
  ],
  'catalog/gamma.yaml': [undefined, 'provider: gamma\nmodels: { h: { api: chat, context_window: 9 } }\n'],
}

function manifest(slug: string, more: string): string {
  return `slug: ${slug}\nname: ${slug}\nbase_url: http://127.0.0.1:9/v1\nauth: { scheme: none }\ndialect: plain\n${more}`
}

const change = fc
  .constantFrom(...Object.keys(versions))
  .chain((path) => fc.record({ path: fc.constant(path), text: fc.constantFrom(...(versions[path] ?? [])) }))
const environment = fc.record(
  { HOST: fc.constantFrom('a.test', 'b.test'), MORE: fc.constant('more'), SECRET: fc.constantFrom('one', 'two') },
  { requiredKeys: [] },
)

const strict = true

testInRuns('what is made of changed files is what is made of them anew', { fast: 12, slow: 60 }, async (numRuns) => {
  const { snapshot: none } = await buildSnapshot(join(folderOf({ 'config.yaml': '' }), 'config.yaml'), {}, { cache })
  const shipped: KnownSources = none?.sources ?? new Map()
  let [swapped, refused] = [0, 0]
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ changes: fc.array(change, { maxLength: 3 }), env: environment }), size),
      async (steps) => {
        const folder = folderOf({})
        const put = (path: string, text: string | undefined) =>
          text === undefined ? rmSync(join(folder, path), { force: true }) : writeIn(folder, path, text)
        for (const [path, [text]] of Object.entries(versions)) put(path, text)
        const config = join(folder, 'config.yaml')
        let { snapshot } = await buildSnapshot(config, {}, { known: shipped, strict })
        for (const { changes, env } of steps) {
          for (const { path, text } of changes) put(path, text)
          const built = await buildSnapshot(config, env, { previous: snapshot as Snapshot, strict })
          // Without a change of files the environment is not looked at.
          if (built.snapshot === snapshot) continue
          expect(contents(built)).toEqual(contents(await buildSnapshot(config, env, { known: shipped, strict })))
          if (built.snapshot) swapped++
          else refused++
          snapshot = built.snapshot ?? snapshot
        }
      },
    ),
    { numRuns },
  )
  expect(Math.min(swapped, refused)).toBeGreaterThan(numRuns / 3)
})

const size = { minLength: 1, maxLength: 5 }

/** What two snapshots of the same files have in common: mappings and patterns are the texts that they were made of. */
function contents({ snapshot, problems }: Built): unknown {
  const text = JSON.stringify(
    { providers: [...(snapshot?.providers ?? [])], models: snapshot?.catalog.list() },
    (_, value) => {
      if (value instanceof Map || value instanceof Set) return [...value]
      if (typeof value === 'function') return undefined
      return typeof value?.run === 'function' ? value.text : value
    },
  )
  return { problems: problems.map(formatProblem), contents: JSON.parse(text) }
}

/** Changes with mistakes: a file is cut, loses a character, or has lines that do not belong there. */
const mistake = fc
  .record({ path: fc.constantFrom(...Object.keys(versions)), at: fc.double({ min: 0, max: 1, noNaN: true }) })
  .chain(({ path, at }) =>
    fc.record({
      path: fc.constant(path),
      text: fc.constantFrom(...(versions[path] ?? [])).chain((text = '') => {
        const place = Math.floor(at * text.length)
        const [before, after] = [text.slice(0, place), text.slice(place)]
        return fc.constantFrom(before, before + after.slice(1), `${before}\nodd: [1]\n${after}`, `${before}}${after}`)
      }),
    }),
  )

testInRuns('another thread makes of the chosen files what this one has', { fast: 12, slow: 60 }, async (numRuns) => {
  const { snapshot: none } = await buildSnapshot(join(folderOf({ 'config.yaml': '' }), 'config.yaml'), {}, { cache })
  const shipped: KnownSources = none?.sources ?? new Map()
  let held = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.oneof(change, mistake), { minLength: 1, maxLength: 3 }), size),
      async (steps) => {
        const folder = folderOf({})
        for (const [path, [text]] of Object.entries(versions)) if (text !== undefined) writeIn(folder, path, text)
        const config = join(folder, 'config.yaml')
        let { snapshot } = await buildSnapshot(config, {}, { known: shipped })
        for (const changes of steps) {
          for (const { path, text } of changes)
            if (text === undefined) rmSync(join(folder, path), { force: true })
            else writeIn(folder, path, text)
          const built = await buildSnapshot(config, {}, { previous: snapshot as Snapshot })
          if (built.problems.some(isFileProblem)) held++
          if (!built.snapshot) continue
          snapshot = built.snapshot
          const elsewhere = await buildSnapshot(config, {}, { known: shipped, ...chosenFiles(snapshot) })
          expect(contents({ ...elsewhere, problems: [] })).toEqual(contents({ snapshot, problems: [] }))
          expect(elsewhere.snapshot?.unavailable).toEqual(snapshot.unavailable)
        }
      },
    ),
    { numRuns },
  )
  expect(held).toBeGreaterThan(numRuns / 3)
})
