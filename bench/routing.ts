/**
 * What it costs to route a call: to leave out the targets that cannot take it and to put the others in order, by every `sort` and
 * `sticky`; and to try one target that is healthy, beside asking it at once. `npm run bench -- routing [rounds]`. CPU of the
 * process, garbage collection included: the smallest of the rounds.
 */
import { chat } from '../src/api/chat/api.ts'
import { chatKind } from '../src/call/kinds/chat.ts'
import type { ReadConversation } from '../src/call/kinds/conversation.ts'
import { orderTargets } from '../src/call/targets/order-targets.ts'
import { withoutUnable } from '../src/call/targets/unable-targets.ts'
import type { NeutralRequest } from '../src/core/request.ts'
import { defaultHealth, defaultRouting, type RoutingRules } from '../src/core/routing/rules.ts'
import type { Provider } from '../src/manifest/provider.ts'
import type { Target } from '../src/manifest/target.ts'
import { boundedCall, costBound } from '../src/money/max-cost.ts'
import { Affinity } from '../src/routing/affinity.ts'
import { tryTargets } from '../src/routing/attempts.ts'
import { ConcurrencyLimiters } from '../src/routing/health/concurrency-limiter.ts'
import { Health } from '../src/routing/health/health.ts'
import { RetryBudget } from '../src/routing/health/retries.ts'
import { callClass, Measurements } from '../src/routing/measurements.ts'
import type { Targets } from '../src/routing/names/resolve.ts'
import type { RoutingState } from '../src/routing/types.ts'

const rounds = Number(process.argv[3] ?? 10)
const calls = 50_000

const timeouts = { connectMs: 10_000, firstEventMs: 60_000, betweenEventsMs: 60_000, wholeMs: 60_000, totalMs: 60_000 }
const pricing = [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }]

function targetOf(slug: string): Target {
  const provider = { slug, baseUrl: `https://${slug}.example`, auth: { scheme: 'none' }, timeouts, traits: [] }
  const entry = { api: 'chat', context_window: 128_000, max_output_tokens: 4_096, supports_tool_calling: true, pricing }
  return { provider: provider as unknown as Provider, model: 'bench', entry }
}

const [one, two, three] = [targetOf('one'), targetOf('two'), targetOf('three')]
const targets: Targets = [one, two, three]
const keyed: NeutralRequest = {
  model: 'fast',
  system: [{ type: 'text', text: 'You are a helpful assistant. '.repeat(20) }],
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Say hello, then explain what a gateway is.' }] }],
  tools: [{ kind: 'function', name: 'look', description: 'Looks it up.', parameters: { type: 'object' } }],
  cache: { key: 'conversation 1' },
  user: 'anna',
  origin: { api: 'chat', body: {} },
}

function state(): RoutingState {
  const opened = {
    health: new Health({ settings: () => defaultHealth }),
    retries: new RetryBudget(),
    measurements: new Measurements(),
    affinity: new Affinity(),
    limiters: new ConcurrencyLimiters(),
  }
  const kind = callClass('chat', false, 100)
  for (const target of targets) {
    for (let call = 0; call < 10; call++) {
      const passage = opened.health.enter(target)
      const measured = passage && opened.measurements.begin(target, { kind, limitMs: 10_000 }, passage)
      measured?.succeeded()
      measured?.ended()
    }
  }
  return opened
}

/** Microseconds of a call, the smallest of all rounds; in the first one V8 compiles. */
async function smallest(run: () => unknown): Promise<number> {
  let least = Infinity
  for (let round = 0; round <= rounds; round++) {
    const begun = process.cpuUsage()
    for (let call = 0; call < calls; call++) {
      const made = run()
      if (made instanceof Promise) await made
    }
    const { user, system } = process.cpuUsage(begun)
    if (round > 0) least = Math.min(least, (user + system) / calls)
  }
  return least
}

const told = (name: string, us: number) => console.log(`${name.padEnd(44)} ${us.toFixed(2)} µs`)

const bounded = boundedCall(keyed, Date.now())
const costs = new Map(targets.map((target) => [target, costBound(bounded, target, 1_000)]))
const admission = {
  costAt: (target: Target, isCached: boolean) =>
    isCached ? costBound(bounded, target, 1_000, true) : costs.get(target),
  caches: undefined,
  promptTokens: 200,
}

const chatCalls = chatKind(chat)
const opened = state()
const { cache: _key, ...keyless } = keyed
const chosen =
  (rules: Partial<RoutingRules>, request: NeutralRequest = keyed) =>
  () => {
    const route = { rules: { ...defaultRouting, ...rules } }
    const able = withoutUnable(targets, { request, strict: false, clientApi: chat })
    const read = { stream: false, request, turn: {} } as ReadConversation
    const call = { call: {}, key: { id: 'k', organization: 'o' }, read, route, admission, explanation: undefined }
    orderTargets({ ...call, targets: able.targets }, chatCalls, opened)
  }

for (const sort of ['order', 'weighted', 'price', 'latency', 'throughput'] as const) {
  told(`choosing, sort: ${sort}`, await smallest(chosen({ sort })))
}
for (const sticky of ['session', 'user', 'hash', 'cache'] as const) {
  told(`choosing, sort: latency, sticky: ${sticky}`, await smallest(chosen({ sort: 'latency', sticky })))
}
told('choosing, sort: price, sticky: cache', await smallest(chosen({ sort: 'price', sticky: 'cache' })))

told('choosing, sticky: cache, by how it begins', await smallest(chosen({ sticky: 'cache' }, keyless)))

const { signal } = new AbortController()
const answered = { dropped: [] }
const attempt = async (_target: Target, _limits: object) => answered
const kind = callClass('chat', false, 100)
const caller = { organization: 'o', key: 'k', isLow: false }
const direct = await smallest(async () => await attempt(one, {}))
const tried = await smallest(async () => {
  const trial = { targets: [one] as const, rules: defaultRouting, signal, caller, kind, attempt, onFailed() {} }
  const result = await tryTargets<{ dropped: string[]; error?: undefined }>(trial, opened)
  if (!result.error) result.handle.ended()
})
told('trying one healthy target', tried - direct)
