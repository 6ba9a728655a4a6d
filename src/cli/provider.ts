import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { hasErrors } from '../manifest/check/problem.ts'
import { readSource } from '../manifest/read/source.ts'
import { ownFolder, shippedDialects, shippedFolder } from '../snapshot/folders.ts'
import { run as check } from './check.ts'
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
import { loadOne } from './load-one.ts'
import { type ManifestFacts, manifestText } from './manifest-text.ts'
import { configOf } from './read-config.ts'

/** The text of `inference-router provider --help`. */
export const help = `Writes a manifest to begin with: providers/<slug>.yaml, for a provider that speaks a known format.

  inference-router provider new <slug> [options]

  --url URL            the address that paths such as /chat/completions follow: https://api.example.com/v1
  --dialect NAME       the wire format, a file of providers/dialects (default: openai-chat)
  --auth FORM          bearer (the default), header:NAME, query:NAME or none
  --secret-from NAME   the environment variable that has the key (default: <SLUG>_API_KEY); never the key itself
  --model ID           a model, by the provider's own name
  --input-price USD    price of a million tokens of the prompt, --output-price USD of a million tokens of output
  --context-window N   the most tokens of prompt and output together; --max-output N: of output
  --name NAME          the name for people (default: the slug)
  --config FILE        the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)

On a terminal, whatever is not given is asked for. The file is checked before it is written, and never replaces another one.
`

const text = { type: 'string' } as const
const options = {
  ...{ url: text, dialect: text, auth: text, 'secret-from': text, model: text, 'input-price': text },
  ...{ 'output-price': text, 'context-window': text, 'max-output': text, name: text, config: text },
} as const

/** Asks the user; an empty answer is the default. */
export type Ask = (question: string, preset: string | undefined) => Promise<string>

/** Runs `inference-router provider …`. Returns the exit code. */
export function run(args: string[], out: Out, ask = terminalAsk(out)): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const [name, ...rest] = args
    const action = actionNamed({ new: createManifest }, name)
    return await action(parseArguments(rest, { options, positionals: 1 }), out, ask)
  })
}

async function createManifest(args: Args, out: Out, ask: Ask | undefined): Promise<number> {
  const [slug] = args.positionals
  if (!slug) throw new UsageError('name the provider: provider new <slug>')
  if (!/^[a-z0-9][a-z0-9-]*$/.test(slug))
    throw new UsageError(`'${slug}' cannot be a slug: write small letters, digits and -`)
  const config = await configOf(args.text('config'))
  const folder = ownFolder(config.folders.providers)
  if (folder === undefined)
    throw new CommandError(
      '`folders.providers` names only shipped files: add a folder of your own, as in [./providers, shipped].',
    )
  const file = join(folder, `${slug}.yaml`)
  if (existsSync(file)) throw new CommandError(`${relativePath(file)} already exists.`)
  const written = manifestText(await factsFrom(slug, { args, ask }), schemaFor(folder))
  const { loaded, problems } = await loadOne(readSource(file, written), config, process.env)
  if (!loaded || hasErrors(problems)) {
    for (const problem of problems) out.stderr(problemLine(problem))
    throw new CommandError(`Nothing was written.`)
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, written, { flag: 'wx' })
  out.stdout(`${relativePath(file)}\n\n${written}\n`)
  const { missing } = loaded.provider
  const code = await check([file, ...(args.text('config') ? ['--config', config.path] : [])], out)
  const first = missing.length > 0 ? `Set ${missing.join(', ')}. ` : ''
  out.stdout(`\n${first}Try it: inference-router check ${relativePath(file)} --call\n`)
  return code
}

/** Returns the path of the schema as the manifest names it for editors, where that is near. */
function schemaFor(folder: string): string | undefined {
  return folder === shippedFolder('providers') ? '../schemas/provider.schema.json' : undefined
}

/** Asks for a fact until it is right; without a terminal a fact that is missing or wrong is an error. */
type Facts = { args: Args; ask: Ask | undefined }

/** A fact: its option, the question, what is taken without an answer, and the reader, which throws an Error that says what to write. */
type Fact<Value> = { option: string; question: string; preset?: string; read(text: string): Value }

async function factsFrom(slug: string, facts: Facts): Promise<ManifestFacts> {
  const of = <Value>(fact: Fact<Value>) => factOf(fact, facts)
  const url = await of({ option: 'url', question: 'Address (base URL)', read: addressFrom })
  const dialect = await of({ option: 'dialect', question: 'Wire format', preset: 'openai-chat', read: dialectFrom })
  const auth = await of({ option: 'auth', question: 'Authentication', preset: 'bearer', read: authFrom })
  const preset = `${slug
    .toUpperCase()
    .replaceAll('-', '_')
    .replace(/^(?=\d)/, '_')}_API_KEY`
  const question = 'Environment variable with the key'
  const variable =
    auth.scheme === 'none' ? '' : await of({ option: 'secret-from', question, preset, read: variableFrom })
  const model = await of({ option: 'model', question: 'Model', read: modelFrom })
  const price = (kind: string) => `Price of a million ${kind} tokens, USD`
  const input = await of({ option: 'input-price', question: price('input'), read: priceFrom })
  const output = await of({ option: 'output-price', question: price('output'), read: priceFrom })
  const count = { preset: '', read: countFrom }
  const contextWindow = await of({ option: 'context-window', question: 'Context window, tokens (optional)', ...count })
  const maxOutput = await of({ option: 'max-output', question: 'Longest output, tokens (optional)', ...count })
  const name = facts.args.text('name') ?? slug
  return { slug, name, url, dialect, auth, variable, model, input, output, contextWindow, maxOutput }
}

async function factOf<Value>({ option, question, preset, read }: Fact<Value>, { args, ask }: Facts): Promise<Value> {
  const given = args.text(option)
  if (given !== undefined || !ask) {
    const text = given ?? preset
    if (text === undefined) throw new UsageError(`--${option} is missing`)
    return readGiven(() => read(text), option)
  }
  for (let note = ''; ; ) {
    const answer = (await ask(`${note}${question}`, preset)).trim() || (preset ?? '')
    try {
      return read(answer)
    } catch (thrown) {
      note = `${(thrown as Error).message}\n`
    }
  }
}

function readGiven<Value>(read: () => Value, option: string): Value {
  try {
    return read()
  } catch (thrown) {
    throw new UsageError(`--${option}: ${(thrown as Error).message}`)
  }
}

/** The ends of addresses that dialects add themselves. */
const endpoints = /\/(?:chat\/completions|responses|messages|completions|embeddings|models)\/?$/

function addressFrom(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) throw new Error('write an address such as https://api.example.com/v1')
  if (url.username !== '' || url.password !== '' || url.search !== '')
    throw new Error('write the address without a password and without parameters: keys come from the environment')
  if (endpoints.test(url.pathname))
    throw new Error(`leave out ${endpoints.exec(url.pathname)?.[0]}: the wire format adds it`)
  return text.replace(/\/+$/, '')
}

function dialectFrom(text: string): string {
  if (/^[\w-]+$/.test(text)) return text
  throw new Error(`write the name of a file in ${relativePath(shippedDialects)}, such as openai-chat`)
}

function authFrom(text: string): ManifestFacts['auth'] {
  const [, scheme = '', name = ''] = /^(bearer|none|header|query)(?::([\w-]+))?$/.exec(text) ?? []
  const isNamed = scheme === 'header' || scheme === 'query'
  if (scheme === '' || isNamed !== (name !== '')) throw new Error('write bearer, header:x-api-key, query:key or none')
  return { scheme: scheme as ManifestFacts['auth']['scheme'], name }
}

function variableFrom(text: string): string {
  if (/^[A-Z_][A-Z0-9_]{0,63}$/.test(text)) return text
  throw new Error('write the name of a variable in capitals, such as EXAMPLE_API_KEY, not the key itself')
}

function modelFrom(text: string): string {
  if (text !== '' && text.length <= 256 && !/[\p{Cc}\s]/u.test(text)) return text
  throw new Error("write the provider's own name of a model, without spaces")
}

function priceFrom(text: string): number {
  const price = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (price <= 100_000) return price
  throw new Error('write USD for a million tokens, such as 0.25; 0 where it is free')
}

function countFrom(text: string): number | undefined {
  if (text === '') return undefined
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new Error('write a number of tokens, such as 128000')
}

/** Returns a function that asks on the terminal; undefined where there is none. */
function terminalAsk({ stdout }: Out): Ask | undefined {
  if (process.stdin.isTTY !== true) return undefined
  return async (question, preset) => {
    stdout(`${question}${preset ? ` [${preset}]` : ''}: `)
    const terminal = createInterface({ input: process.stdin })
    try {
      const { value, done } = await terminal[Symbol.asyncIterator]().next()
      if (done) throw new CommandError('Nothing was written.')
      return value
    } finally {
      terminal.close()
    }
  }
}
