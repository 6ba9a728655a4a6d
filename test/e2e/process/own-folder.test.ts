import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { answerJson, loopbackProvider } from '../../helpers/provider.ts'
import { testRouter } from '../../helpers/router.ts'

const price = '[{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000001 }]'

/** A router with three providers in a folder of its own. `undefined` folders are those of a configuration that names none. */
async function ownRouter(url: string, folders: object | undefined) {
  const manifest = (slug: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: bearer, secret: "\${OWN_KEY}" }
dialect: openai-chat
models: { m: { api: chat, context_window: 1000, pricing: ${price} } }
`
  const warnings: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) })
  const slugs = ['one', 'two', 'three']
  const router = await testRouter({
    files: Object.fromEntries(slugs.map((slug) => [`providers/${slug}.yaml`, manifest(slug)])),
    settings: { folders },
    env: { OWN_KEY: 'own' },
    log,
  })
  onTestFinished(() => router.end())
  const listed = (await (await router.call('/v1/models')).json()) as { data: { id: string }[] }
  const replies = slugs.map(async (slug) => {
    const body = { model: `${slug}/m`, messages: [{ role: 'user', content: 'Hi' }] }
    const response = await router.call('/v1/chat/completions', body)
    const { choices, usage } = (await response.json()) as { choices: unknown; usage: unknown }
    return { status: response.status, choices, usage }
  })
  const absent = await router.call('/v1/chat/completions', { model: 'ollama/m', messages: [] })
  await absent.text()
  return {
    models: listed.data.map(({ id }) => id).sort(),
    replies: await Promise.all(replies),
    absent: absent.status,
    warnings,
  }
}

test('three providers in a folder of its own serve as before, with and without named folders', async () => {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
  const provider = await loopbackProvider((_, response) => answerJson(response, { id: 'x', choices, usage }))
  onTestFinished(() => provider.close())
  const named = await ownRouter(provider.url, { providers: './providers', catalog: './catalog', plugins: './plugins' })
  expect(named).toMatchObject({ models: ['one/m', 'three/m', 'two/m'], warnings: [] })
  expect(named.replies.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(await ownRouter(provider.url, undefined)).toEqual(named)
})
