import { afterAll, beforeAll } from 'vitest'
import { fileHost } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { anthropicRows } from './sdk-anthropic-cells.ts'
import { chatRows } from './sdk-chat-cells.ts'
import { chatFailureRows } from './sdk-chat-failures.ts'
import { pixel } from './sdk-conversations.ts'
import { printed, type Way, watchingFetch, wires } from './sdk-grid.ts'
import { openaiRows } from './sdk-openai-cells.ts'
import { fakeProvider } from './sdk-provider.ts'
import { streamRows } from './sdk-stream-cells.ts'
import { vercelRows } from './sdk-vercel-cells.ts'
import type { FakeProvider, Wire } from './sdk-wire.ts'

const played = new Map<string, FakeProvider>()
const lost: string[] = []
let router: TestRouter
let files: Awaited<ReturnType<typeof fileHost>>

beforeAll(async () => {
  for (const wire of wires) played.set(wire.slug, await fakeProvider(wire))
  const urls = [...played].map(([slug, { url }]) => [slug, { base_url: url }])
  files = await fileHost(pixel)
  const chat = played.get('openai')?.url
  router = await testRouter({
    providers: { ...Object.fromEntries(urls), deepseek: { base_url: chat } },
    media: files.media,
    // A model that thinks is read on after its client has left: for less than tests wait.
    settings: { budget: { wait_for_usage: '200ms' } },
    env: Object.assign({}, ...wires.map(({ env }) => env)),
  })
})

afterAll(async () => {
  await router.end()
  await Promise.all([files, ...played.values()].map((server) => server.close()))
  console.info(printed())
})

function wayTo(wire: Wire): Way {
  return { wire, provider: played.get(wire.slug) as FakeProvider, router, fetch: watchingFetch(lost), lost }
}

chatRows({ wayTo, router: () => router, filesUrl: () => files.url })
chatFailureRows({ wayTo, router: () => router, filesUrl: () => files.url })
streamRows(wayTo)
openaiRows(wayTo)
anthropicRows(wayTo)
vercelRows(wayTo)
