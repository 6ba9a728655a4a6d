import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { valuesIn } from '../../src/core/json.ts'
import { lateFlags, serverFlags } from '../../src/runtime/restart.ts'
import { usualMb } from '../../src/runtime/young-generation.ts'
import { within } from '../helpers/provider.ts'
import { routerFolder, testKey } from '../helpers/router.ts'
import { apis } from './bodies.ts'
import type { Measured, Question } from './router-child.ts'

/** A model of each format. */
export const slugs = ['chat', 'messages', 'responses', 'lines', 'frames', 'items']

/** One call: what is sent, how the provider answers it, and the JSON texts whose size decides what it may cost. */
export type Call = {
  path: string
  body: string
  answer(response: ServerResponse, hold: () => Promise<void>): void | Promise<void>
  sized: readonly string[]
}

/** A call of any media type, which a provider refuses. */
export type LargeCall = { path: string; body?: string | Uint8Array; headers: Record<string, string> }

/** A router in a process of its own with a provider for each format. */
export type MeasuredRouter = {
  url: string
  /** The folder with its database. */
  folder: string
  /** What a call takes until the provider has its headers, or it is answered without one; and what it takes in all. */
  measure(call: LargeCall): Promise<{ admitted: Measured; all: Measured; status: number; text: string }>
  /**
   * What a call takes beyond what it may: descriptions; and its status. Too much time is measured three times: a machine has
   * other work as well.
   */
  excesses(call: Call): Promise<{ excesses: string[]; status: number }>
  /** How far the memory of the process has grown. Bytes. */
  grown(): Promise<number>
  end(): void
}

const formats = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
  lines: 'ollama',
  frames: 'bedrock-converse',
  items: 'gemini',
}

function manifests(url: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(formats).map(([slug, dialect]) => {
      const form = slug === 'items' ? 'endpoints: { chat: { stream: { format: json-array } } }\n' : ''
      const text = `slug: ${slug}\nname: Test\nbase_url: ${url}\nauth: { scheme: none }\ndialect: ${dialect}\nunknown_models: pass\n${form}`
      return [`providers/${slug}.yaml`, text]
    }),
  )
}

/** A provider's refusal: the call ends there. */
export function refuse(response: ServerResponse): void {
  response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
}

/** Starts it; it has served a few calls in each way before. */
export async function measuredRouter(
  options: { files?(url: string): Record<string, string>; settings?: object } = {},
): Promise<MeasuredRouter> {
  let answer: (response: ServerResponse) => void | Promise<void> = refuse
  let arrived = () => {}
  const provider = createServer((incoming, response) => {
    arrived()
    incoming.resume().on('end', () => answer(response))
  })
  await once(provider.listen(0, '127.0.0.1'), 'listening')
  const { port } = provider.address() as AddressInfo
  const { folder, configPath } = routerFolder({
    threads: 1,
    files: { ...manifests(`http://127.0.0.1:${port}`), ...options.files?.(`http://127.0.0.1:${port}`) },
    ...(options.settings && { settings: options.settings }),
  })
  const child = fork(join(import.meta.dirname, 'router-child.ts'), [configPath], {
    // A young generation that stays as small as with few calls: how large it grows says nothing about what calls take.
    execArgv: [...serverFlags, ...lateFlags(1), `--max-semi-space-size=${usualMb}`, '--expose-gc'],
    env: { ...process.env, INFERENCE_ROUTER_ADMIN_KEY: testKey },
  })
  const [url] = await within(30_000, 'the start', once(child, 'message'))
  const measure = async (call: Call) => {
    let held = 0
    const hold = async () => {
      held = (await ask(child, 'hold')).heldBytes
    }
    let answered: unknown
    answer = (response) => {
      answered = call.answer(response, hold)
    }
    await ask(child, 'begin')
    const status = await send(url + call.path, call.body)
    // An answer that the router did not read to its end is still being measured.
    await answered
    return { ...(await ask(child, 'end')), heldBytes: held, status }
  }
  for (const { path, body } of Object.values(apis)) {
    for (const slug of slugs) await send(url + path, `{"model":"${slug}/m",${body('{"role":"user","content":"Hi"}')}}`)
  }
  return {
    url,
    folder,
    async measure({ path, body, headers: own }) {
      answer = refuse
      await ask(child, 'begin')
      let admitted: Promise<Measured> | undefined
      arrived = () => {
        admitted ??= ask(child, 'look')
      }
      const headers = { authorization: `Bearer ${testKey}`, ...own }
      const sent = body === undefined ? {} : { method: 'POST', body: body as string }
      const response = await fetch(url + path, { headers, ...sent })
      const text = await response.text()
      arrived = () => {}
      const before = await admitted
      const all = await ask(child, 'end')
      return { admitted: before ?? all, all, status: response.status, text }
    },
    async excesses(call) {
      const bounds = boundsOf(call.sized)
      for (let time = 1; ; time++) {
        const { status, ...measured } = await measure(call)
        const excesses = excessesOf(measured, bounds)
        const isTime = excesses.length > 0 && measured.heldBytes <= bounds.heldBytes
        if (!isTime || time === 3) return { excesses, status }
      }
    },
    grown: async () => (await ask(child, 'end')).peakBytes,
    end() {
      child.kill('SIGKILL')
      provider.close()
      provider.closeAllConnections()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function ask(child: ChildProcess, question: Question): Promise<Measured> {
  child.send(question)
  return (await within(60_000, question, once(child, 'message')))[0] as Measured
}

/** Sends a call and reads its answer, which may break off; resolves to the status. */
async function send(url: string, body: string): Promise<number> {
  const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body })
  await response.arrayBuffer().catch(() => {})
  return response.status
}

/** Several ticks of that clock. */
const tellingMs = 40

type Bounds = Pick<Measured, 'loopMs' | 'sliceMs' | 'heldBytes'>

/**
 * What a call may take: a multiple of the time in which this process parses, writes and looks through the same texts, and of
 * their length and values. Ordinary calls take half of it at most.
 */
function boundsOf(texts: readonly string[]): Bounds {
  const referenceMs = passOver(texts)
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  const longest = texts.reduce((most, text) => Math.max(most, text.length), 0)
  const values = texts.reduce((sum, text) => sum + valuesIn(text), 0)
  return {
    // An event takes some microseconds, whatever it says.
    loopMs: 120 + 13 * referenceMs + texts.length / 200,
    // Between two events others have their turn.
    sliceMs: 80 + (10 * referenceMs * longest) / length,
    heldBytes: 2_000_000 + 10 * length + 300 * Math.min(values, 250_000),
  }
}

/** The mean of as many passes as it takes until the clock of the processor, which ticks every few milliseconds, tells it. */
function passOver(texts: readonly string[]): number {
  const before = process.threadCpuUsage()
  for (let passes = 1; ; passes++) {
    for (const text of texts) {
      for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) === 0) break
      try {
        JSON.stringify(JSON.parse(text))
      } catch {}
    }
    const { user, system } = process.threadCpuUsage(before)
    const ms = (user + system) / 1_000
    if (ms >= tellingMs) return ms / passes
  }
}

function excessesOf(measured: Bounds, bounds: Bounds): string[] {
  return (Object.keys(bounds) as (keyof Bounds)[])
    .filter((name) => measured[name] > bounds[name])
    .map((name) => `${name}: ${Math.round(measured[name])}, at most ${Math.round(bounds[name])}`)
}
