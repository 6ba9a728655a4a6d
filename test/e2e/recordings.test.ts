import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { promptTokens } from '../../src/core/usage.ts'
import { propertiesOf, schemaMissing, violations } from '../api/chatSchema.ts'
import { generateViolations } from '../dialects/generate-schema.ts'
import { messagesViolations } from '../dialects/messages-schema.ts'
import { type Recording, recordings, recordingsMissing } from '../helpers/recordings.ts'
import {
  type Answer,
  type Body,
  type Called,
  type Folder,
  isStreamed,
  openStage,
  recordedAnswer,
  type Stage,
  speakers,
} from './replay.ts'
import { chunksIn, countsIn, countsOf, gathered, saidIn, tokensIn } from './replay-client.ts'
import { idleExceptions, unexplained } from './replay-exceptions.ts'
import { type Expected, expectedOf, lastUsage } from './replay-expected.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(async () => {
  await stage.end()
})

const folders = Object.keys(speakers) as Folder[]

/** Answers that say inside an HTTP success that they failed. */
const failsInside = ({ case: name }: Recording) => /\/(error-mid-stream|stop-reason-unexpected-tool-call)__/.test(name)

describe.skipIf(recordingsMissing).each(folders)('recordings of %s', (folder) => {
  const all = recordings(folder)
  const answered = all.filter(({ response }) => response.status === 200)
  const good = answered.filter((recording) => !failsInside(recording))
  const failing = answered.filter(failsInside)
  const refused = all.filter(({ response }) => response.status !== 200)
  const counts = { whole: 0, streamed: 0, chunks: 0, tokens: 0, failing: 0, refused: 0 }

  test.each(named(good))('%s', async (_, recording) => {
    const expected = expectedOf(recording)
    const asRecorded = isStreamed(recording)
    for (const stream of [asRecorded, !asRecorded]) {
      const called = await ask(recording, stream, stream === asRecorded ? recordedAnswer(recording) : expected.otherWay)
      expect([called.status, called.status === 200 ? '' : called.text]).toEqual([200, ''])
      const row = rowOf(called)
      const reply = stream ? fromStream(called) : JSON.parse(called.text)
      expectReply(reply, expected, recording)
      expectFacts(called, reply, row, recording)
      const differences = [
        ...invalid(called, stream),
        ...usageDifferences(reply.usage, expected, recording),
        ...ledgerDifferences(row, expected),
      ]
      expect(unexplained(recording, differences)).toEqual([])
      counts[stream ? 'streamed' : 'whole']++
      if (stream) counts.chunks += chunksIn(called.text).chunks.length
      else counts.tokens += tokensIn(countsOf(row.usage))
    }
  })

  if (failing.length > 0) {
    test.each(named(failing))('%s fails', async (_, recording) => {
      const called = await ask(recording, isStreamed(recording), recordedAnswer(recording))
      const error = isStreamed(recording) ? chunksIn(called.text).chunks.at(-1)?.error : JSON.parse(called.text).error
      expect(called.text).not.toContain('[DONE]')
      expect(called.text).not.toContain('"finish_reason":"stop"')
      expect(error).toMatchObject({ origin: 'provider', provider: speakers[folder], message: expect.any(String) })
      expect(rowOf(called).outcome).toBe(isStreamed(recording) ? 'partial' : 'failed')
      counts.failing++
    })
  }

  if (refused.length > 0) {
    test.each(named(refused))('%s is refused', async (_, recording) => {
      for (const stream of [false, true]) {
        const called = await ask(recording, stream, recordedAnswer(recording))
        expectRefusal(called, recording)
        counts.refused++
      }
    })
  }

  test('none is left out', () => {
    expect(good.length + failing.length + refused.length).toBe(all.length)
    const { whole, streamed, chunks, tokens } = counts
    console.info(
      `${folder} (${speakers[folder]}): ${all.length} recordings; ${whole} whole and ${streamed} streamed replies ` +
        `(${chunks} chunks, ${tokens} tokens in the ledger) as recorded, ${counts.failing} failures, ${counts.refused} refusals`,
    )
    expect([whole, streamed]).toEqual([good.length, good.length])
  })
})

test.skipIf(recordingsMissing ?? schemaMissing)('every exception is needed', () => {
  expect(idleExceptions()).toEqual([])
})

function named(list: readonly Recording[]) {
  return list.map((recording) => [recording.case, recording] as const)
}

async function ask({ dialect, model }: Recording, stream: boolean, answer: Answer): Promise<Called> {
  return await stage.replay({ slug: speakers[dialect as Folder], model, stream, answer })
}

function rowOf({ headers }: Called): CallRecord {
  const row = stage.store.ledger.find(headers.get('x-request-id') ?? '')
  if (!row) throw new Error('the call has no row in the ledger')
  return row
}

function modelOf({ dialect, model }: Recording): string {
  return `${speakers[dialect as Folder]}/${model ?? 'unnamed'}`
}

/** Providers of the client's own format are edited, the others written. */
function isEdited({ dialect }: Recording): boolean {
  return dialect !== 'anthropic-messages' && dialect !== 'gemini'
}

function fromStream({ text }: Called): Body {
  const { chunks, done } = chunksIn(text)
  expect(done).toBe(true)
  expect(new Set(chunks.map(({ model }) => model)).size).toBe(1)
  return gathered(chunks)
}

/** What is wrong with a reply or any chunk by the published schema. */
function invalid({ text }: Called, stream: boolean): string[] {
  if (schemaMissing) return []
  if (!stream) return violations('CreateChatCompletionResponse', JSON.parse(text))
  const found = chunksIn(text).chunks.flatMap((chunk) => violations('CreateChatCompletionStreamResponse', chunk))
  return [...new Set(found)]
}

function expectReply(reply: Body, expected: Expected, recording: Recording): void {
  const said = saidIn(reply, isEdited(recording))
  expect({ ...said, calls: said.calls.map(asRecorded(expected)) }).toEqual(expected.said)
  const [choice] = reply.choices
  if (!isEdited(recording))
    expect([choice.native_finish_reason, choice.stop_reason]).toEqual([expected.raw, expected.stop])
  if (expected.id) expect(reply.id.replace(/^chatcmpl-/, '')).toBe(expected.id.replace(/^chatcmpl-/, ''))
}

/** Ids that the router made are not in the recording. */
function asRecorded({ said }: Expected) {
  return (call: Body, index: number) => {
    if (said.calls[index]?.id !== 'made up') return call
    expect(call.id).toMatch(/^call_\w{24}$|^made up$/)
    return { ...call, id: 'made up' }
  }
}

/** Who served, at what price, and that the ledger says the same. */
function expectFacts({ headers }: Called, reply: Body, row: CallRecord, recording: Recording): void {
  const model = modelOf(recording)
  expect(reply.model).toBe(model)
  expect([headers.get('x-router-model'), headers.get('x-router-attempts')]).toEqual([model, '1'])
  expect(headers.get('x-router-dropped')).toBeNull()
  expect(row).toMatchObject({ outcome: 'complete', status: 200, requested: model, attempts: 1, dropped: [] })
  if (!row.cost.unpriced) expect(reply.usage.cost).toBe(row.cost.nanoUsd / 1e9)
}

/** Where the client's usage is not what the recording says. */
function usageDifferences(usage: Body, expected: Expected, recording: Recording): string[] {
  if (!isEdited(recording)) return expected.total ? differing('usage', countsIn(usage), countsOf(expected.usage)) : []
  const told = lastUsage(recording)
  const whole = recording.dialect === 'xai' ? differing('counts', countsIn(usage), countsOf(expected.usage)) : []
  return told ? [...differing('usage', usage, told), ...whole] : []
}

/** Where the ledger's counts are not what the recording says. */
function ledgerDifferences({ usage, cost }: CallRecord, expected: Expected): string[] {
  const counted = promptTokens(expected.usage) > 0
  if (!counted) return differing('estimated', { estimated: cost.estimated }, { estimated: true })
  const own = countsOf(usage)
  return [
    ...differing(
      'ledger',
      { ...own, estimated: cost.estimated },
      { ...countsOf(expected.usage), estimated: undefined },
    ),
    ...differing('ledger', countsOf(expected.usage), own),
    ...(Math.abs((usage.reported_cost ?? 0) - (expected.usage.reported_cost ?? 0)) < 1e-9 ? [] : ['reported cost']),
    ...(tokensIn(own) === expected.total ? [] : [`total is ${tokensIn(own)}, not ${expected.total}`]),
  ]
}

/** Members of `told` that `found` has otherwise or not at all. */
function differing(path: string, found: Body, told: Body): string[] {
  return Object.entries<Body>(told).flatMap(([name, value]) => {
    const here = found?.[name]
    if (value !== null && typeof value === 'object') return differing(`${path}.${name}`, here, value)
    return here === value ? [] : [`${path}.${name} is ${here}, not ${value}`]
  })
}

/** The status that callers get for a provider's status. */
function statusFor(status: number): number {
  if (status === 429 || status === 413) return status
  return status === 401 || status === 403 || status >= 500 ? 502 : 400
}

function expectRefusal(called: Called, { dialect, case: name, response }: Recording): void {
  // Google says 400 where it refuses our key.
  const refusesKey = /^gemini\/error-400__google/.test(name)
  const status = refusesKey ? 502 : statusFor(response.status)
  const { error } = JSON.parse(called.text)
  const types: { [status: number]: string } = {
    400: 'invalid_request_error',
    429: 'rate_limit_error',
    502: 'api_error',
  }
  expect([called.status, error.type]).toEqual([status, types[status]])
  expect(error).toMatchObject({ origin: 'provider', provider: speakers[dialect as Folder] })
  const { body } = response
  expect(error.message).toContain(body.error?.message ?? body.message ?? body.detail)
  expect(error.message.includes('credential of this router')).toBe(refusesKey || [401, 403].includes(response.status))
  if (status === 429) {
    const delay = /"retryDelay": ?"(\d+)s"/.exec(JSON.stringify(body))?.[1]
    expect(called.headers.get('retry-after')).toBe(response.headers['retry-after'] ?? delay ?? '1')
  }
  expect(rowOf(called)).toMatchObject({ outcome: 'failed', status, usage: {}, cost: { nanoUsd: 0 } })
}

// ---------------------------------------------------------------------------------------------------------------------
// Requests

/** Models of each format that want different things, and the published schema of its requests. */
const formats = [
  {
    slug: 'openai',
    models: ['gpt-4.1', 'gpt-5'],
    wrong: (body: Body) => violations('CreateChatCompletionRequest', body),
  },
  { slug: 'anthropic', models: ['claude-haiku-4-5', 'claude-opus-5-5'], wrong: messagesViolations },
  { slug: 'google', models: ['gemini-2.5-flash', 'gemini-3.5-flash'], wrong: generateViolations },
]

describe.skipIf(recordingsMissing || schemaMissing).each(formats)('requests to $slug', ({ slug, models, wrong }) => {
  const asked = recordings('openai-chat').filter(({ request }) => request?.body)
  const counts = { sent: 0, losses: 0 }

  test.each(named(asked))(
    '%s is valid there; a loss is reported, or refused when asked to be strict',
    async (_, recording) => {
      // What was recorded names a host that is not ours to ask.
      const asked = JSON.stringify(recording.request?.body).replaceAll('https://example.com', stage.filesUrl)
      const body: Body = JSON.parse(asked)
      for (const model of slug === 'openai' ? [body.model] : models) {
        const { status, text, received, headers } = await stage.send({ ...body, model: `${slug}/${model}` })
        expect([status, status === 200 ? '' : text]).toEqual([200, ''])
        expect(wrong(received?.body)).toEqual([])
        const dropped = headers.get('x-router-dropped')?.split(',') ?? []
        counts.sent++
        counts.losses += dropped.length
        await expectStrict({ ...body, model: `${slug}/${model}` }, dropped)
      }
    },
  )

  const fields = schemaMissing ? [] : propertiesOf('CreateChatCompletionRequest')
  test.each(fields.filter((name) => name !== 'model'))('%s is mapped, passed or reported', async (name) => {
    for (const model of models) {
      const { value, beside = {} } = samples[name] ?? {}
      const without = { messages: [{ role: 'user', content: 'Hi' }], ...beside, model: `${slug}/${model}` }
      const [plain, given] = [await stage.send(without), await stage.send({ ...without, [name]: value })]
      expect([given.status, given.status === 200 ? '' : given.text]).toEqual([200, ''])
      expect(wrong(given.received?.body)).toEqual([])
      const dropped = given.headers.get('x-router-dropped')?.split(',') ?? []
      const reported = dropped.some((field) => field.split('.')[0] === name)
      const sent = ({ received }: Called) => JSON.stringify([received?.path, received?.body])
      if (name !== 'stream_options') expect(reported || sent(plain) !== sent(given)).toBe(true)
      await expectStrict({ ...without, [name]: value }, dropped)
    }
  })

  test('were all sent', () => {
    console.info(`${slug}: ${counts.sent} recorded requests valid, ${counts.losses} losses reported`)
    expect(counts.sent).toBe(asked.length * (slug === 'openai' ? 1 : models.length))
  })
})

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

/** One value for each field of the published schema, unlike its default, with what it needs beside it. */
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
