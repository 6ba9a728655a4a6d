import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readSource } from '../../src/manifest/read/source.ts'
import { valuesInMemory } from '../../src/plugin/kit.ts'
import { loadPlugins } from '../../src/plugin/load.ts'
import { pluginSettings } from '../../src/plugin/settings.ts'
import { openPlugin } from '../../src/plugin/test-kit.ts'
import { folderOf, formatted } from '../manifest/files.ts'

const plugin = `export default {
  options: { properties: { max_items: { type: 'integer', maximum: 9, default: 4 }, word: { type: 'string' } } },
  renamedOptions: { most: 'max_items' },
  setup: (options) => { globalThis.optionsOfPlugin.push(options); return {} },
}`

const seen: unknown[] = []
Object.assign(globalThis, { optionsOfPlugin: seen })

async function load(options: string, text = plugin) {
  const folder = folderOf({ 'one.ts': text })
  const config = `plugins:\n  - name: one\n    options: ${options}\n`
  const source = readSource(join(folder, 'config.yaml'), config)
  const [settings] = (source.value as { plugins: Parameters<typeof pluginSettings>[0][] }).plugins.map(pluginSettings)
  if (!settings) throw new Error('no plugin')
  const silent = () => {}
  const services = {
    log: { debug: silent, info: silent, warn: silent, error: silent } as never,
    env: {},
    credentials: new Set<string>(),
    values: valuesInMemory(),
    budgets: async () => [],
    openFetch: () => ({ fetch: async () => new Response(), close: async () => {} }),
  }
  const { instances, problems } = await loadPlugins([settings], { folders: [folder], source, services })
  return { isLoaded: instances.length === 1, problems: problems.map((one) => one.severity), told: formatted(problems) }
}

test('an option with its former name reaches the plugin under its name, with a warning where it stands', async () => {
  expect(await load('{ word: x, most: 2 }')).toEqual({
    isLoaded: true,
    problems: ['warning'],
    told: ['3:25 `most` has been renamed to `max_items`: the old name will stop working in the next release'],
  })
  expect(seen.at(-1)).toEqual({ word: 'x', max_items: 2 })
  expect(await load('{ word: x, max_items: 2 }')).toEqual({ isLoaded: true, problems: [], told: [] })
  expect(seen.at(-1)).toEqual({ word: 'x', max_items: 2 })
})

test('a wrong value of an option with its former name is reported where it stands', async () => {
  const { isLoaded, told } = await load('{ word: x, most: 10 }')
  expect(isLoaded).toBe(false)
  expect(told.at(-1)).toBe('3:31 `max_items` must be at most 9, not 10')
})

test('an option with both of its names is an error', async () => {
  const { isLoaded, problems, told } = await load('{ most: 2, max_items: 3 }')
  expect({ isLoaded, problems, told }).toEqual({
    isLoaded: false,
    problems: ['error'],
    told: ['3:16 `most` is the old name of `max_items`: remove one of the two'],
  })
})

test('former names that are no names are refused', async () => {
  expect((await load('{}', plugin.replace("{ most: 'max_items' }", '{ most: 1 }'))).told).toEqual([
    expect.stringMatching(/^3:3 `renamedOptions` must be an object of names$/),
  ])
})

test('a plugin under test takes options under their former names', async () => {
  const given: unknown[] = []
  await using tested = await openPlugin(
    {
      options: { properties: { max_items: { type: 'integer' } } },
      renamedOptions: { most: 'max_items' },
      setup(options: { max_items: number; most?: number }) {
        given.push(options)
        return {}
      },
    },
    { options: { most: 3 } },
  )
  expect([given, tested.logged]).toEqual([[{ max_items: 3 }], []])
})
