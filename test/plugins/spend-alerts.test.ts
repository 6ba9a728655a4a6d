import { createHmac } from 'node:crypto'
import type { PluginBudget } from 'inference-router/plugin'
import { openPlugin } from 'inference-router/plugin/test'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Alarms } from '../../plugins/spend-alerts/alarms.ts'
import spendAlerts from '../../plugins/spend-alerts/index.ts'
import { type Alert, crossedBy, type State } from '../../plugins/spend-alerts/thresholds.ts'
import { type PluginWorld, pluginWorld } from '../e2e/plugins/plugin-world.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { describeEach } from '../helpers/slow.ts'

const url = 'https://hooks.example/x'
const json = { url, form: 'json' } as const
const key = (spent_usd: number, limit_usd = 10): PluginBudget => ({
  owner: 'key',
  id: 'k1',
  name: 'mine',
  spent_usd,
  limit_usd,
})
const organization = (balance_usd: number): PluginBudget => ({
  owner: 'organization',
  id: 'o1',
  name: 'Acme',
  spent_usd: 3,
  balance_usd,
})
const paid = { record: { cost: { nanoUsd: 5, parts: {}, priceVersion: '' } } }

type Sent = { url: string; body: string; headers: Record<string, string> }

/** The plugin, and what it sends where the budgets are these; `answer` gives the statuses of the webhook. */
async function opened(options: object, budgets: () => PluginBudget[], answer: () => number = () => 200) {
  const sent: Sent[] = []
  const asked: string[] = []
  const tested = await openPlugin(spendAlerts, {
    options: { webhooks: [json], every_seconds: 0.01, attempts: 1, ...options },
    secrets: { HOOK: 'shared secret', SLACK: 'https://slack.example/secret-path' },
    budgets: async (id) => {
      asked.push(id)
      return budgets()
    },
    fetch: async (to, { body, headers } = {}) => {
      sent.push({ url: String(to), body: String(body), headers: headers as Record<string, string> })
      return new Response(null, { status: answer() })
    },
  })
  const seen = async () => {
    const before = asked.length
    await tested.call(paid)
    await expect.poll(() => asked.length).toBeGreaterThan(before)
    await new Promise((resolve) => setTimeout(resolve, 10))
    return sent
  }
  return { tested, sent, asked, seen }
}

const alerts = (sent: readonly Sent[]): Alert[] => sent.map(({ body }) => JSON.parse(body))

describe('spend-alerts', () => {
  test('tells percents of a budget when they are crossed, each once', async () => {
    let spent = 4.9
    const { seen, tested } = await opened({ percent: { key: [50, 80] } }, () => [key(spent)])
    expect(await seen()).toEqual([])
    spent = 5
    const [alert] = alerts(await seen())
    expect(alert).toEqual({
      type: 'spend_alert',
      threshold: { kind: 'percent', value: 50, budget: 10, current_spend: 5 },
      owner: { type: 'key', id: 'k1', name: 'mine' },
      fired_at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    spent = 11
    expect(alerts(await seen()).map(({ threshold }) => threshold.value)).toEqual([50, 80])
    expect(await seen()).toHaveLength(2)
    await tested[Symbol.asyncDispose]()
  })

  test('tells them again when the limit has changed, and in another month', () => {
    const threshold = { kind: 'percent', of: 'key', value: 80 } as const
    const november = Date.UTC(2026, 10, 30, 23, 59)
    expect(crossedBy(key(9), threshold, november)).toMatchObject({ isCrossed: true, month: '2026-11' })
    expect(crossedBy(key(9), threshold, november + 60_000)).toMatchObject({ month: '2026-12' })
    expect(crossedBy(key(9, 12), threshold)).toMatchObject({ isCrossed: false })
    expect(crossedBy({ ...key(9), limit_usd: undefined } as never, threshold)).toBeUndefined()
  })

  test('tells sums, and balances once each time that they get low', async () => {
    let left = 5
    const { seen } = await opened({ balance_below_usd: [5], spend_usd: { organization: [3] } }, () => [
      organization(left),
    ])
    expect(alerts(await seen()).map(({ threshold }) => threshold)).toEqual([
      { kind: 'spend', value: 3, budget: null, current_spend: 3 },
    ])
    const kinds = async () => alerts(await seen()).map(({ threshold }) => threshold.kind)
    left = 4.99
    expect(await kinds()).toEqual(['spend', 'balance_below'])
    expect(await kinds()).toHaveLength(2)
    left = 20
    expect(await kinds()).toHaveLength(2)
    left = 1
    expect(await kinds()).toEqual(['spend', 'balance_below', 'balance_below'])
  })

  test('signs, and writes for Slack to an address that is a secret', async () => {
    const webhooks = [
      { ...json, secret: '$HOOK' },
      { url: '$SLACK', form: 'slack' },
    ]
    const { seen } = await opened({ percent: { key: [100] }, webhooks }, () => [key(12)])
    const sent = await seen()
    const [signed, slack] = ['hooks', 'slack'].map((host) => sent.find((one) => one.url.includes(host)))
    const [, time, digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signed?.headers['x-router-signature'] ?? '') ?? []
    expect(digest).toBe(createHmac('sha256', 'shared secret').update(`${time}.${signed?.body}`).digest('hex'))
    expect(slack?.url).toBe('https://slack.example/secret-path')
    expect(JSON.parse(slack?.body ?? '')).toEqual({
      text: "The key 'mine' has spent $12.00 this month: 100 % of its limit of $10.00.",
    })
    expect(slack?.headers).not.toHaveProperty('x-router-signature')
  })

  test('looks at budgets once for many calls, and not for those that asked nobody', async () => {
    const { tested, asked } = await opened({ percent: { key: [100] }, every_seconds: 60 }, () => [])
    for (let call = 0; call < 50; call++) await tested.call(paid)
    await tested.call({ record: { attempts: 0 } })
    expect(asked).toEqual([])
    await tested[Symbol.asyncDispose]()
    expect(asked).toEqual(['key-1'])
  })

  test('that nobody accepted are told the next time, and logged without the address', async () => {
    let accepts = false
    let accepted = 0
    const { seen, tested } = await opened(
      { percent: { key: [100] } },
      () => [key(12)],
      () => {
        if (accepts) accepted++
        return accepts ? 204 : 500
      },
    )
    expect(await seen()).not.toHaveLength(0)
    expect(JSON.stringify(tested.logged)).not.toContain('hooks.example')
    expect(tested.logged[0]).toMatchObject({ level: 'error' })
    accepts = true
    await seen()
    await expect.poll(() => accepted).toBe(1)
    await seen()
    expect(accepted).toBe(1)
  })

  test('are tried again with growing pauses', async () => {
    const { kit, tested } = await opened({ percent: { key: [100] } }, () => []).then((one) => ({
      ...one,
      kit: one.tested.kit,
    }))
    const times: number[] = []
    const webhook = {
      id: 'w',
      async send() {
        times.push(performance.now())
        if (times.length < 4) throw new Error('not now')
      },
    }
    const alarms = new Alarms([webhook], { ...kit, attempts: 5, firstPauseMs: 20 })
    const state = crossedBy(key(12), { kind: 'percent', of: 'key', value: 100 }) as State
    await Promise.all([alarms.see(state), alarms.see(state)])
    expect(times).toHaveLength(4)
    const [first = 0, , third = 0, fourth = 0] = times
    expect(fourth - third).toBeGreaterThan(60)
    expect(third - first).toBeGreaterThan(50)
    await tested[Symbol.asyncDispose]()
  })

  test('says what is wrong with its options', async () => {
    const problem = (options: object) => openPlugin(spendAlerts, { options }).catch(String)
    expect(await problem({ webhooks: [json], percent: { organization: [5] } })).toContain('organization')
    expect(await problem({ webhooks: [json] })).toContain('percent')
    expect(await problem({ percent: {} })).toContain('webhooks')
    expect(await problem({ percent: {}, webhooks: [{ url: '$UNSET', form: 'json' }] })).toContain('UNSET')
  })
})

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('through the router with %i threads', (threads) => {
  let world: PluginWorld
  let hook: LoopbackProvider
  const received: Received[] = []
  beforeAll(async () => {
    hook = await loopbackProvider((request, response) => {
      received.push(request)
      response.writeHead(received.length === 1 ? 503 : 200).end()
    })
    const { host } = new URL(hook.url)
    const options = {
      percent: { key: [100] },
      spend_usd: { organization: [0.000_001, 0.000_1] },
      webhooks: [{ url: hook.url, form: 'json' }],
      every_seconds: 0.05,
    }
    received.length = 0
    const plugins = [{ name: 'spend-alerts', options, fetch: [host] }]
    world = await pluginWorld({}, { settings: { plugins, server: { host: '127.0.0.1', port: 0, threads } } })
  })
  afterAll(async () => {
    await world.end()
    await hook.close()
  })

  test('what calls cost crosses thresholds once', async () => {
    for (let call = 0; call < 8; call++) await world.ask({ stream: call % 2 === 1 })
    await expect.poll(() => received.length).toBe(2)
    const alert = received[1]?.body as unknown as Alert
    expect(alert).toMatchObject({ threshold: { kind: 'spend', budget: null }, owner: { type: 'organization' } })
    expect(alert.threshold.current_spend).toBeGreaterThan(0)
    // Each call costs a tenth of the second threshold: who sees that it is crossed has looked at the first once more.
    for (let call = 0; call < 8; call++) await world.ask()
    await expect.poll(() => received.length).toBe(3)
    const next = received[2]?.body as unknown as Alert
    expect([alert.threshold.value, next.threshold.value]).toEqual([0.000_001, 0.000_1])
  })
})

test('an attempt that failed and was paid crosses thresholds', async () => {
  const received: Received[] = []
  const hook = await loopbackProvider((request, response) => {
    received.push(request)
    response.end()
  })
  const options = {
    spend_usd: { key: [0.000_001] },
    webhooks: [{ url: hook.url, form: 'json' }],
    every_seconds: 0.02,
  }
  const plugins = [{ name: 'spend-alerts', options, fetch: [new URL(hook.url).host] }]
  const world = await pluginWorld({}, { settings: { plugins } })
  // The provider counts an answer that is none.
  world.steps.one.push((response) =>
    answerJson(response, { id: 'c', choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }),
  )
  expect((await world.ask()).status).toBe(502)
  await expect.poll(() => received.length).toBe(1)
  expect(await world.rows()).toMatchObject([{ outcome: 'failed', cost: { nanoUsd: 10_000 } }])
  const alert = received[0]?.body as unknown as Alert
  expect(alert.threshold).toMatchObject({ kind: 'spend', value: 0.000_001, current_spend: 0.000_01 })
  await world.end()
  await hook.close()
})
