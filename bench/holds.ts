/**
 * What the bounds of requests and answers and the reservations of a call cost: the real line in this process, without HTTP, with
 * them and without them in turn. `npm run bench -- holds [rounds]`. CPU of the process, garbage collection included.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLimits } from '../src/access/limits.ts'
import { Accounts } from '../src/accounts/accounts.ts'
import { chat } from '../src/api/chat/api.ts'
import { handleCall } from '../src/call/handle-call.ts'
import { chatKind } from '../src/call/kinds/chat.ts'
import { openConversations } from '../src/call/open/conversations.ts'
import type { AdmissionServices, Services } from '../src/call/types.ts'
import { deepest, exceeded, maxMembers } from '../src/core/json.ts'
import { openBudget, type Reservation } from '../src/money/budget.ts'
import { Affinity } from '../src/routing/affinity.ts'
import { ConcurrencyLimiter, ConcurrencyLimiters } from '../src/routing/health/concurrency-limiter.ts'
import { Health } from '../src/routing/health/health.ts'
import { RetryBudget } from '../src/routing/health/retries.ts'
import { Measurements } from '../src/routing/measurements.ts'
import { openSignatureCache } from '../src/routing/signature-cache.ts'
import { buildSnapshot, type Snapshot } from '../src/snapshot/snapshot.ts'
import { defaultAnswerBounds } from '../src/upstream/answer-body.ts'
import type { HttpClient } from '../src/upstream/http/types.ts'
import { median, percentile, sorted } from './load.ts'

const rounds = Number(process.argv[3] ?? 5)
/** Pairs of slices in one round, and calls in one slice. */
const pairs = 40
const calls = 200
const chunks = 200

const chatCalls = chatKind(chat)

type State = 'with' | 'without'
type Kind = 'whole' | 'stream'

const usage = '"usage":{"prompt_tokens":20,"completion_tokens":200,"total_tokens":220}'
const text = JSON.stringify('A gateway passes on what it is sent. '.repeat(6))
const whole = Buffer.from(
  `{"id":"a","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":${text}}}],${usage}}`,
)
const chunk = (index: number, delta: string, finish = 'null') =>
  `data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"bench","system_fingerprint":"fp_${index}","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`
const last = `data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],${usage}}\n\ndata: [DONE]\n\n`
const stream = [
  ...Array.from({ length: chunks }, (_, index) => chunk(index, `{"content":" word${index}"}`)),
  chunk(chunks, '{}', '"stop"') + last,
].map((each) => Buffer.from(each))

const messages = [
  { role: 'system', content: 'You are a helpful assistant.' },
  { role: 'user', content: 'Say hello, then explain in two sentences what a gateway is.' },
]
const body = { model: 'same/bench', messages, temperature: 0.7, max_tokens: 256 }
const bodies: Record<Kind, string> = {
  whole: JSON.stringify(body),
  stream: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
}

/** A provider in this process: each chunk of a stream is a piece of its own, as from a network. */
const httpClient: HttpClient = {
  async send({ body, onSent }) {
    onSent?.()
    const isStream = String(body).includes('"stream":true')
    return {
      status: 200,
      headers: { 'content-type': isStream ? 'text/event-stream' : 'application/json' },
      bytes: bytesOf(isStream ? stream : [whole]),
      progressed() {},
      discard() {},
    }
  },
  async close() {},
}

async function* bytesOf(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  yield* pieces
}

const open: Reservation = { raise() {}, charge() {}, settle() {}, maxNano: () => 0n }
const unlimited = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: null }
const generous = { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrentCalls: 1e6 }
const accounts = new Accounts({ readSpent: () => 0n })

const admissions: Record<State, Pick<AdmissionServices, 'budget' | 'limits'>> = {
  with: { budget: openBudget(accounts), limits: openLimits(accounts) },
  without: {
    budget: { left: () => undefined, reserve: () => open },
    limits: { take: () => ({ settle() {}, undo() {}, headers: {} }) },
  },
}

/** A key with a monthly limit and limits per minute, in an organization with a balance; or none of it. */
function ownerOf(state: State) {
  const limits = state === 'with' ? generous : unlimited
  const monthlyLimitNano = state === 'with' ? 10n ** 18n : null
  const key = { id: 'k', organization: 'o', groupId: null, labels: {}, accessList: null, monthlyLimitNano, limits }
  const rules = {
    id: 'o',
    limits,
    creditNano: 10n ** 18n,
    enforcesBalance: state === 'with',
    approvedModels: null,
    dataRules: {},
    retention: { stores: false, days: 0 },
    aliases: new Map(),
    policies: new Map(),
    groupLimits: new Map(),
  }
  return { key, rules }
}

function servicesOf({ providers, catalog, config }: Snapshot, state: State): Services {
  const { key, rules } = ownerOf(state)
  const most = state === 'with' ? config.server.body : { values: Infinity, unknownFields: Infinity }
  const unbounded = { bytes: Infinity, eventBytes: Infinity, values: Infinity }
  const none = () => undefined
  return {
    authenticate: () => key,
    revalidate: () => key,
    rulesOf: () => rules,
    directory: { providers, identify: catalog.identify, managed: config.policies, routing: config.routing },
    admission: { ...admissions[state], ...config.budget, writeFailure: none },
    tokenizer: { count: async () => undefined, close: async () => {} },
    httpClient,
    media: { fetchMedia: none, settings: config.media },
    gate: new ConcurrencyLimiter(() => ({ concurrent: Infinity, queue: 0 })),
    ledger: { settle: async () => {} },
    signatures: openSignatureCache(),
    conversations: openConversations({ responses: { get: none } } as never),
    maxUnknownFields: most.unknownFields,
    maxValues: most.values,
    answerBounds: state === 'with' ? defaultAnswerBounds : unbounded,
    held: { remember() {}, holders: async () => [] },
    routing: {
      health: new Health({ settings: () => config.health }),
      retries: new RetryBudget(),
      measurements: new Measurements(),
      affinity: new Affinity(),
      gates: new ConcurrencyLimiters(),
    },
    // What a bench needs of keys and rules is less than what they have.
  } as unknown as Services
}

function readBody(kind: Kind, state: State, values: number): unknown {
  const text = bodies[kind]
  if (state === 'with' && exceeded(text, { values, depth: deepest, members: maxMembers })) throw new Error('too much')
  return JSON.parse(text)
}

/** CPU of one slice of calls that run one after the other. Microseconds per call. */
async function slice(kind: Kind, state: State, services: Services, values: number): Promise<number> {
  const begun = process.cpuUsage()
  for (let call = 0; call < calls; call++) {
    const { body } = await handleCall(
      {
        id: `c${call}`,
        secret: 's',
        readBody: async () => ({ json: readBody(kind, state, values) }),
        strict: false,
        headers: {},
        tags: {},
        keepAlive: { afterMs: 15_000, early: false },
        stop: new AbortController().signal,
        outlive() {},
        atEnd() {},
        signal: new AbortController().signal,
      },
      chatCalls,
      services,
    )
    let length = typeof body === 'string' ? body.length : 0
    if (typeof body !== 'string') for await (const piece of body) length += piece.length
    if (length < 100) throw new Error(`the reply has ${length} characters`)
  }
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / calls
}

const folder = mkdtempSync(join(tmpdir(), 'bench-holds-'))
mkdirSync(join(folder, 'providers'))
writeFileSync(
  join(folder, 'providers/same.yaml'),
  `slug: same
name: Bench
base_url: http://127.0.0.1:1/v1
auth: { scheme: none }
dialect: openai-chat
models:
  bench:
    api: chat
    context_window: 128000
    max_output_tokens: 4096
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]
`,
)
writeFileSync(join(folder, 'config.yaml'), 'server: { port: 0 }\n')
const { snapshot, problems } = await buildSnapshot(join(folder, 'config.yaml'), process.env)
rmSync(folder, { recursive: true })
if (!snapshot) throw new Error(problems.map(({ message }) => message).join('\n'))
const { values } = snapshot.config.server.body
const services = { with: servicesOf(snapshot, 'with'), without: servicesOf(snapshot, 'without') }

const differences: Record<Kind, number[]> = { whole: [], stream: [] }
const costs: Record<Kind, number[]> = { whole: [], stream: [] }
for (let round = 0; round <= rounds; round++) {
  for (const kind of ['whole', 'stream'] as const) {
    const found: { difference: number; cost: number }[] = []
    for (let pair = 0; pair < pairs; pair++) {
      // Each is first in every other pair.
      const order: State[] = pair % 2 ? ['with', 'without'] : ['without', 'with']
      const us = { with: 0, without: 0 }
      for (const state of order) us[state] = await slice(kind, state, services[state], values)
      found.push({ difference: us.with - us.without, cost: us.with })
    }
    // In the first round V8 compiles.
    if (round === 0) continue
    differences[kind].push(median(found.map(({ difference }) => difference)))
    costs[kind].push(median(found.map(({ cost }) => cost)))
  }
}

const row = (of: readonly number[], per: number) => {
  const all = sorted(of.map((us) => us / per))
  return { median: median(all).toFixed(2), least: percentile(all, 0).toFixed(2), most: percentile(all, 1).toFixed(2) }
}
console.log(`µs of CPU, medians of ${rounds} rounds of ${pairs} pairs of ${calls} calls`)
console.table({
  'a whole call through the line': row(costs.whole, 1),
  'of it bounds and reservations': row(differences.whole, 1),
  [`a stream of ${chunks} chunks, per chunk`]: row(costs.stream, chunks),
  'of it bounds and reservations, per call': row(differences.stream, 1),
  'the same, per chunk': row(differences.stream, chunks),
})
