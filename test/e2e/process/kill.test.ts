import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, expect, test } from 'vitest'
import { routerProcess } from '../../helpers/process.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  pause,
  within,
} from '../../helpers/provider.ts'
import { routerFolder, testKey } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'

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

let provider: LoopbackProvider
let folder = ''

afterEach(async () => {
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A provider whose call number n uses n prompt tokens and 1 completion token. */
async function countingProvider(): Promise<LoopbackProvider> {
  return await loopbackProvider(async ({ body }, response) => {
    const n = Number(body.messages[0].content)
    const usage = { prompt_tokens: n, completion_tokens: 1, total_tokens: n + 1 }
    const facts = { id: `c${n}`, created: 1, model: 'm1' }
    await pause(n % 40)
    if (!body.stream) {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }]
      answerJson(response, { ...facts, object: 'chat.completion', choices, usage })
      return
    }
    beginStream(response)
    const chunk = (choices: object[], more: object = {}) =>
      `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices, ...more })}\n\n`
    response.write(chunk([{ index: 0, delta: { content: 'x' }, finish_reason: null }]))
    await pause(n % 20)
    response.end(`${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chunk([], { usage })}data: [DONE]\n\n`)
  })
}

test(
  'after kill -9 under load every reply that was delivered whole has exactly one row with its cost',
  slow,
  async () => {
    provider = await countingProvider()
    const made = routerFolder({ files: { 'providers/slow.yaml': manifest(provider.url) } })
    folder = made.folder
    const server = await routerProcess(made.configPath)
    const { url } = server
    const delivered: number[] = []
    let number = 0
    let dead = false
    const caller = async () => {
      while (!dead) {
        const n = ++number
        const stream = n % 2 === 0
        try {
          const response = await fetch(`${url}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
            body: JSON.stringify({
              model: 'slow/m1',
              user: `call ${n}`,
              messages: [{ role: 'user', content: `${n}` }],
              stream,
            }),
          })
          const text = await response.text()
          if (stream ? text.includes('[DONE]') : JSON.parse(text).usage.cost > 0) delivered.push(n)
        } catch {
          // The server died under this call.
        }
      }
    }
    const callers = Promise.all(Array.from({ length: 100 }, caller))
    while (delivered.length < 600) await pause(10)
    const death = server.end('SIGKILL')
    dead = true
    await death
    await within(5_000, 'the callers', callers)

    await routerProcess(made.configPath)
    const db = new Database(join(folder, 'data/router.sqlite'), { readonly: true })
    const rows = db.prepare('SELECT user, cost_nano AS cost, outcome FROM ledger').all() as {
      user: string
      cost: number
      outcome: string
    }[]
    const byCall = Map.groupBy(rows, ({ user }) => user)
    const wrong = delivered.filter((n) => {
      const found = byCall.get(`call ${n}`) ?? []
      return found.length !== 1 || found[0]?.cost !== n * 1_000 + 2_000 || found[0]?.outcome !== 'complete'
    })
    expect(wrong).toEqual([])
    const spent = (db.prepare('SELECT sum(nano) AS nano FROM key_spend').get() as { nano: number }).nano
    expect(spent).toBe(rows.reduce((sum, { cost }) => sum + cost, 0))
    db.close()
  },
)

test('on a signal to stop, the server finishes running calls, rejects new ones, settles all and exits with 0', async () => {
  let release = () => {}
  provider = await loopbackProvider(async ({ body }, response) => {
    beginStream(response)
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }] })}\n\n`
    response.write(chunk({ content: 'slow' }, null))
    release = () => response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`)
  })
  const made = routerFolder({ files: { 'providers/slow.yaml': manifest(provider.url) } })
  folder = made.folder
  const server = await routerProcess(made.configPath)
  const { url } = server
  const ask = () =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'slow/m1', messages: [{ role: 'user', content: 'x' }], stream: true }),
    })
  const running = await ask()
  const reader = running.body?.pipeThrough(new TextDecoderStream()).getReader()
  await reader?.read()
  const exited = server.end('SIGTERM')
  await pause(200)
  const refused = await ask().then(
    ({ status }) => status,
    () => 'connection refused',
  )
  expect([503, 'connection refused']).toContain(refused)
  release()
  let rest = ''
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) rest += read.value
  expect(rest).toContain('[DONE]')
  expect(await within(5_000, 'the exit', exited)).toBe(0)
  const db = new Database(join(folder, 'data/router.sqlite'), { readonly: true })
  expect(db.prepare('SELECT outcome FROM ledger').all()).toEqual([{ outcome: 'complete' }])
  db.close()
})
