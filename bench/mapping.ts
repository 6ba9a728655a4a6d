import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import jsonata from 'jsonata'
import { parse } from 'yaml'
import { functions } from '../src/mapping/functions.ts'
import { readMapping } from '../src/mapping/mapping.ts'
import * as byHand from './mappings-by-hand.ts'
import { conversation, geminiChunk, geminiReply, textDelta } from './mappings-inputs.ts'

/** Where the dialect files lie: those of the repository unless DIALECTS names another folder. */
const folder = process.env.DIALECTS ?? join(import.meta.dirname, '../providers/dialects')

type Chat = { request: string; reply: string; events: Record<string, string> }
type Bench = { name: string; text: string; input: unknown; hand: (input: unknown) => unknown; target: number }

const anthropic = chatOf('anthropic-messages')
const gemini = chatOf('gemini')
const benches: Bench[] = [
  ...(anthropic
    ? [
        {
          name: 'Anthropic request, 10 messages with tools',
          text: anthropic.request,
          input: conversation,
          hand: byHand.anthropicRequest,
          target: 20,
        },
      ]
    : []),
  ...(gemini
    ? [{ name: 'Gemini reply', text: gemini.reply, input: geminiReply, hand: byHand.geminiReply, target: 20 }]
    : []),
  ...(anthropic
    ? [
        {
          name: 'Anthropic text-delta event',
          text: anthropic.events.content_block_delta ?? '',
          input: textDelta,
          hand: byHand.anthropicDelta,
          target: 50,
        },
      ]
    : []),
  ...(gemini
    ? [
        {
          name: 'Gemini chunk event',
          text: gemini.events['*'] ?? '',
          input: geminiChunk,
          hand: byHand.geminiChunk,
          target: 50,
        },
      ]
    : []),
]

console.log(`${'µs per mapping'.padEnd(40)}    library   compiled    by hand   library/compiled   compiled/by hand`)
for (const bench of benches) await measure(bench)

function chatOf(dialect: string): Chat | undefined {
  const file = join(folder, `${dialect}.yaml`)
  if (existsSync(file)) return (parse(readFileSync(file, 'utf8')) as { endpoints: { chat: Chat } }).endpoints.chat
  console.log(`${dialect} is left out: no file ${file}`)
  return undefined
}

async function measure({ name, text, input, hand, target }: Bench): Promise<void> {
  const mapping = readMapping(text)
  if (!mapping.compiled) throw new Error(`${name} is interpreted: ${mapping.fallback}`)
  const library = jsonata(text)
  for (const [known, { run, signature }] of Object.entries(functions)) {
    library.registerFunction(known, run as (...args: unknown[]) => unknown, signature)
  }
  const expected = JSON.parse(JSON.stringify(await library.evaluate(input, {})))
  same(name, 'compiled', mapping.run(input), expected)
  same(name, 'by hand', hand(input), expected)
  const libraryUs = await timeAsync(() => library.evaluate(input, {}))
  const compiledUs = time(() => mapping.run(input))
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
