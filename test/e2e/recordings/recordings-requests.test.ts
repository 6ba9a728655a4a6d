import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { propertiesOf, schemaMissing, violations } from '../../api/chatSchema.ts'
import { generateViolations } from '../../dialects/generate-schema.ts'
import { messagesViolations } from '../../dialects/messages-schema.ts'
import { responsesViolations } from '../../dialects/responses-schema.ts'
import { recordings, recordingsMissing } from '../../helpers/recordings.ts'
import { slow } from '../../helpers/slow.ts'
import { type Body, type Called, openStage, type Stage } from './replay.ts'

// Every recorded request of Chat Completions, through the router to the formats of others.

let stage: Stage
beforeAll(async () => {
  stage = await openStage(['openai', 'anthropic', 'google'])
})
afterAll(async () => {
  await stage.end()
})

/** Models of each format that want different things, and the published schema of its requests. */
const formats = [
  {
    slug: 'openai',
    models: ['gpt-4.1', 'gpt-5'],
    // What only Responses can do is asked for there.
    wrong: (body: Body, path: string) =>
      path.endsWith('/responses') ? responsesViolations(body) : violations('CreateChatCompletionRequest', body),
  },
  { slug: 'anthropic', models: ['claude-haiku-4-5', 'claude-opus-5-5'], wrong: messagesViolations },
  { slug: 'google', models: ['gemini-2.5-flash', 'gemini-3.5-flash'], wrong: generateViolations },
]

/** Tests every so many-th of the recorded requests and of the published fields. */
function testRequests({ slug, models, wrong }: (typeof formats)[number], step: number): void {
  const some = <T>(list: readonly T[]) => list.filter((_, index) => index % step === 0)
  const requested = some(recordings('openai-chat').filter(({ request }) => request?.body))
  const counts = { sent: 0, losses: 0 }

  test.each(requested.map((recording) => [recording.case, recording] as const))(
    '%s is valid there; a loss is reported, or refused when asked to be strict',
    async (_, recording) => {
      // The recording names a foreign host.
      const requested = JSON.stringify(recording.request?.body).replaceAll('https://example.com', stage.filesUrl)
      const body: Body = JSON.parse(requested)
      for (const model of slug === 'openai' ? [body.model] : models) {
        const { status, text, received, headers } = await stage.send({ ...body, model: `${slug}/${model}` })
        expect([status, status === 200 ? '' : text]).toEqual([200, ''])
        expect(wrong(received?.body, received?.path ?? '')).toEqual([])
        const dropped = headers.get('x-router-dropped')?.split(',') ?? []
        counts.sent++
        counts.losses += dropped.length
        await expectStrict({ ...body, model: `${slug}/${model}` }, dropped)
      }
    },
  )

  const fields = schemaMissing ? [] : some(propertiesOf('CreateChatCompletionRequest'))
  test.each(fields.filter((name) => name !== 'model'))('%s is mapped, passed or reported', async (name) => {
    for (const model of models) {
      const { value, beside = {} } = samples[name] ?? {}
      const without = { messages: [{ role: 'user', content: 'Hi' }], ...beside, model: `${slug}/${model}` }
      const [plain, given] = [await stage.send(without), await stage.send({ ...without, [name]: value })]
      expect([given.status, given.status === 200 ? '' : given.text]).toEqual([200, ''])
      expect(wrong(given.received?.body, given.received?.path ?? '')).toEqual([])
      const dropped = given.headers.get('x-router-dropped')?.split(',') ?? []
      const reported = dropped.some((field) => field.split('.')[0] === name)
      const sent = ({ received }: Called) => JSON.stringify([received?.path, received?.body])
      // The router answers or records these itself, or nothing depends on them.
      if (!['stream_options', 'metadata', 'prompt_cache_key'].includes(name))
        expect(reported || sent(plain) !== sent(given)).toBe(true)
      await expectStrict({ ...without, [name]: value }, dropped)
    }
  })

  test('were all sent', () => {
    console.info(`${slug}: ${counts.sent} recorded requests valid, ${counts.losses} losses reported`)
    expect(counts.sent).toBe(requested.length * (slug === 'openai' ? 1 : models.length))
  })
}

describe.skipIf(recordingsMissing || schemaMissing).each(formats)('some requests to $slug', (format) =>
  testRequests(format, 8),
)
describe.skipIf(recordingsMissing || schemaMissing).each(formats)('all requests to $slug', slow, (format) =>
  testRequests(format, 1),
)

async function expectStrict(body: Body, dropped: readonly string[]): Promise<void> {
  const { status, text, received } = await stage.send(body, { 'x-router-strict': 'true' })
  if (dropped.length === 0) {
    expect([status, status === 200 ? '' : text]).toEqual([200, ''])
    return
  }
  const { error } = JSON.parse(text)
  expect([status, received]).toEqual([400, undefined])
  expect(error).toMatchObject({ origin: 'router', code: 'loss_refused', param: dropped[0] })
  for (const field of dropped) expect(error.message).toContain(field)
}

const lookup = { name: 'lookup', description: 'Looks up.', parameters: { type: 'object', properties: {} } }
const tools = [{ type: 'function', function: lookup }]

/** One value for each field of the published schema, unlike its default, with the fields that it depends on. */
const samples: { [name: string]: { value: unknown; beside?: object } } = {
  messages: { value: [{ role: 'user', content: 'Other' }] },
  metadata: { value: { a: 'b' } },
  temperature: { value: 0.5 },
  top_p: { value: 0.5 },
  top_logprobs: { value: 2, beside: { logprobs: true } },
  logprobs: { value: true },
  user: { value: 'u' },
  safety_identifier: { value: 's' },
  prompt_cache_key: { value: 'k' },
  prompt_cache_retention: { value: '24h' },
  prompt_cache_options: { value: { mode: 'explicit' } },
  service_tier: { value: 'flex' },
  modalities: { value: ['text', 'audio'], beside: { audio: { voice: 'alloy', format: 'wav' } } },
  audio: { value: { voice: 'alloy', format: 'wav' }, beside: { modalities: ['text', 'audio'] } },
  verbosity: { value: 'low' },
  reasoning_effort: { value: 'high' },
  max_completion_tokens: { value: 1234 },
  max_tokens: { value: 1234 },
  frequency_penalty: { value: 0.5 },
  presence_penalty: { value: 0.5 },
  web_search_options: { value: {} },
  response_format: { value: { type: 'json_object' } },
  store: { value: true },
  moderation: { value: { model: 'omni-moderation-latest' } },
  stream: { value: true },
  // Whether the client sees counts is for us to do: providers always count.
  stream_options: { value: { include_usage: true }, beside: { stream: true } },
  stop: { value: ['END'] },
  logit_bias: { value: { 5: -100 } },
  n: { value: 2 },
  prediction: { value: { type: 'content', content: 'Hi' } },
  seed: { value: 7 },
  tools: { value: tools },
  tool_choice: { value: 'required', beside: { tools } },
  parallel_tool_calls: { value: false, beside: { tools } },
  functions: { value: [lookup] },
  function_call: { value: 'none', beside: { functions: [lookup] } },
}
