import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Out } from '../../src/cli/command.ts'
import { ran } from '../cli/running.ts'
import { acme, folderOf, plainDialect } from '../manifest/files.ts'
import { guidePages } from './guides.ts'

const root = join(import.meta.dirname, '../..')
const docs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'CONTRIBUTING.md', 'examples/README.md', ...docs.map((name) => `docs/${name}`)]

/** What stands in commands for something of the reader's own. */
const placeholders: { [word: string]: string } = {
  '<name>': 'default',
  '<slug>': 'acme',
  '<manifest>': 'hush',
  '[name…]': 'default',
  'on|off': 'on',
}

/** Commands that say by their exit code what they found: here there is a bill without calls, and no other gateway. */
const finding = new Set(['ledger compare', 'compare --against'])

type Command = (args: string[], out: Out) => Promise<number>

/** Every command of a page without its prefix, with words in place of placeholders. */
function commandsIn(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  const found = text.matchAll(/npm run (?:-s )?inference-router -- ((?:(?! > )[^`\n#])*)/g)
  return [...found].flatMap(([, command = '']) => {
    const words = Object.entries(placeholders).reduce((left, [from, to]) => left.replaceAll(from, to), command)
    return words.startsWith('<') || words.trim() === '' ? [] : [words.trim()]
  })
}

/** Blocks of YAML and JSON of the tutorial, which its commands are about. */
function tutorial(): { [path: string]: string } {
  const text = readFileSync(join(root, 'docs/add-a-provider.md'), 'utf8')
  const manifests = [...text.matchAll(/^```yaml\n(?:#.*\n)?(slug: (\w+)\n[\s\S]*?)^```$/gm)]
  const hello = /^```json\n(\{ "messages".*\n)```$/m.exec(text)?.[1] ?? ''
  return {
    ...Object.fromEntries(manifests.map(([, manifest = '', slug]) => [`providers/${slug}.yaml`, manifest])),
    'hello.json': hello,
    'body.json': hello,
  }
}

const plugin =
  "import { definePlugin } from 'inference-router/plugin'\nexport default definePlugin({ setup: () => ({}) })\n"
const working = process.cwd()

afterAll(() => process.chdir(working))

const commands = [...new Set(pages.flatMap(commandsIn))]

test('the documentation writes every command as it works in a checkout', () => {
  expect(commands.length).toBeGreaterThan(20)
  const generated = ['docs/manifest.md', 'docs/providers.md', 'docs/architecture.md']
  const bare = [...pages, ...guidePages()]
    .filter((page) => !generated.includes(page))
    .flatMap((page) => readFileSync(join(root, page), 'utf8').match(/(?<=^|`)inference-router [a-z]+ .*/gm) ?? [])
  expect(bare).toEqual([])
})

test('every command of the documentation works', { timeout: 120_000 }, async () => {
  const folder = folderOf({
    'config.yaml':
      'folders: { providers: [./providers, shipped], catalog: [./catalog, shipped] }\nproviders: { demo: {} }\nplugins: [{ name: polite }, { name: guard-prompt }]\n',
    'providers/dialects/plain.yaml': plainDialect,
    'providers/acme.yaml': acme,
    'plugins/polite.ts': plugin,
    'bill.csv': 'model,cost\ngpt-5,1.00\n',
    'litellm/config.yaml': 'model_list: [{ model_name: echo, litellm_params: { model: demo/echo } }]\n',
    'litellm.sql': '',
    'assistant.json': '{ "provider": "demo", "override_params": { "model": "echo" } }',
    'bifrost/config.json': '{ "providers": { "demo": { "keys": [] } } }',
    ...tutorial(),
  })
  process.chdir(folder)
  const { run: org } = await import('../../src/cli/org.ts')
  expect(await ran(org, 'create', 'default')).toMatchObject({ code: 0 })
  const { run: keys } = await import('../../src/cli/key.ts')
  const { id: key } = JSON.parse((await ran(keys, 'create', 'of-the-reader', '--json')).stdout)
  for (const command of commands) {
    const [name = '', ...args] = command.split(/\s+/)
    const { run } = (await import(fileOf(name))) as { run: Command }
    const inProgram = args
      .map((word) => word.replace(/^'(.*)'$/, '$1'))
      .map((word) => (word.startsWith('examples/') ? join(root, word) : word === '<id>' ? key : word))
    const { code, stderr } = await ran(run, ...inProgram)
    if (finding.has(`${name} ${args[0]}`)) expect([command, code, stderr]).not.toEqual([command, 2, stderr])
    else expect([command, code, code === 0 ? '' : stderr]).toEqual([command, 0, ''])
  }
})

function fileOf(command: string): string {
  const places: { [name: string]: string } = {
    ledger: 'src/cli/ledger/ledger.ts',
    init: 'src/cli/init/init.ts',
    backup: 'src/cli/backup/backup.ts',
    restore: 'src/cli/backup/restore.ts',
    upgrade: 'src/cli/upgrade/upgrade.ts',
    import: 'src/cli/import/import.ts',
    compare: 'src/cli/compare/compare.ts',
  }
  return join(root, places[command] ?? `src/cli/${command}.ts`)
}
