import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownFolder } from '../snapshot/folders.ts'
import { checkTypes, pluginCompilerOptions } from './check-types.ts'
import {
  type Args,
  actionNamed,
  CommandError,
  type Out,
  parseArguments,
  problemLine,
  relativePath,
  runCommand,
  UsageError,
} from './command.ts'
import { configOf } from './read-config.ts'

/** The text of `inference-router plugin --help`. */
export const help = `Manages plugins: TypeScript files that the router runs; see docs/plugins.md.

  inference-router plugin new <name> [--config FILE]
  inference-router plugin test [name…] [--config FILE]

  new             writes a starter plugin and its test to the folder of plugins (folders.plugins)
  test            checks the types of these plugins, or of all, if TypeScript is installed with them or with the
                  router, and runs their tests: the files <name>.test.ts
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
`

/** Runs `inference-router plugin …`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const [name, ...rest] = args
    const action = actionNamed(actions, name)
    const options = { config: { type: 'string' } } as const
    const parsed = parseArguments(rest, { options, positionals: Number.POSITIVE_INFINITY })
    return await action(parsed, await folderOf(parsed.text('config')), out)
  })
}

type Action = (args: Args, folder: string, out: Out) => number | Promise<number>

const actions: { readonly [name: string]: Action } = {
  new({ positionals: [name, ...more] }, folder, { stdout }) {
    if (!name || more.length > 0) throw new UsageError('name the plugin: plugin new <name>')
    if (!/^[a-z0-9][a-z0-9-]*$/.test(name))
      throw new UsageError(`'${name}' cannot be the name of a plugin: write small letters, digits and -`)
    const taken = [`${name}.ts`, join(name, 'index.ts'), `${name}.test.ts`].find((file) =>
      existsSync(join(folder, file)),
    )
    if (taken !== undefined) throw new CommandError(`${relativePath(join(folder, taken))} already exists.`)
    mkdirSync(folder, { recursive: true })
    const files = [
      [`${name}.ts`, pluginText(name)],
      [`${name}.test.ts`, testText(name)],
      ...(hasTypes(folder) ? [] : [['tsconfig.json', tsconfigText()] as const]),
    ] as const
    for (const [file, text] of files) writeFileSync(join(folder, file), text, { flag: 'wx' })
    stdout(`${files.map(([file]) => `${relativePath(join(folder, file))}\n`).join('')}
To use it, add it to \`plugins\` in the configuration, which a running router reloads by itself:

  plugins:
    - { name: ${name}, options: { word: plum } }

To test it: inference-router plugin test ${name}
`)
    return 0
  },
  async test({ positionals: names }, folder, { stdout, stderr }) {
    const files = (names.length === 0 ? ['*'] : names).map((name) => join(folder, `${name}.test.ts`))
    const absent = files.find((file, index) => names[index] !== undefined && !existsSync(file))
    if (absent !== undefined) throw new CommandError(`There is no file ${relativePath(absent)}.`)
    const { problems, unchecked } = await checkTypes(filesOf(names, folder), folder)
    for (const problem of problems) stdout(problemLine(problem))
    if (unchecked !== undefined) stderr(`The types of plugins were not checked: ${unchecked}.\n`)
    const child = spawn(process.execPath, ['--import', register, '--test', ...files], { stdio: 'inherit' })
    const { promise, resolve } = Promise.withResolvers<number>()
    child.on('error', (error) => {
      stderr(`${error.message}\n`)
      resolve(1)
    })
    child.on('exit', (code) => resolve(code ?? 1))
    const failed = await promise
    return problems.length > 0 ? 1 : failed
  },
}

/** Returns the files of plugins, and of their tests, in a folder; with names, those of these plugins. */
function filesOf(names: readonly string[], folder: string): string[] {
  const all = existsSync(folder) ? readdirSync(folder) : []
  const plugins = names.length > 0 ? names : all.map((file) => file.replace(/(\.test)?\.ts$/, ''))
  return [...new Set(plugins)]
    .flatMap((name) => [`${name}.ts`, join(name, 'index.ts'), `${name}.test.ts`])
    .map((file) => join(folder, file))
    .filter((file) => existsSync(file))
}

/** Makes `inference-router/plugin` and the test kit known, wherever the folder is. */
const register = new URL('../plugin/register.ts', import.meta.url).href

async function folderOf(configPath: string | undefined): Promise<string> {
  const { folders } = await configOf(configPath)
  const folder = ownFolder(folders.plugins)
  if (folder !== undefined) return folder
  throw new CommandError('`folders.plugins` names no folder of yours: write `plugins: [./plugins, shipped]`.')
}

/** Checks whether an editor finds the types of the router from a folder. */
function hasTypes(folder: string): boolean {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, 'tsconfig.json')) || join(at, '/') === root) return true
    if (at === dirname(at)) return false
  }
}

/** Returns the text of a plugin to begin with. */
export function pluginText(name: string): string {
  return `import { definePlugin, Refusal } from 'inference-router/plugin'

/** The options described below. */
type Options = { word: string }

export default definePlugin<Options>({
  description: 'Refuses prompts that contain a word, and writes the word in capitals in replies',
  options: {
    properties: { word: { type: 'string', minLength: 1 } },
    required: ['word'],
  },
  setup({ word }, { log }) {
    log.debug({ word }, '${name} is set up')
    return {
      chat(request) {
        const texts = request.chat.messages.flatMap(({ parts }) => parts).map((part) => ('text' in part ? part.text : ''))
        if (texts.some((text) => text?.includes(word))) throw new Refusal(403, \`We do not speak of \${word}s.\`)
        return undefined
      },
      reply(reply) {
        if (!('chat' in reply)) return undefined
        const parts = reply.chat.parts.map((part) =>
          part.type === 'text' ? { ...part, text: part.text.replaceAll(word, word.toUpperCase()) } : part,
        )
        return { ...reply, chat: { ...reply.chat, parts } }
      },
    }
  },
})
`
}

/** Returns the test of a new plugin. */
function testText(name: string): string {
  return `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPlugin } from 'inference-router/plugin/test'
import plugin from './${name}.ts'

const options = { word: 'plum' }

test('refuses a prompt with the word', async () => {
  await using tested = await openPlugin(plugin, { options })
  const { refusal, forwarded } = await tested.call({ text: 'A plum, please.' })
  assert.equal(refusal?.status, 403)
  assert.equal(forwarded, undefined)
})

test('writes the word in capitals in replies', async () => {
  await using tested = await openPlugin(plugin, { options })
  const { text } = await tested.call({ text: 'What is blue?', answer: 'This plum.' })
  assert.equal(text, 'This PLUM.')
})
`
}

/** Returns the settings with which editors find the types of the router, for a folder that is elsewhere. */
export function tsconfigText(): string {
  return `${JSON.stringify({ compilerOptions: pluginCompilerOptions() }, null, 2)}\n`
}
