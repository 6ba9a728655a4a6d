import { mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type RouterProcess, refusedStart, routerProcess } from '../helpers/process.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, pause, within } from '../helpers/provider.ts'
import { routerFolder } from '../helpers/router.ts'

const manifest = (url: string) => `slug: slow
name: Slow
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  m1:
    api: chat
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]
`

/** What each call costs in nano-USD: 10 tokens in, 5 out. */
const costNano = 20_000

let provider: LoopbackProvider
let folder = ''
let configPath = ''
/** Lets the provider answer the calls it holds back. */
let release = () => {}

beforeEach(async () => {
  const held = Promise.withResolvers<void>()
  release = held.resolve
  provider = await loopbackProvider(async ({ body }, response) => {
    const isHeld = body.messages.at(-1).content.includes('held')
    const facts = { id: 'c', created: 1, model: 'm1' }
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
    if (!body.stream) {
      if (isHeld) await held.promise
      const choices = [{ index: 0, message: { role: 'assistant', content: 'whole' }, finish_reason: 'stop' }]
      return answerJson(response, { ...facts, object: 'chat.completion', choices, usage })
    }
    beginStream(response)
    const chunk = (choices: object[], more: object = {}) =>
      `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices, ...more })}\n\n`
    response.write(chunk([{ index: 0, delta: { content: 'begun' }, finish_reason: null }]))
    if (isHeld) await held.promise
    response.end(`${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chunk([], { usage })}data: [DONE]\n\n`)
  })
  const made = routerFolder({ files: { 'providers/slow.yaml': manifest(provider.url) } })
  folder = made.folder
  configPath = made.configPath
})

afterEach(async () => {
  release()
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

const database = () => join(folder, 'data/router.sqlite')

/** More than the free pages of a small database hold. */
const note = 'x'.repeat(60_000)

const chat = (router: RouterProcess, user: string, content: string, more: object = {}) =>
  router.call('/v1/chat/completions', {
    model: 'slow/m1',
    user,
    metadata: { note },
    messages: [{ role: 'user', content }],
    ...more,
  })

async function ready(router: RouterProcess): Promise<{ status: number; reasons: string[] }> {
  const response = await router.call('/ready')
  const { reasons } = (await response.json()) as { reasons: string[] }
  return { status: response.status, reasons }
}

async function untilReady(router: RouterProcess): Promise<void> {
  await vi.waitFor(async () => expect(await ready(router)).toEqual({ status: 200, reasons: [] }), {
    timeout: 8_000,
    interval: 50,
  })
}

/** The users of the rows, in order; the sums beside the ledger must agree with it. */
function rows(): string[] {
  const db = new Database(database(), { readonly: true })
  try {
    const sum = (table: string, column: string) => db.prepare(`SELECT sum(${column}) FROM ${table}`).pluck().get()
    const ledger = sum('ledger', 'cost_nano')
    expect(sum('key_spend', 'nano')).toBe(ledger)
    expect(sum('organization_spend', 'nano')).toBe(ledger)
    const found = db.prepare('SELECT user, cost_nano AS cost FROM ledger ORDER BY at, user').all()
    const paid = found as { user: string; cost: number }[]
    expect(paid.map(({ cost }) => cost)).toEqual(paid.map(() => costNano))
    return paid.map(({ user }) => user).sort()
  } finally {
    db.close()
  }
}

type Fault = { reason: string; begin(): () => void }

const told = (fault: string) => () => {
  writeFileSync(`${database()}.fault`, fault)
  return () => rmSync(`${database()}.fault`)
}

function moved(from: string) {
  renameSync(from, `${from}.away`)
  return () => renameSync(`${from}.away`, from)
}

function locked() {
  const other = new Database(database())
  other.exec('BEGIN IMMEDIATE')
  return () => void other.close()
}

const faults: { [name: string]: Fault } = {
  'a full disk': { reason: 'the disk is full', begin: told('full') },
  'a file that is read-only': { reason: 'the database file or its folder is read-only', begin: told('read-only') },
  'a lock of another process': { reason: 'the disk does not answer', begin: locked },
  'a file that was moved away': {
    reason: 'the database file was deleted or moved away',
    begin: () => moved(database()),
  },
  'a folder that is gone': {
    reason: 'the database file was deleted or moved away',
    begin: () => moved(dirname(database())),
  },
}

describe.each(Object.entries(faults))('%s', (_, { reason, begin }) => {
  test('running calls are answered and counted, new ones refused before a provider is asked, until it is over', async () => {
    const router = await routerProcess(configPath)
    const made = await router.call('/v1/manage/apikey', { name: 'another' })
    const { api_key: another } = (await made.json()) as { api_key: string }
    expect(made.status).toBe(201)
    expect((await chat(router, 'before', 'now')).status).toBe(200)
    const running = [chat(router, 'whole', 'held'), chat(router, 'streamed', 'held', { stream: true })]
    await vi.waitFor(() => expect(provider.received).toHaveLength(3))
    const end = begin()
    release()

    const texts = await within(5_000, 'the answers', Promise.all(running.map(async (call) => (await call).text())))
    expect(JSON.parse(texts[0] ?? '')).toMatchObject({ choices: [{ message: { content: 'whole' } }] })
    expect(texts[1]).toContain('[DONE]')
    expect(await ready(router)).toEqual({ status: 503, reasons: [`The router cannot write its ledger: ${reason}.`] })

    const refused = await within(1_000, 'the refusal', chat(router, 'during', 'now'))
    const message = expect.stringContaining(reason)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await refused.json()).toEqual({
      error: { origin: 'router', type: 'api_error', code: 'unavailable', message },
    })
    expect(provider.received).toHaveLength(3)

    // What only reads goes on, also for a key that was not seen before.
    expect((await router.call('/v1/models')).status).toBe(200)
    expect((await router.call('/v1/manage/apikey')).status).toBe(200)
    const stranger = await router.call('/v1/auth/check', undefined, { authorization: `Bearer ${another}` })
    expect(stranger.status).toBe(200)
    const usage = await router.call('/v1/manage/org/usage')
    expect(usage.status).toBe(/moved/.test(reason) ? 503 : 200)
    expect(await usage.text()).not.toContain(folder)
    const change = await within(1_500, 'the change', router.call('/v1/manage/apikey', { name: note.slice(0, 200) }))
    if (reason !== 'the disk is full') expect(change.status).toBe(503)
    expect(await change.text()).not.toContain(folder)

    end()
    await untilReady(router)
    expect((await chat(router, 'after', 'now')).status).toBe(200)
    expect(rows()).toEqual(['after', 'before', 'streamed', 'whole'])
    expect((await router.call('/v1/manage/apikey', { name: 'later' })).status).toBe(201)
    expect(await router.end('SIGTERM')).toBe(0)
    expect(rows()).toEqual(['after', 'before', 'streamed', 'whole'])
  }, 30_000)
})

test('kill -9 while rows cannot be written loses none of them: the next start writes them', async () => {
  const router = await routerProcess(configPath)
  expect((await chat(router, 'before', 'now')).status).toBe(200)
  const running = chat(router, 'whole', 'held')
  await vi.waitFor(() => expect(provider.received).toHaveLength(2))
  const end = told('full')()
  release()
  expect((await running).status).toBe(200)
  await router.end('SIGKILL')
  end()
  expect(rows()).toEqual(['before'])
  const again = await routerProcess(configPath)
  expect(again.said()).toContain('"recovered":1')
  expect((await chat(again, 'after', 'now')).status).toBe(200)
  expect(rows()).toEqual(['after', 'before', 'whole'])
  await again.end('SIGTERM')
  await routerProcess(configPath)
  expect(rows()).toEqual(['after', 'before', 'whole'])
}, 20_000)

test('under load, through faults that come and go and a kill -9 within one, each reply that was delivered has one row', async () => {
  const router = await routerProcess(configPath, { env: { LOG_LEVEL: 'silent' } })
  const delivered: string[] = []
  const refused = new Set<number>()
  let number = 0
  let isOver = false
  const caller = async () => {
    while (!isOver) {
      const user = `call ${++number}`
      const stream = number % 2 === 0
      try {
        const response = await chat(router, user, 'now', { stream, metadata: { note: 'short' } })
        const text = await response.text()
        if (response.status !== 200) refused.add(response.status)
        else if (!stream || text.includes('[DONE]')) delivered.push(user)
      } catch {
        // The router was killed under this call.
      }
    }
  }
  const callers = Promise.all(Array.from({ length: 20 }, caller))
  for (const name of ['a file that is read-only', 'a lock of another process', 'a file that was moved away']) {
    await vi.waitFor(() => expect(delivered.length).toBeGreaterThan(0))
    const end = faults[name]?.begin()
    await vi.waitFor(() => expect(refused.size).toBe(1), { timeout: 6_000 })
    end?.()
    await untilReady(router)
    refused.clear()
    await pause(100)
  }
  const end = told('read-only')()
  await vi.waitFor(() => expect(refused.size).toBe(1), { timeout: 6_000 })
  expect([...refused]).toEqual([503])
  await router.end('SIGKILL')
  isOver = true
  await callers
  end()
  await routerProcess(configPath)
  const written = rows()
  expect(new Set(written).size).toBe(written.length)
  expect(delivered.filter((user) => !written.includes(user))).toEqual([])
}, 40_000)

test('told to stop while rows cannot be written, the router leaves them to the next start', async () => {
  const router = await routerProcess(configPath)
  const running = chat(router, 'whole', 'held')
  await vi.waitFor(() => expect(provider.received).toHaveLength(1))
  const end = told('read-only')()
  release()
  expect((await running).status).toBe(200)
  expect(await router.end('SIGTERM')).toBe(0)
  expect(router.said()).toContain('1 settled calls wait beside the database for the next start to write them')
  end()
  await routerProcess(configPath)
  expect(rows()).toEqual(['whole'])
}, 20_000)

test('a database that cannot be read is 503, not a key that is not known', async () => {
  const router = await routerProcess(configPath)
  expect((await chat(router, 'before', 'now')).status).toBe(200)
  const other = new Database(database())
  other.pragma('wal_checkpoint(TRUNCATE)')
  other.exec('CREATE TABLE later (a INTEGER)')
  other.pragma('wal_checkpoint(TRUNCATE)')
  truncateSync(database(), 4_096)
  const refused = await router.call('/v1/auth/check', undefined, { authorization: 'Bearer ir-somebody-else' })
  expect(refused.status).toBe(503)
  const { error } = (await refused.json()) as { error: { code: string; message: string } }
  expect(error.code).toBe('unavailable')
  expect(error.message).not.toContain(folder)
  expect((await router.call('/health')).status).toBe(200)
  other.close()
})

describe('a start', () => {
  test('on a full disk is refused with what to do; the next one makes everything, and shows the first key', async () => {
    const env = { INFERENCE_ROUTER_ADMIN_KEY: '' }
    mkdirSync(dirname(database()))
    const end = told('full')()
    const { code, said } = await refusedStart(configPath, { env })
    expect(code).toBe(1)
    expect(said).toMatch(/router\.sqlite: the disk is full; free some space/)
    end()
    const router = await routerProcess(configPath, { env })
    await vi.waitFor(() => expect(router.said()).toMatch(/shown only now:\s+ir-/))
  })

  test('on a database that became read-only is refused with what to do', async () => {
    const router = await routerProcess(configPath)
    expect(await router.end('SIGTERM')).toBe(0)
    const end = told('read-only')()
    const { code, said } = await refusedStart(configPath)
    expect(code).toBe(1)
    expect(said).toMatch(/router\.sqlite: the database file or its folder is read-only; make it writable/)
    end()
    await routerProcess(configPath)
  })

  test('on a database that another process keeps locked is refused with what to do', async () => {
    const router = await routerProcess(configPath)
    await router.end('SIGTERM')
    const unlock = locked()
    onTestFinished(unlock)
    const { code, said } = await refusedStart(configPath)
    expect(code).toBe(1)
    expect(said).toMatch(/router\.sqlite: the database is locked by another process; end that process/)
  }, 15_000)
})
