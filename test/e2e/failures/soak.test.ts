import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { beginStream, loopbackProvider } from '../../helpers/provider.ts'
import { testRouter } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'
import { eventually } from '../../helpers/time.ts'

const chunk = (content: string, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', created: 1, model: 'm1', choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`
const words = 12

test('streams whose clients leave and whose provider breaks off leave nothing behind', slow, async () => {
  let next = 0
  const open = new Set<number>()
  const provider = await loopbackProvider(async (_, response) => {
    const at = next++
    open.add(at)
    response.on('close', () => open.delete(at))
    if (at % 7 === 3) return void response.writeHead(500).end('{}')
    if (at % 7 === 5) return void response.socket?.resetAndDestroy()
    beginStream(response)
    for (let word = 0; word < words && !response.closed; word++) {
      if (at % 5 === 2 && word === at % words) return void response.destroy()
      response.write(chunk(`w${word} `))
      await pause(5)
    }
    response.end(`${chunk('', 'stop')}data: [DONE]\n\n`)
  })
  const router = await testRouter({
    files: {
      'providers/maker.yaml': `slug: maker
name: Maker
base_url: ${provider.url}
auth: { scheme: none }
dialect: openai-chat
models:
  m1: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0.000001 }] }
`,
    },
    providers: { maker: { limits: { concurrent: 50, queue: 200 } } },
    settings: { routing: {}, health: { consecutive_failures: 1_000, min_calls: 10_000 } },
  })
  const body = { model: 'maker/m1', stream: true, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }
  const endings: { [how: string]: number } = {}
  const client = async (at: number) => {
    const leaver = new AbortController()
    const leavesAt = at % 2 === 0 ? at % words : Infinity
    const answer = await fetch(`${router.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${limited}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: leaver.signal,
    })
    let text = ''
    const decoder = new TextDecoder()
    try {
      for await (const piece of answer.body ?? []) {
        text += decoder.decode(piece, { stream: true })
        if (text.split('"content"').length > leavesAt) leaver.abort()
      }
    } catch {
      return 'left'
    }
    if (answer.status !== 200) return 'refused'
    return text.endsWith('data: [DONE]\n\n') ? 'whole' : 'failed'
  }
  const made = (await (await router.call('/v1/manage/apikey', { name: 'k', monthly_limit: 1 })).json()) as {
    api_key_id: string
    api_key: string
  }
  const limited = made.api_key
  for (let round = 0; round < 3; round++) {
    const ends = await Promise.all(Array.from({ length: 60 }, (_, at) => client(at).catch(() => 'left')))
    for (const how of ends) endings[how] = (endings[how] ?? 0) + 1
  }
  expect(endings.whole).toBeGreaterThan(0)
  expect(endings.left).toBeGreaterThan(0)
  await eventually(() => expect(open.size).toBe(0))
  // Nothing is held: a limit with room for the worst case of one call more, and nothing else, lets that call through.
  const books = new Database(join(router.folder, 'data/router.sqlite'), { readonly: true })
  const spent = books.prepare('SELECT sum(cost_nano) FROM ledger WHERE key = ?').pluck().get(made.api_key_id) as number
  books.close()
  const worstNano = body.max_tokens * 1_000
  const limit = { monthly_limit: (spent + worstNano) / 1e9 }
  expect((await router.call(`/v1/manage/apikey/${made.api_key_id}/limit`, limit)).status).toBe(200)
  next = 0
  const last = await fetch(`${router.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${limited}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect([last.status, (await last.text()).endsWith('data: [DONE]\n\n')]).toEqual([200, true])
  await router.end()
  await provider.close()
})
