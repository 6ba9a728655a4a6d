import { mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, type TestContext, test } from 'vitest'
import { openStore } from '../../../src/store/open.ts'
import { type RouterProcess, refusedStart, routerProcess } from '../../helpers/process.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  pause,
  within,
} from '../../helpers/provider.ts'
import { routerFolder } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'
import { eventually } from '../../helpers/time.ts'

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

/** The cost of each call in nano-USD: 10 tokens in, 5 out. */
const costNano = 20_000

/** A router's folder of its own, and a provider that delays its replies to prompts with `held` until they are released. */
type World = {
  provider: LoopbackProvider
  folder: string
  database: string
  release(): void
  /** Starts the router as a process. */
  start(env?: NodeJS.ProcessEnv): Promise<RouterProcess>
  /** Starts a router that must not start. */
  refused(env?: NodeJS.ProcessEnv): ReturnType<typeof refusedStart>
}

/** Tests that wait for real time limits do so at once: all that they share is the processor. */
async function newWorld(
  { onTestFinished: afterTest }: Pick<TestContext, 'onTestFinished'>,
  threads?: number,
): Promise<World> {
  const held = Promise.withResolvers<void>()
  const provider = await loopbackProvider(async ({ body }, response) => {
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
  const { folder, configPath } = routerFolder({ files: { 'providers/slow.yaml': manifest(provider.url) }, threads })
  afterTest(async () => {
    held.resolve()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    provider,
    folder,
    database: join(folder, 'data/router.sqlite'),
    release: held.resolve,
    start: (env = {}) => routerProcess(configPath, { env, afterTest }),
    refused: (env = {}) => refusedStart(configPath, { env, afterTest }),
  }
}

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
  await eventually(async () => expect(await ready(router)).toEqual({ status: 200, reasons: [] }))
}

/** The users of the rows, in order; the sums beside the ledger must agree with it. */
function rows({ database }: World): string[] {
  const db = new Database(database, { readonly: true })
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

/** Does as the next start does: writes the rows that the last process could not write. How many they were. */
async function recovered({ database }: World): Promise<number> {
  const store = await openStore(`sqlite:${database}`, { asRouter: true })
  try {
    return await store.ledger.recover()
  } finally {
    await store.close()
  }
}

/** `begin` breaks the database of this path, and returns a function that repairs it. */
type Fault = { reason: string; begin(database: string): () => void }

const injected = (fault: string) => (database: string) => {
  writeFileSync(`${database}.fault`, fault)
  return () => rmSync(`${database}.fault`)
}

function moved(from: string) {
  renameSync(from, `${from}.away`)
  return () => renameSync(`${from}.away`, from)
}

function locked(database: string) {
  const other = new Database(database)
  other.exec('BEGIN IMMEDIATE')
  return () => void other.close()
}

const faults: { [name: string]: Fault } = {
  'a full disk': { reason: 'the disk is full', begin: injected('full') },
  'a file that is read-only': { reason: 'the database file or its folder is read-only', begin: injected('read-only') },
  'a lock of another process': { reason: 'the disk does not respond', begin: locked },
  'a file that was moved away': {
    reason: 'the database file was deleted or moved away',
    begin: moved,
  },
  'a folder that is gone': {
    reason: 'the database file was deleted or moved away',
    begin: (database) => moved(dirname(database)),
  },
}

test.concurrent('when it stops while rows cannot be written, the router leaves them to the next start', {
  ...slow,
}, async (context) => {
  const world = await newWorld(context)
  const router = await world.start()
  const running = chat(router, 'whole', 'held')
  await eventually(() => expect(world.provider.received).toHaveLength(1))
  const end = injected('read-only')(world.database)
  world.release()
  expect((await running).status).toBe(200)
  expect(await router.end('SIGTERM')).toBe(0)
  expect(router.output()).toContain('1 settled calls are in the spill file; the next start writes them')
  end()
  expect(await recovered(world)).toBe(1)
  expect(rows(world)).toEqual(['whole'])
})

describe.concurrent('a start', () => {
  test('on a database that another process has locked fails with the remedy', slow, async (context) => {
    const world = await newWorld(context)
    await (await openStore(`sqlite:${world.database}`)).close()
    const unlock = locked(world.database)
    context.onTestFinished(unlock)
    const { code, output } = await world.refused()
    expect(code).toBe(1)
    expect(output).toMatch(/router\.sqlite: the database is locked by another process; end that process/)
  })

  test(
    'on a full disk fails with the remedy; the next one creates everything, and prints the first key',
    slow,
    async (context) => {
      const world = await newWorld(context)
      const env = { INFERENCE_ROUTER_ADMIN_KEY: '' }
      mkdirSync(dirname(world.database))
      const end = injected('full')(world.database)
      const { code, output } = await world.refused(env)
      expect(code).toBe(1)
      expect(output).toMatch(/router\.sqlite: the disk is full; free some space/)
      end()
      const router = await world.start(env)
      await eventually(() => expect(router.output()).toMatch(/displayed only once:\s+ir-/))
    },
  )

  test('on a database that became read-only fails with the remedy', slow, async (context) => {
    const world = await newWorld(context)
    await (await openStore(`sqlite:${world.database}`)).close()
    const end = injected('read-only')(world.database)
    const { code, output } = await world.refused()
    expect(code).toBe(1)
    expect(output).toMatch(/router\.sqlite: the database file or its folder is read-only; make it writable/)
    end()
    await world.start()
  })
})

describe.concurrent.each(Object.entries(faults))('%s', (name, { reason, begin }) => {
  const speed = name === 'a full disk' ? {} : slow
  test(
    'running calls are served and recorded, new ones rejected before a provider is called, until it is over',
    speed,
    async (context) => {
      const world = await newWorld(context)
      const router = await world.start()
      const made = await router.call('/v1/manage/apikey', { name: 'another' })
      const { api_key: another } = (await made.json()) as { api_key: string }
      expect(made.status).toBe(201)
      expect((await chat(router, 'before', 'now')).status).toBe(200)
      const running = [chat(router, 'whole', 'held'), chat(router, 'streamed', 'held', { stream: true })]
      await eventually(() => expect(world.provider.received).toHaveLength(3))
      const end = begin(world.database)
      world.release()

      const texts = await within(5_000, 'the answers', Promise.all(running.map(async (call) => (await call).text())))
      expect(JSON.parse(texts[0] ?? '')).toMatchObject({ choices: [{ message: { content: 'whole' } }] })
      expect(texts[1]).toContain('[DONE]')
      expect(await ready(router)).toEqual({ status: 503, reasons: [`The router cannot write its ledger: ${reason}.`] })

      const refused = await within(5_000, 'the refusal', chat(router, 'during', 'now'))
      const message = expect.stringContaining(reason)
      expect(refused.status).toBe(503)
      expect(refused.headers.get('retry-after')).toBe('1')
      expect(await refused.json()).toEqual({
        error: {
          origin: 'router',
          type: 'api_error',
          code: 'unavailable',
          param: null,
          doc_url: '/docs/errors.html#unavailable',
          message,
        },
      })
      expect(world.provider.received).toHaveLength(3)

      // Reads continue, also for a key that is not cached.
      expect((await router.call('/v1/models')).status).toBe(200)
      expect((await router.call('/v1/manage/apikey')).status).toBe(200)
      const stranger = await router.call('/v1/auth/check', undefined, { authorization: `Bearer ${another}` })
      expect(stranger.status).toBe(200)
      const usage = await router.call('/v1/manage/org/usage')
      expect(usage.status).toBe(/moved/.test(reason) ? 503 : 200)
      expect(await usage.text()).not.toContain(world.folder)
      const change = await within(5_000, 'the change', router.call('/v1/manage/apikey', { name: note.slice(0, 200) }))
      if (reason !== 'the disk is full') expect(change.status).toBe(503)
      expect(await change.text()).not.toContain(world.folder)

      end()
      await untilReady(router)
      expect((await chat(router, 'after', 'now')).status).toBe(200)
      expect(rows(world)).toEqual(['after', 'before', 'streamed', 'whole'])
      expect((await router.call('/v1/manage/apikey', { name: 'later' })).status).toBe(201)
      expect(await router.end('SIGTERM')).toBe(0)
      expect(rows(world)).toEqual(['after', 'before', 'streamed', 'whole'])
    },
  )
})

test.concurrent('kill -9 while rows cannot be written loses none of them: the next start writes them', {
  ...slow,
}, async (context) => {
  const world = await newWorld(context)
  const router = await world.start()
  expect((await chat(router, 'before', 'now')).status).toBe(200)
  const running = chat(router, 'whole', 'held')
  await eventually(() => expect(world.provider.received).toHaveLength(2))
  const end = injected('full')(world.database)
  world.release()
  expect((await running).status).toBe(200)
  await router.end('SIGKILL')
  end()
  expect(rows(world)).toEqual(['before'])
  const second = await world.start({ LOG_FORMAT: 'json' })
  expect(second.output()).toContain('"recovered":1')
  expect((await chat(second, 'after', 'now')).status).toBe(200)
  expect(rows(world)).toEqual(['after', 'before', 'whole'])
  await second.end('SIGTERM')
  expect(await recovered(world)).toBe(0)
  expect(rows(world)).toEqual(['after', 'before', 'whole'])
})

test.concurrent('under load of four threads, through faults that come and go and a kill -9 within one, each reply that was delivered has one row', {
  ...slow,
}, async (context) => {
  const world = await newWorld(context, 4)
  const router = await world.start({ LOG_LEVEL: 'silent' })
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
      // Many calls are always under way, and the processor is still there for the other tests.
      await pause(60)
    }
  }
  const callers = Promise.all(Array.from({ length: 20 }, caller))
  for (const name of ['a file that is read-only', 'a lock of another process', 'a file that was moved away']) {
    await eventually(() => expect(delivered.length).toBeGreaterThan(0))
    const end = faults[name]?.begin(world.database)
    await eventually(() => expect(refused.size).toBe(1))
    end?.()
    await untilReady(router)
    refused.clear()
    await pause(100)
  }
  const end = injected('read-only')(world.database)
  await eventually(() => expect(refused.size).toBe(1))
  expect([...refused]).toEqual([503])
  await router.end('SIGKILL')
  isOver = true
  await callers
  end()
  await recovered(world)
  const written = rows(world)
  expect(new Set(written).size).toBe(written.length)
  expect(delivered.filter((user) => !written.includes(user))).toEqual([])
})

test.concurrent('a database that cannot be read is 503, not a key that is not known', async (context) => {
  const world = await newWorld(context)
  const router = await world.start()
  expect((await chat(router, 'before', 'now')).status).toBe(200)
  const other = new Database(world.database)
  other.pragma('wal_checkpoint(TRUNCATE)')
  other.exec('CREATE TABLE later (a INTEGER)')
  other.pragma('wal_checkpoint(TRUNCATE)')
  truncateSync(world.database, 4_096)
  const refused = await router.call('/v1/auth/check', undefined, { authorization: 'Bearer ir-somebody-else' })
  expect(refused.status).toBe(503)
  const { error } = (await refused.json()) as { error: { code: string; message: string } }
  expect(error.code).toBe('unavailable')
  expect(error.message).not.toContain(world.folder)
  expect((await router.call('/health')).status).toBe(200)
  other.close()
})
