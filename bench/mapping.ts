import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import jsonata from 'jsonata'
import type { ChatEndpoint } from '../src/manifest/provider.ts'
import { bareProvider, type Dialect, loadDialect } from '../src/manifest/read/dialect.ts'
import { readSource } from '../src/manifest/read/source.ts'
import { functions } from '../src/mapping/functions.ts'
import type { Mapping } from '../src/mapping/mapping.ts'
import * as byHand from './mappings-by-hand.ts'
import { chatChunk, conversation, geminiChunk, geminiReply, textDelta } from './mappings-inputs.ts'

/** The dialect files: those of the repository unless DIALECTS names another folder. */
const folder = process.env.DIALECTS ?? join(import.meta.dirname, '../providers/dialects')

// biome-ignore lint/suspicious/noExplicitAny: results have the shape of their mapping.
type Result = any
type Bench = {
  name: string
  mapping: Mapping
  input: unknown
  /** What the kernel makes of a result: joined sections, or words and counts by their tables. */
  finish(result: Result): Result
  hand(input: unknown): unknown
  target: number
}

const anthropic = chatOf('anthropic-messages')
const gemini = chatOf('gemini')
const openai = chatOf('openai-chat')
const benches: Bench[] = [
  {
    name: 'Anthropic request, 10 messages with tools',
    mapping: anthropic.request.mapping,
    input: conversation,
    finish: ({ dropped: _, ...sections }) => Object.assign({}, ...Object.values(sections)),
    hand: byHand.anthropicRequest,
    target: 20,
  },
  {
    name: 'Gemini reply',
    mapping: gemini.reply,
    input: geminiReply,
    finish: (reply) => translated(gemini, reply, 'finish_raw'),
    hand: byHand.geminiReply,
    target: 20,
  },
  {
    name: 'Anthropic text-delta event',
    mapping: eventOf(anthropic, 'content_block_delta'),
    input: textDelta,
    finish: (event) => event,
    hand: byHand.anthropicDelta,
    target: 50,
  },
  {
    name: 'Gemini chunk event',
    mapping: eventOf(gemini, '*'),
    input: geminiChunk,
    finish: (events) =>
      [events]
        .flat()
        .filter((event) => Object.keys(event).length > 0)
        .map((event) => translated(gemini, event, 'raw')),
    hand: byHand.geminiChunk,
    target: 50,
  },
  {
    name: 'OpenAI chat text event',
    mapping: eventOf(openai, '*'),
    input: chatChunk,
    finish: (event) => event,
    hand: byHand.chatChunk,
    target: 50,
  },
]

console.log(`${'µs per mapping'.padEnd(40)}    library   compiled    by hand   library/compiled   compiled/by hand`)
for (const bench of benches) await measure(bench)

function chatOf(name: string): ChatEndpoint {
  const file = join(folder, `${name}.yaml`)
  const { dialect, problems } = loadDialect(readSource(file, readFileSync(file, 'utf8')))
  if (!dialect) throw new Error(problems.map(({ line, message }) => `${file}:${line}: ${message}`).join('\n'))
  return endpointOf(dialect)
}

function endpointOf(dialect: Dialect): ChatEndpoint {
  const { chat } = bareProvider(dialect)
  if (!chat) throw new Error(`${dialect.name} has no chat endpoint`)
  return chat
}

function eventOf({ events }: ChatEndpoint, name: string): Mapping {
  const mapping = events.get(name)
  if (!mapping) throw new Error(`there is no mapping for events of the name ${name}`)
  return mapping
}

/** A reply or an event with its finish word and usage object translated. */
function translated(
  { finish: words, usage: counts }: ChatEndpoint,
  { finish, usage, raw: _raw, ...rest }: Result,
  raw: string,
): Result {
  return {
    ...rest,
    ...(finish && { finish: words?.[finish] ?? words?.['*'], [raw]: finish }),
    ...(usage && { usage: counts?.run(usage) }),
  }
}

async function measure({ name, mapping, input, finish, hand, target }: Bench): Promise<void> {
  if (!mapping.compiled) throw new Error(`${name} is interpreted: ${mapping.fallback}`)
  const library = jsonata(mapping.text)
  for (const [known, { run, signature }] of Object.entries(functions)) {
    library.registerFunction(known, run as (...args: unknown[]) => unknown, signature)
  }
  const expected = JSON.parse(JSON.stringify(await library.evaluate(input, {})))
  same(name, 'compiled', mapping.run(input), expected)
  same(name, 'by hand', hand(input), JSON.parse(JSON.stringify(finish(mapping.run(input)))))
  const libraryUs = await timeAsync(() => library.evaluate(input, {}))
  const compiledUs = time(() => finish(mapping.run(input)))
  const handUs = time(() => hand(input))
  const ratio = libraryUs / compiledUs
  const times = [libraryUs, compiledUs, handUs].map((us) => us.toFixed(us < 10 ? 3 : 1).padStart(11)).join('')
  const ratios = `${ratio.toFixed(0).padStart(17)} ×${(compiledUs / handUs).toFixed(1).padStart(17)} ×`
  const verdict = ratio < target ? `   below the target of ${target} ×` : ''
  console.log(`${name.padEnd(40)}${times}${ratios}${verdict}`)
}

function same(name: string, how: string, actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return
  throw new Error(`${name}, ${how}: ${JSON.stringify(actual)}\ninstead of ${JSON.stringify(expected)}`)
}

/** The best of several rounds, so that work of others on the machine counts least. */
function time(run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 8; round++) {
    const start = performance.now()
    let count = 0
    do {
      for (let each = 0; each < 50; each++) run()
      count += 50
    } while (performance.now() - start < 100)
    best = Math.min(best, ((performance.now() - start) * 1000) / count)
  }
  return best
}

async function timeAsync(run: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const start = performance.now()
    let count = 0
    do {
      await run()
      count++
    } while (performance.now() - start < 200)
    best = Math.min(best, ((performance.now() - start) * 1000) / count)
  }
  return best
}
