import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import type { KnownSources } from '../../src/manifest/read/folder.ts'
import { type Watch, watchSnapshot } from '../../src/snapshot/reload.ts'
import { buildSnapshot } from '../../src/snapshot/snapshot.ts'
import { eventually, limit } from '../helpers/time.ts'
import { acme, folderOf, plainDialect, writeIn } from '../manifest/files.ts'

const beta = acme.replaceAll('acme', 'beta')

/** The shipped dialects, read once. */
let shipped: KnownSources = new Map()

async function watching(files: { [path: string]: string }) {
  const folder = folderOf({ 'config.yaml': '', ...files })
  const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), {}, { known: shipped })
  if (!snapshot) throw new Error(problems.map(formatProblem).join('\n'))
  shipped = snapshot.sources
  const onSwap = vi.fn()
  const onProblems = vi.fn()
  const watch = watchSnapshot(snapshot, {}, { onSwap, onProblems })
  onTestFinished(() => watch.close())
  // The watcher looks once more when it knows all files.
  await new Promise((resolve) => setTimeout(resolve, 300))
  return { folder, watch, first: snapshot, onSwap, onProblems }
}

const usual = { 'providers/dialects/plain.yaml': plainDialect, 'providers/acme.yaml': acme }

function slugs(watch: Watch): string[] {
  return [...watch.current().providers.keys()]
}

/** Waits until something holds; how long it took, in milliseconds. */
async function until(holds: () => boolean): Promise<number> {
  const begun = performance.now()
  await eventually(() => expect(holds()).toBe(true))
  return performance.now() - begun
}

test('a new manifest is loaded within a second, and unloaded when it is removed', async () => {
  const { folder, watch, first, onSwap } = await watching(usual)
  writeIn(folder, 'providers/beta.yaml', beta)
  expect(await until(() => slugs(watch).includes('beta'))).toBeLessThan(limit(1_000))
  expect(watch.current().generation).toBe(2)
  expect(slugs({ ...watch, current: () => first })).toEqual(['acme'])
  rmSync(join(folder, 'providers/beta.yaml'))
  await until(() => !slugs(watch).includes('beta'))
  expect(onSwap).toHaveBeenCalledTimes(2)
})

test('a file with an error changes nothing and is reported until it is fixed', async () => {
  const { folder, watch, first, onSwap, onProblems } = await watching(usual)
  writeIn(folder, 'providers/acme.yaml', `${acme}tiemouts: {}\n`)
  await until(() => watch.problems().length > 0)
  expect(watch.current()).toBe(first)
  expect(watch.problems().map(formatProblem)).toEqual([
    `${join(folder, 'providers/acme.yaml')}:6:1: unknown field \`tiemouts\`; did you mean \`timeouts\`?`,
  ])
  expect(onProblems).toHaveBeenCalledTimes(1)
  writeIn(folder, 'providers/acme.yaml', acme.replace('Acme', 'Mended'))
  await until(() => watch.current().providers.get('acme')?.name === 'Mended')
  expect(watch.problems()).toEqual([])
  expect(onSwap).toHaveBeenCalledTimes(1)
})

test('a file that is put back as it was clears its problems without a new generation', async () => {
  const { folder, watch, first } = await watching(usual)
  writeIn(folder, 'providers/acme.yaml', 'slug: [')
  await until(() => watch.problems().length > 0)
  writeIn(folder, 'providers/acme.yaml', acme)
  await until(() => watch.problems().length === 0)
  expect(watch.current()).toBe(first)
})

test('files that are replaced by renaming, as editors do, and a changed dialect are seen', async () => {
  const { folder, watch } = await watching(usual)
  writeIn(folder, 'new.tmp', acme.replace('Acme', 'Renamed'))
  renameSync(join(folder, 'new.tmp'), join(folder, 'providers/acme.yaml'))
  await until(() => watch.current().providers.get('acme')?.name === 'Renamed')
  writeIn(folder, 'providers/dialects/plain.yaml', plainDialect.replace('/generate', '/changed'))
  await until(() => watch.current().providers.get('acme')?.chat?.path === '/changed')
})

test('folders that appear later are seen', async () => {
  const { folder, watch } = await watching({})
  mkdirSync(join(folder, 'catalog'))
  writeIn(folder, 'providers/dialects/plain.yaml', plainDialect)
  writeIn(folder, 'providers/acme.yaml', acme)
  await until(() => slugs(watch).includes('acme'))
  writeIn(folder, 'catalog/acme.yaml', 'provider: acme\nmodels: { m: { api: chat } }\n')
  await until(() => watch.current().catalog.list().length === 1)
})

test('settings are reloaded, their folders are watched, and those that need a restart are reported', async () => {
  const { folder, watch, onSwap } = await watching(usual)
  writeIn(folder, 'config.yaml', 'server: { port: 1 }\nfolders: { providers: other }\n')
  await until(() => watch.current().config.folders.providers[0]?.path === join(folder, 'other'))
  expect(onSwap.mock.lastCall?.[1]).toEqual(['server.port has changed: restart the router to use it'])
  writeIn(folder, 'other/dialects/plain.yaml', plainDialect)
  writeIn(folder, 'other/beta.yaml', beta)
  await until(() => slugs(watch).includes('beta'))
})

test('many changes at once make few generations', async () => {
  const { folder, watch } = await watching(usual)
  for (let count = 0; count < 20; count++) {
    const slug = `p${count}`
    writeIn(folder, `providers/${slug}.yaml`, acme.replaceAll('acme', slug))
  }
  await until(() => slugs(watch).length === 21)
  expect(watch.current().generation).toBeLessThan(5)
})

test('nothing is built after the watch is closed', async () => {
  const { folder, watch, first, onSwap } = await watching(usual)
  const other = watchSnapshot(first, {})
  onTestFinished(() => other.close())
  writeIn(folder, 'providers/beta.yaml', beta)
  await watch.close()
  // Another watch sees that change and a later one, each of which the closed one would have seen as soon.
  await until(() => slugs(other).includes('beta'))
  writeIn(folder, 'providers/gamma.yaml', acme.replaceAll('acme', 'gamma'))
  await until(() => slugs(other).includes('gamma'))
  expect(watch.current()).toBe(first)
  expect(onSwap).not.toHaveBeenCalled()
})
