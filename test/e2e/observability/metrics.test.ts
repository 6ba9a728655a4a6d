import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { simulatorOnly, type TestRouter, testRouter } from '../../helpers/router.ts'
import { describeEach } from '../../helpers/slow.ts'

/** Texts that make the simulator answer, or fail in one of its ways. */
const texts = ['Hello', 'Hello there', 'fail 503', 'fail 400', 'cut', 'garble', 'refuse', 'unfinished']
/** METRICS_CALLS=10000 makes it a soak. */
const calls = Number(process.env.METRICS_CALLS ?? 160)
const atOnce = 100

describeEach([1, 4], { slowIf: (threads) => threads > 1 })('with %i threads', (threads) => {
  let router: TestRouter

  beforeAll(async () => {
    const policies = { safe: { targets: ['demo/trouble', 'demo/thinker'], on_cut: 'continue' } }
    router = await testRouter({
      files: simulatorOnly,
      threads,
      settings: { policies, metrics: { labels: ['organization'] } },
    })
    for (let begun = 0; begun < calls; begun += atOnce)
      await Promise.all(
        Array.from({ length: Math.min(atOnce, calls - begun) }, (_, index) => mixed(router, begun + index)),
      )
  })
  afterAll(() => router?.end())

  test('sums of calls, units and cost by model are those of the ledger', async () => {
    const metrics = await read(router)
    const rows = ledgerOf(router)
    expect(rows.size).toBeGreaterThan(0)
    expect([...rows.values()].reduce((sum, { calls }) => sum + calls, 0)).toBeGreaterThan(calls / 2)
    for (const [model, row] of rows) {
      const own = metrics.filter(({ labels }) => `${labels.provider}/${labels.model}` === model)
      const sum = (name: string, of: (labels: Labels) => boolean = () => true) =>
        own.filter((one) => one.name === name && of(one.labels)).reduce((all, { value }) => all + value, 0)
      expect(sum('inference_router_calls_total')).toBe(row.calls)
      expect(sum('inference_router_attempts_total')).toBe(row.rows)
      expect(sum('inference_router_calls_total', ({ code }) => code !== '')).toBe(row.failed)
      expect(Math.round(sum('inference_router_cost_usd_total') * 1e9)).toBe(row.nano)
      expect(sum('inference_router_tokens_total', ({ class: name }) => name === 'input')).toBe(row.input)
      expect(sum('inference_router_tokens_total', ({ class: name }) => name === 'output')).toBe(row.output)
    }
  })

  test('calls that were refused are counted by their code', async () => {
    const refusedSoFar = async (code: string) =>
      (await read(router)).find(({ name, labels }) => name === 'inference_router_refused_total' && labels.code === code)
        ?.value ?? 0
    const before = await refusedSoFar('model_not_found')
    await router.call('/v1/chat/completions', { model: 'demo/none', messages: [{ role: 'user', content: 'Hi' }] })
    await expect.poll(() => refusedSoFar('model_not_found'), { timeout: 5_000 }).toBe(before + 1)
  })

  test('nothing is under way when nothing runs, and delays are told once somebody asks', async () => {
    const value = async (name: string) => (await read(router)).find((one) => one.name === name)?.value
    await expect.poll(() => value('inference_router_streams_running'), { timeout: 5_000 }).toBe(0)
    await expect.poll(() => value('inference_router_reserved_usd'), { timeout: 5_000 }).toBe(0)
    await expect.poll(() => value('inference_router_ledger_backlog'), { timeout: 5_000 }).toBe(0)
    await expect.poll(() => value('inference_router_event_loop_delay_seconds'), { timeout: 5_000 }).toBeGreaterThan(0)
  })

  test('promtool finds nothing wrong', async (context) => {
    const { error } = spawnSync('promtool', ['--version'])
    if (error) context.skip('there is no promtool here (Debian: prometheus)')
    const text = await (await router.call('/metrics')).text()
    const checked = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
    expect(checked.stderr + checked.stdout).toBe('')
    expect(checked.status).toBe(0)
  })
})

describe('who may read metrics', () => {
  let router: TestRouter
  beforeAll(async () => {
    router = await testRouter({ files: simulatorOnly })
  })
  afterAll(() => router?.end())

  const keyWith = async (permissions: object) => {
    const made = await router.call('/v1/manage/apikey', { name: 'k', permissions })
    return ((await made.json()) as { api_key: string }).api_key
  }
  const statusFor = async (key: string) =>
    (await fetch(`${router.url}/metrics`, { headers: { authorization: `Bearer ${key}` } })).status

  test('a key that may read the management of the only organization, or operate the router', async () => {
    expect((await fetch(`${router.url}/metrics`)).status).toBe(401)
    expect(await statusFor(await keyWith({ manage: 'none', completions: 'write' }))).toBe(403)
    expect(await statusFor(await keyWith({ manage: 'read' }))).toBe(200)
    expect(await statusFor(await keyWith({ operate: 'read', manage: 'none' }))).toBe(200)
  })

  test('everybody, where they are public', async () => {
    const open = await testRouter({ files: simulatorOnly, settings: { metrics: { public: true } } })
    try {
      const answer = await fetch(`${open.url}/metrics`)
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        200,
        'text/plain; version=0.0.4; charset=utf-8',
      ])
    } finally {
      await open.end()
    }
  })

  test('nobody, where they are switched off', async () => {
    const off = await testRouter({ files: simulatorOnly, settings: { metrics: { enabled: false } } })
    try {
      expect((await off.call('/metrics')).status).toBe(404)
    } finally {
      await off.end()
    }
  })
})

type Labels = Record<string, string>

async function read(router: TestRouter) {
  const text = await (await router.call('/metrics')).text()
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', one = '']) => [key, one])
      return { name, labels: Object.fromEntries(pairs) as Labels, value: Number(value) }
    })
}

async function mixed(router: TestRouter, index: number): Promise<void> {
  const text = texts[index % texts.length] ?? ''
  const model = index % 3 === 0 ? 'policy/safe' : 'demo/trouble'
  const body = { model, stream: index % 2 === 0, max_tokens: 50, messages: [{ role: 'user', content: text }] }
  const answer = await router.call('/v1/chat/completions', body)
  await answer.text()
}

function ledgerOf({ folder }: TestRouter) {
  const db = new Database(join(folder, 'data/router.sqlite'), { readonly: true })
  try {
    const rows = db
      .prepare(
        `SELECT provider || '/' || model AS name, count(*) AS rows, sum(attempt_of IS NULL) AS calls,
         sum(attempt_of IS NULL AND error IS NOT NULL) AS failed, sum(cost_nano) AS nano,
         sum(coalesce(input, 0)) AS input, sum(coalesce(output, 0)) AS output FROM ledger GROUP BY name`,
      )
      .all() as {
      name: string
      rows: number
      calls: number
      failed: number
      nano: number
      input: number
      output: number
    }[]
    return new Map(rows.map((row) => [row.name, row]))
  } finally {
    db.close()
  }
}
