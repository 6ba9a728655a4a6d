import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatProblem } from '../../src/manifest/check/problem.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { valuesInMemory } from '../../src/plugin/kit.ts'
import { loadPlugins } from '../../src/plugin/load.ts'
import { pluginSettings } from '../../src/plugin/settings.ts'
import { shippedFolder } from '../../src/snapshot/folders.ts'
import { pluginFolders } from '../../src/snapshot/load-plugins.ts'
import { folderOf } from '../manifest/files.ts'

const logged: unknown[] = []
const write = (facts: object, message: string) => void logged.push({ ...facts, message })
const services = {
  log: { debug: write, info: write, warn: write, error: write } as never,
  env: {},
  credentials: new Set<string>(),
  values: valuesInMemory(),
  budgets: async () => [],
  openFetch: () => ({ fetch: async () => new Response(), close: async () => {} }),
}

async function load(files: Record<string, string>, folders = ['plugins'], name = 'one') {
  const folder = folderOf(files)
  const source = readSource(join(folder, 'config.yaml'), `plugins: [{ name: ${name} }]`)
  const places = folders.map((one) => join(folder, one))
  const loaded = await loadPlugins([pluginSettings({ name })], { folders: places, source, services, maxMs: 50 })
  return { ...loaded, told: loaded.problems.map(formatProblem).map((line) => line.replaceAll(`${folder}/`, '')) }
}

test('a plugin that is not loaded or set up in time is told of, and what is ready later is ended', async () => {
  expect((await load({ 'plugins/one.ts': 'await new Promise(() => {})\nexport default {}' })).told).toEqual([
    'plugins/one.ts:1:1: it was not loaded within 50 ms',
  ])
  const late = `export default {
    async setup() {
      await new Promise((resolve) => setTimeout(resolve, 150))
      return { async [Symbol.asyncDispose]() { globalThis.endedLate() } }
    },
  }`
  const { promise, resolve } = Promise.withResolvers<void>()
  Object.assign(globalThis, { endedLate: resolve })
  expect((await load({ 'plugins/one.ts': late })).told).toEqual([
    'plugins/one.ts:1:1: `setup`: it was not set up within 50 ms',
  ])
  await promise
})

test('a plugin that does not end, or fails to, holds nothing up', async () => {
  for (const end of [
    '() => new Promise(() => {})',
    'async () => { throw new Error("no") }',
    '() => { throw new Error("no") }',
  ]) {
    const { instances, told } = await load({
      'plugins/one.ts': `export default { setup: () => ({ [Symbol.asyncDispose]: ${end} }) }`,
    })
    expect(told).toEqual([])
    await instances[0]?.close()
    expect(logged.at(-1)).toMatchObject({ plugin: 'one', message: 'the plugin failed to end' })
  }
})

test('a plugin of the own folder goes before one of the same name in the next', async () => {
  const says = (word: string) => `export default { setup: () => ({ functions: { word: () => '${word}' } }) }`
  const files = { 'own/one.ts': says('own'), 'shipped/one.ts': says('shipped'), 'shipped/two.ts': says('shipped') }
  const word = async (name: string) => {
    const { instances } = await load(files, ['own', 'shipped'], name)
    return instances[0]?.hooks.functions?.word?.()
  }
  expect([await word('one'), await word('two')]).toEqual(['own', 'shipped'])
  expect((await load(files, ['own', 'shipped'], 'tow')).told).toEqual([
    'config.yaml:1:19: there is no plugin `tow`: neither tow.ts nor tow/index.ts in own; did you mean `two`?',
  ])
  const shipped = shippedFolder('plugins')
  const foldersOfPlugins = (...paths: string[]) =>
    pluginFolders({ plugins: paths.map((path) => ({ path, isShipped: false })), providers: [], catalog: [] })
  expect(foldersOfPlugins('/mine', '/ours')).toEqual(['/mine', '/ours', shipped])
  expect(foldersOfPlugins(shipped, '/mine')).toEqual([shipped, '/mine'])
})
