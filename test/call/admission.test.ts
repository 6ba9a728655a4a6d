import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { openLimits } from '../../src/access/limits.ts'
import type { Accounts } from '../../src/accounts/accounts.ts'
import { admitUncharged, requireLedger } from '../../src/call/admission/accounts.ts'
import { admit as admitOrWait, type ConversationToAdmit } from '../../src/call/admission/admission.ts'
import { Settlement } from '../../src/call/admission/settlement.ts'
import { measuredReply } from '../../src/call/attempt/measured-reply.ts'
import type { Admission, AdmissionServices, CallLedger } from '../../src/call/types.ts'
import type { CallRecord } from '../../src/core/call.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { openBudget } from '../../src/money/budget.ts'
import { countingLedger, type SpendTables, spendReader } from '../../src/money/payments.ts'
import { noLimits } from '../../src/store/keys.ts'
import { monthOf } from '../../src/store/ledger/sums.ts'
import { openStore } from '../../src/store/open.ts'
import { atOnce, smallAccounts } from '../accounts/local.ts'
import { testInRuns } from '../helpers/slow.ts'

const store = await openStore('sqlite::memory:')
afterAll(() => store.close())

/** A token of output costs one nano-USD, the prompt nothing: the maximum cost of a call is its output limit. */
const entry: ModelEntry = {
  api: 'chat',
  pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 1e-9 }],
}
const target = { provider: { slug: 'maker' } as Provider, model: 'm1', entry }
const tried = { target, attempts: 1, dropped: [] }

const admit = (...given: Parameters<typeof admitOrWait>): Admission => atOnce(admitOrWait(...given))

/** Accounts on these tables, with the budget and the limits on them. */
function openAccounts(spend: SpendTables = store.immediate.spend, maxIdle = 10_000) {
  const accounts = smallAccounts({ readSpent: spendReader(spend) }, { maxIdle })
  return { accounts, budget: openBudget(accounts), limits: openLimits(accounts) }
}

function requestOf(maxTokens: number | undefined): NeutralRequest {
  const messages = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'Hello' }] }]
  const bound = maxTokens === undefined ? {} : { max_output_tokens: maxTokens }
  return { model: 'maker/m1', messages, ...bound, origin: { api: 'chat', body: {} } }
}

function replyOf(output: number): Reply {
  return { id: 'r', created: 1, parts: [], finish: 'stop', usage: { input: 5, output } }
}

/** A ledger that writes on request, and whose disk can fail. */
function controlledLedger() {
  const writer = store.ledger.openWriter()
  const waiting: { record: CallRecord; done(): void }[] = []
  let broken = false
  const ledger: CallLedger = {
    settle: (record) =>
      new Promise((done) => {
        waiting.push({ record, done })
        if (broken) done()
      }),
  }
  return {
    ledger,
    writeFailure: () => (broken ? 'The disk is gone.' : undefined),
    breakDown() {
      broken = true
      for (const { done } of waiting) done()
    },
    /** Writes the oldest rows; `silently`: they reach the disk, but `written` is not called. */
    async write(count: number, { silently = false } = {}) {
      const batch = waiting.splice(0, count)
      await writer.write(batch.map(({ record }) => record))
      if (silently) return
      if (waiting.length === 0) broken = false
      for (const { done } of batch) done()
      await new Promise(setImmediate)
    },
    waiting: () => waiting.length,
  }
}

type Open = { settlement: Settlement; admission: Admission; payers: string[]; maximum: bigint }

/** One process after another on the same tables, and beside it a model of the expected spend and reservations. */
function world({ keyLimit, groupLimit, credit }: { keyLimit: bigint; groupLimit: bigint; credit: bigint }) {
  const id = randomUUID()
  const rules: ConversationToAdmit['rules'] = {
    id: `organization ${id}`,
    limits: noLimits,
    groupLimits: new Map([[`group ${id}`, { name: 'lab', limitNano: groupLimit }]]),
    creditNano: credit,
    enforcesBalance: true,
  }
  const key = (name: string, groupId: string | null, monthlyLimitNano: bigint | null): ConversationToAdmit['key'] => ({
    id: `${name} ${id}`,
    groupId,
    limits: noLimits,
    monthlyLimitNano,
  })
  const keys = [
    key('limited, in the group', `group ${id}`, keyLimit),
    key('in the group', `group ${id}`, null),
    key('limited', null, keyLimit),
    key('unlimited', null, null),
  ]
  let at = Date.UTC(2026, 10, 21)
  let process = start()
  let open: Open[] = []

  function start() {
    const disk = controlledLedger()
    const { accounts, budget, limits } = openAccounts(store.immediate.spend, 2)
    const { writeFailure } = disk
    const services: AdmissionServices = {
      budget,
      limits,
      writeFailure,
      defaultOutputTokens: 30,
      abandoned: 'prompt',
      usageWaitMs: 10_000,
    }
    const ledger = countingLedger(disk.ledger, accounts)
    return { ...disk, ledger, accounts, budget, services, settled: new Map<string, bigint>() }
  }

  /** The accounts of a call by name, each with its limit. */
  const accountsOfCall = ({
    id: keyId,
    groupId,
    monthlyLimitNano,
  }: ConversationToAdmit['key']): [string, bigint | null][] => [
    [`key ${keyId} ${at}`, monthlyLimitNano],
    ...(groupId === null ? [] : ([[`group ${at}`, groupLimit]] as [string, bigint][])),
    ['organization', credit],
  ]
  const inTables = (name: string, { id: keyId, groupId }: ConversationToAdmit['key']): bigint => {
    if (name === 'organization') return store.immediate.spend.totalOfOrganization(rules.id)
    return name.startsWith('group')
      ? store.immediate.spend.ofGroup(groupId as string, at)
      : store.immediate.spend.ofKey(keyId, at)
  }
  const spent = (name: string, of: ConversationToAdmit['key']): bigint => {
    const known = process.settled.get(name) ?? inTables(name, of)
    process.settled.set(name, known)
    return known
  }
  const heldBy = (name: string): bigint =>
    open.reduce((sum, { payers, maximum }) => sum + (payers.includes(name) ? maximum : 0n), 0n)

  return {
    keys,
    call(which: number, maxTokens: number | undefined) {
      const chosen = keys[which] as ConversationToAdmit['key']
      const payers = accountsOfCall(chosen)
      const lefts = payers.flatMap(([name, limit]) =>
        limit === null ? [] : [limit - spent(name, chosen) - heldBy(name)],
      )
      const share = lefts.reduce((least, left) => (left < least ? left : least)) / 8n
      // Without a limit of its own a call gets an eighth of what is left, and at least the default.
      const maximum = maxTokens === undefined ? (share > 30n ? share : 30n) : BigInt(maxTokens)
      const fits =
        maximum === 0n ||
        payers.every(([name, limit]) => limit === null || spent(name, chosen) + heldBy(name) + maximum <= limit)
      const expected = process.writeFailure() ? 'unavailable' : fits ? 'admitted' : 'budget_exhausted'
      const request = requestOf(maxTokens)
      let outcome = 'admitted'
      try {
        requireLedger(process.services)
        const admission = admit({ key: chosen, rules, request, targets: [target], at }, process.services)
        const settlement = new Settlement(
          {
            id: randomUUID(),
            at,
            monotonicMs: 0,
            organization: rules.id,
            key: chosen.id,
            ...(chosen.groupId !== null && { group: chosen.groupId }),
            api: 'chat',
            operation: 'chat',
            requested: 'maker/m1',
            stream: false,
          },
          { ledger: process.ledger, admission },
        )
        open.push({ settlement, admission, payers: payers.map(([name]) => name), maximum })
      } catch (thrown) {
        if (!(thrown instanceof RouterError)) throw thrown
        outcome = thrown.code
      }
      expect(outcome).toBe(expected)
      return outcome
    },
    end(which: number, how: 'complete' | 'partial' | 'failed', share: number) {
      const [ended] = open.splice(which % Math.max(open.length, 1), 1)
      if (!ended) return
      const { settlement, admission, payers, maximum } = ended
      const used = Math.floor(Number(maximum) * share)
      const disconnect = new RouterError('client_gone', 'The client disconnected.')
      // Only the client of a call waits for the disk.
      const measured = measuredReply(replyOf(used), tried.target, admission, { complete: how === 'complete', ms: 0 })
      if (how === 'complete') void settlement.complete({ ...tried, measured })
      else if (how === 'partial') void settlement.partial({ ...tried, measured }, disconnect)
      else void settlement.fail(tried, disconnect)
      const cost = how === 'failed' ? 0n : BigInt(used)
      for (const name of payers) {
        const known = process.settled.get(name)
        if (known !== undefined) process.settled.set(name, known + cost)
      }
    },
    write: (count: number) => process.write(count),
    breakDown: () => process.breakDown(),
    async crash(reached: number) {
      await process.write(reached, { silently: true })
      open = []
      process = start()
    },
    /** So many others call that idle accounts are evicted. */
    strangers() {
      for (let n = 0; n < 40; n++) {
        const stranger = { id: `stranger ${n} ${id}`, monthlyLimitNano: null }
        const organization = { id: `strangers of ${id}`, creditNano: 0n, enforcesBalance: false }
        atOnce(process.budget.reserve({ at, key: stranger, organization, nanoUsd: 1n })).settle(0n)
      }
    },
    nextMonth() {
      at = Date.UTC(2026, new Date(at).getUTCMonth() + 1, 2)
    },
    checkLimits() {
      for (const [name, nano] of process.settled) {
        if (name === 'organization') expect(nano).toBeLessThanOrEqual(credit)
        if (name.startsWith('group')) expect(nano).toBeLessThanOrEqual(groupLimit)
        if (name.startsWith('key limited')) expect(nano).toBeLessThanOrEqual(keyLimit)
      }
      const reserved = open.reduce((sum, { payers, maximum }) => sum + BigInt(payers.length) * maximum, 0n)
      expect(process.accounts.totals().reservedNano).toBe(reserved)
    },
    /** Ends all calls, and compares the sums with the rows. */
    async close() {
      while (open.length > 0) this.end(0, 'complete', 1)
      await process.write(process.waiting())
      expect(process.accounts.totals().reservedNano).toBe(0n)
      const rows = await Array.fromAsync(store.ledger.each({ organization: rules.id }))
      const sumOf = (records: CallRecord[]) => records.reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n)
      expect(store.immediate.spend.totalOfOrganization(rules.id)).toBe(sumOf(rows))
      for (const [month, ofMonth] of Map.groupBy(rows, (row) => monthOf(row.at))) {
        const moment = ofMonth[0]?.at ?? 0
        expect(monthOf(moment)).toBe(month)
        expect(store.immediate.spend.ofOrganization(rules.id, moment)).toBe(sumOf(ofMonth))
        expect(store.immediate.spend.ofGroup(`group ${id}`, moment)).toBe(sumOf(ofMonth.filter(({ group }) => group)))
        for (const one of keys) {
          const own = sumOf(ofMonth.filter((row) => row.key === one.id))
          expect(store.immediate.spend.ofKey(one.id, moment)).toBe(own)
          if (one.monthlyLimitNano !== null) expect(own).toBeLessThanOrEqual(one.monthlyLimitNano)
        }
        expect(sumOf(ofMonth.filter(({ group }) => group))).toBeLessThanOrEqual(groupLimit)
      }
      expect(sumOf(rows)).toBeLessThanOrEqual(credit)
    },
    /** With nothing in flight, the rest may be spent to the last nano-USD, and not one more. */
    checkRest(which: number) {
      const chosen = keys[which] as ConversationToAdmit['key']
      const rests = accountsOfCall(chosen).flatMap(([name, limit]) =>
        limit === null ? [] : [limit - inTables(name, chosen)],
      )
      const rest = Number(rests.reduce((least, other) => (other < least ? other : least)))
      expect(this.call(which, rest + 1)).toBe('budget_exhausted')
      expect(this.call(which, rest)).toBe('admitted')
    },
  }
}

type World = ReturnType<typeof world>

const step: fc.Arbitrary<(on: World) => unknown> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(fc.nat({ max: 3 }), fc.option(fc.nat({ max: 60 }), { nil: undefined, freq: 5 })).map(
      ([which, maxTokens]) =>
        (on: World) =>
          on.call(which, maxTokens),
    ),
  },
  {
    weight: 7,
    arbitrary: fc
      .tuple(fc.nat({ max: 20 }), fc.constantFrom('complete', 'complete', 'partial', 'failed'), fc.nat({ max: 4 }))
      .map(
        ([which, how, quarters]) =>
          (on: World) =>
            on.end(which, how, quarters / 4),
      ),
  },
  { weight: 3, arbitrary: fc.nat({ max: 6 }).map((count) => (on: World) => on.write(count)) },
  { weight: 1, arbitrary: fc.nat({ max: 3 }).map((reached) => (on: World) => on.crash(reached)) },
  { weight: 2, arbitrary: fc.constant((on: World) => on.strangers()) },
  { weight: 1, arbitrary: fc.constant((on: World) => on.nextMonth()) },
  { weight: 1, arbitrary: fc.constant((on: World) => on.breakDown()) },
)

testInRuns(
  'for any calls, failures and crashes: limits are kept, rows and sums agree, nothing stays reserved, calls that fit are admitted',
  { fast: 200, slow: 1_000 },
  async (numRuns) => {
    const amounts = fc.record({
      keyLimit: fc.bigInt({ min: 1n, max: 200n }),
      groupLimit: fc.bigInt({ min: 1n, max: 300n }),
      credit: fc.bigInt({ min: 1n, max: 600n }),
    })
    await fc.assert(
      fc.asyncProperty(amounts, fc.array(step, { maxLength: 60 }), fc.nat({ max: 3 }), async (limits, steps, last) => {
        const on = world(limits)
        for (const take of steps) {
          await take(on)
          on.checkLimits()
        }
        await on.close()
        on.checkRest(last)
      }),
      { numRuns },
    )
  },
)

describe('a call', () => {
  const services = (
    changes: Partial<AdmissionServices> = {},
    { accounts, budget, limits } = openAccounts(),
  ): AdmissionServices & { accounts: Accounts } => ({
    accounts,
    budget,
    limits,
    writeFailure: () => undefined,
    defaultOutputTokens: 4_096,
    abandoned: 'prompt',
    usageWaitMs: 10_000,
    ...changes,
  })
  const applicant = (
    limits = noLimits,
    monthlyLimitNano: bigint | null = null,
    maxTokens?: number,
  ): ConversationToAdmit => ({
    key: { id: randomUUID(), groupId: null, limits, monthlyLimitNano },
    rules: { id: randomUUID(), limits: noLimits, groupLimits: new Map(), creditNano: 0n, enforcesBalance: false },
    request: requestOf(maxTokens),
    targets: [target],
    at: Date.now(),
  })

  test('is not taken while its row could not be written', () => {
    const writeFailure = () => 'The router cannot write its ledger: the disk is full.'
    expect(() => requireLedger({ writeFailure })).toThrow(
      'The router cannot write its ledger: the disk is full. New calls are refused until it can.',
    )
  })

  test('that the budget refuses has taken nothing of the limits', () => {
    const here = services()
    const poor = applicant({ requestsPerMinute: 1, tokensPerMinute: 5_000, concurrentCalls: 1 }, 10n, 11)
    expect(() => admit(poor, here)).toThrow('monthly limit')
    expect(() => admit({ ...poor, request: requestOf(10) }, here)).not.toThrow()
  })

  test('that the limits refuse hears of them before it hears of money', () => {
    const here = services()
    const busy = applicant({ ...noLimits, concurrentCalls: 1 }, 10n, 10)
    admit(busy, here)
    expect(() => admit(busy, here)).toThrow('concurrent calls')
    expect(here.accounts.totals().reservedNano).toBe(20n)
  })

  test('without an output limit is told the assumed tokens', () => {
    expect(() => admit(applicant(noLimits, 10n), services())).toThrow(
      'this call could cost up to 0.000004096 USD (it sets no output limit such as max_tokens, so 4096 output tokens are assumed).',
    )
  })

  test('is rejected as unavailable when the spend tables cannot be read', () => {
    const unreadable = () => {
      throw new Error('SQLITE_IOERR at /secret/path')
    }
    const { budget, limits } = openAccounts({ ...store.immediate.spend, totalOfOrganization: unreadable })
    const limited = applicant({ requestsPerMinute: 1, tokensPerMinute: null, concurrentCalls: null })
    for (let n = 0; n < 2; n++) {
      expect(() => admit(limited, services({ budget, limits }))).toThrow('The router cannot read the current spending.')
    }
  })

  type Ending = 'complete' | 'partial' | 'failed'

  /** Ends calls of many organizations, of one key each, and returns how many accounts are in memory then. */
  async function accountsAfter(calls: number, ending: Ending, ledger: CallLedger): Promise<number> {
    const here = services({}, openAccounts(store.immediate.spend, 1))
    for (let call = 0; call < calls; call++) {
      const { key, rules, ...asked } = applicant(noLimits, null, 10)
      const admission = admit({ key, rules, ...asked }, here)
      const own = { id: randomUUID(), at: asked.at, monotonicMs: 0, organization: rules.id, key: key.id }
      const start = { ...own, api: 'chat', operation: 'chat', requested: 'maker/m1', stream: false } as const
      const settlement = new Settlement(start, { ledger: countingLedger(ledger, here.accounts), admission })
      const received = { ...tried, measured: { usage: { input: 5, output: 3 }, estimated: false } }
      const failure = new RouterError('provider_failed', 'No.')
      if (ending === 'complete') void settlement.complete(received)
      else if (ending === 'partial') void settlement.partial(received, failure)
      else void settlement.fail(tried, failure)
      await new Promise(setImmediate)
    }
    expect(here.accounts.totals().reservedNano).toBe(0n)
    return here.accounts.totals().accounts
  }

  test.each<Ending>(['complete', 'partial', 'failed'])(
    'that is %s leaves no account in memory once its row is written',
    async (ending) => {
      expect(await accountsAfter(100, ending, { settle: async () => {} })).toBeLessThan(20)
    },
  )

  test.each<Ending>(['complete', 'partial'])(
    'that is %s keeps its accounts until its row is written',
    async (ending) => {
      expect(await accountsAfter(100, ending, { settle: () => new Promise(() => {}) })).toBe(200)
    },
  )

  test('that failed gives back its tokens, not its request', () => {
    const here = services()
    const limited = applicant({ requestsPerMinute: 2, tokensPerMinute: 100, concurrentCalls: null }, null, 90)
    admit(limited, here).settle(0n, 0)
    expect(admit(limited, here).headers['x-ratelimit-remaining-requests']).toBe('0')
  })

  test('that only counts tokens is a request, and uses none', () => {
    const here = services()
    const limited = applicant({ requestsPerMinute: 2, tokensPerMinute: 100, concurrentCalls: 1 }, null, 80)
    atOnce(admitUncharged(limited, here)).settle(0)
    admit(limited, here)
    expect(() => admitUncharged(limited, here)).toThrow('requests per minute')
  })
})
