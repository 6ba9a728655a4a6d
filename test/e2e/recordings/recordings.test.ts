import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import { completionTokens, promptTokens } from '../../../src/core/usage.ts'
import { schemaMissing, violations } from '../../api/chatSchema.ts'
import { type Recording, recordingsMissing } from '../../helpers/recordings.ts'
import { usualThreads } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'
import { type Called, type Folder, openStage, providerOf, providersOf, type Stage, sorted } from './replay.ts'
import { type Answer, type Body, isStreamed, recordedAnswer } from './replay-answers.ts'
import { chunksIn, countsIn, countsOf, factsOf, gathered, tokensIn } from './replay-client.ts'
import { idleExceptions, listed, unexplained } from './replay-exceptions.ts'
import { asRecordedId, expectedOf, lastUsage, refusalOf } from './replay-expected.ts'
import { Grid } from './replay-grid.ts'
import type { Expected } from './replay-types.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(async () => {
  await stage.end()
})

const folders = Object.keys(providersOf) as Folder[]
const grid = new Grid(folders)

describe.skipIf(recordingsMissing).each(folders)('a whole and a streamed recording of %s', (folder) => {
  const { good, refused } = sorted(folder)
  const few = [good.find(isStreamed), good.find((one) => !isStreamed(one))].filter((one) => one !== undefined)
  test.each(named(few))('%s through chat', async (_, recording) => {
    const { chunks, tokens } = await expectReplayed(recording)
    expect(chunks + tokens).toBeGreaterThan(0)
  })

  test.each(named(refused.slice(0, 1)))('%s is refused', async (_, recording) => {
    for (const stream of [false, true])
      await expectRefusal(await ask(recording, stream, recordedAnswer(recording)), recording)
  })
})

describe.skipIf(recordingsMissing).each(folders)('all recordings of %s', slow, (folder) => {
  const { all, good, failing, refused } = sorted(folder)
  const counts = { whole: 0, streamed: 0, chunks: 0, tokens: 0, failing: 0, refused: 0 }

  test.each(named(good))('%s through chat', async (_, recording) => {
    const { chunks, tokens } = await expectReplayed(recording)
    counts.whole++
    counts.streamed++
    counts.chunks += chunks
    counts.tokens += tokens
  })

  if (failing.length > 0) {
    test.each(named(failing))('%s fails', async (_, recording) => {
      const called = await ask(recording, isStreamed(recording), recordedAnswer(recording))
      // A stream that fails before any content has an error of its own.
      const begun = called.text.startsWith('data:')
      const error = begun ? chunksIn(called.text).chunks.at(-1)?.error : JSON.parse(called.text).error
      expect(called.text).not.toContain('[DONE]')
      expect(called.text).not.toContain('"finish_reason":"stop"')
      expect(error).toMatchObject({ origin: 'provider', provider: providerOf(recording), message: expect.any(String) })
      expect((await stage.rowOf(called)).outcome).toBe(begun ? 'partial' : 'failed')
      counts.failing++
      grid.count(recording)
    })
  }

  if (refused.length > 0) {
    test.each(named(refused))('%s is refused', async (_, recording) => {
      for (const stream of [false, true]) {
        const called = await ask(recording, stream, recordedAnswer(recording))
        await expectRefusal(called, recording)
        counts.refused++
        grid.count(recording)
      }
    })
  }

  test('none is left out', () => {
    expect(good.length + failing.length + refused.length).toBe(all.length)
    const { whole, streamed, chunks, tokens } = counts
    console.info(
      `${folder} (${providersOf[folder]}): ${all.length} recordings; ${whole} whole and ${streamed} streamed replies ` +
        `(${chunks} chunks, ${tokens} tokens in the ledger) as recorded, ${counts.failing} failures, ${counts.refused} refusals`,
    )
    expect([whole, streamed]).toEqual([good.length, good.length])
  })
})

/** Replays a good answer whole and streamed. Returns the number of its chunks, and the tokens in the ledger. */
async function expectReplayed(recording: Recording): Promise<{ chunks: number; tokens: number }> {
  const seen = { chunks: 0, tokens: 0 }
  const expected = expectedOf(recording)
  const asRecorded = isStreamed(recording)
  for (const stream of [asRecorded, !asRecorded]) {
    const called = await ask(recording, stream, stream === asRecorded ? recordedAnswer(recording) : expected.otherWay)
    expect([called.status, called.status === 200 ? '' : called.text]).toEqual([200, ''])
    const row = await stage.rowOf(called)
    const reply = stream ? fromStream(called) : JSON.parse(called.text)
    const expectedReply = stream === asRecorded ? expected.reply : (expected.replyOtherWay ?? expected.reply)
    expectReply(reply, { ...expected, reply: expectedReply }, recording)
    expectFacts(called, reply, row, recording)
    const differences = [
      ...invalid(called, stream),
      ...usageDifferences(reply.usage, expected, recording),
      ...ledgerDifferences(row, expected),
    ]
    expect(unexplained('chat', recording, differences)).toEqual([])
    grid.count(recording)
    if (stream) seen.chunks = chunksIn(called.text).chunks.length
    else seen.tokens = tokensIn(countsOf(row.usage))
  }
  return seen
}

test.skipIf(recordingsMissing ?? schemaMissing)('every exception is needed', slow, () => {
  console.info(grid.text('Replies as recorded, whole and streamed, through /v1/chat/completions'))
  console.info(`Exceptions:\n${listed('chat')}`)
  expect(idleExceptions('chat')).toEqual([])
})

function named(list: readonly Recording[]) {
  return list.map((recording) => [recording.case, recording] as const)
}

async function ask(recording: Recording, stream: boolean, answer: Answer): Promise<Called> {
  const called = await stage.replay(recording, { api: 'chat', stream, answer })
  expect(called.received?.headers).toMatchObject(credentialOf(providerOf(recording)))
  return called
}

/** The credential for each provider. */
function credentialOf(slug: string): object {
  const proofs: { [slug: string]: object } = {
    bedrock: {
      authorization: expect.stringMatching(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/us-east-1\/bedrock/),
    },
    // Each thread gets one.
    vertex: { authorization: expect.stringMatching(new RegExp(`^Bearer token-[1-${usualThreads}]$`)) },
    azure: { 'api-key': 'azure-key' },
    cohere: { authorization: 'Bearer cohere-key' },
    perplexity: { authorization: 'Bearer perplexity-key' },
    ollama: {},
    anthropic: { 'x-api-key': 'sk-upstream' },
    google: { 'x-goog-api-key': 'sk-upstream' },
  }
  return proofs[slug] ?? { authorization: 'Bearer sk-upstream' }
}

function modelOf(recording: Recording): string {
  return `${providerOf(recording)}/${recording.model ?? 'unnamed'}`
}

const written = ['anthropic-messages', 'gemini', 'bedrock-converse', 'cohere-v2', 'ollama', 'openai-responses']

/** Providers of the client's own format are edited, the others written. */
function isEdited({ dialect }: Recording): boolean {
  return !written.includes(dialect)
}

function fromStream({ text }: Called): Body {
  const { chunks, done } = chunksIn(text)
  expect(done).toBe(true)
  expect(new Set(chunks.map(({ model }) => model)).size).toBe(1)
  return gathered(chunks)
}

/** The violations of the published schema in a reply or any chunk. */
function invalid({ text }: Called, stream: boolean): string[] {
  if (schemaMissing) return []
  if (!stream) return violations('CreateChatCompletionResponse', JSON.parse(text))
  const found = chunksIn(text).chunks.flatMap((chunk) => violations('CreateChatCompletionStreamResponse', chunk))
  return [...new Set(found)]
}

function expectReply(reply: Body, expected: Expected, recording: Recording): void {
  const facts = factsOf(reply, isEdited(recording))
  expect({ ...facts, calls: facts.calls.map(asRecordedId(expected)) }).toEqual(expected.reply)
  const [choice] = reply.choices
  if (!isEdited(recording))
    expect([choice.native_finish_reason, choice.stop_reason]).toEqual([expected.raw, expected.stop])
  if (expected.id) expect(reply.id.replace(/^chatcmpl-/, '')).toBe(expected.id.replace(/^chatcmpl-/, ''))
}

/** Checks the model that served, the price, and the ledger's row. */
function expectFacts({ headers }: Called, reply: Body, row: CallRecord, recording: Recording): void {
  const asked = modelOf(recording)
  const model = row.served === undefined ? asked : `${row.provider}/${row.served}`
  if (row.served !== undefined) expect(JSON.stringify(recording.response)).toContain(row.served)
  expect(reply.model).toBe(model)
  expect([headers.get('x-router-model'), headers.get('x-router-attempts')]).toEqual([model, '1'])
  expect(headers.get('x-router-dropped')).toBeNull()
  expect(row).toMatchObject({ outcome: 'complete', status: 200, requested: asked, attempts: 1, dropped: [] })
  if (!row.cost.unpriced) expect(reply.usage.cost).toBe(row.cost.nanoUsd / 1e9)
}

/** The differences between the client's usage and the recording. */
function usageDifferences(usage: Body, expected: Expected, recording: Recording): string[] {
  // Tools of the provider have no place in this API, but for searches of the web.
  const { file_searches, containers, drawing_output, ...counts } = countsOf(expected.usage)
  if (!isEdited(recording)) return expected.total ? differing('usage', countsIn(usage), counts) : []
  const recorded = lastUsage(recording)
  const whole = recording.dialect === 'xai' ? differing('counts', countsIn(usage), countsOf(expected.usage)) : []
  return recorded ? [...differing('usage', usage, recorded), ...whole] : []
}

/** The differences between the ledger's counts and the recording. */
function ledgerDifferences({ usage, cost }: CallRecord, expected: Expected): string[] {
  // A call of which the provider counted nothing is estimated.
  const isCounted = completionTokens(expected.usage) > 0 || expected.reply.calls.length === 0
  const counted = promptTokens(expected.usage) > 0 && isCounted
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

/** Members of `expected` that `found` has otherwise or not at all. */
function differing(path: string, found: Body, expected: Body): string[] {
  return Object.entries<Body>(expected).flatMap(([name, value]) => {
    const here = found?.[name]
    if (value !== null && typeof value === 'object') return differing(`${path}.${name}`, here, value)
    return here === value ? [] : [`${path}.${name} is ${here}, not ${value}`]
  })
}

async function expectRefusal(called: Called, recording: Recording): Promise<void> {
  const { response } = recording
  const { status, type, refusesKey } = refusalOf(recording)
  const { error } = JSON.parse(called.text)
  expect([called.status, error.type]).toEqual([status, type])
  expect(error).toMatchObject({ origin: 'provider', provider: providerOf(recording) })
  const { body } = response
  // Clients do not read what a provider says about the router's key.
  if (!refusesKey) expect(error.message).toContain(body.error?.message ?? body.error ?? body.message ?? body.detail)
  expect(error.message.includes('credential of this router')).toBe(refusesKey)
  if (status === 429) {
    const delay = /"retryDelay": ?"(\d+)s"/.exec(JSON.stringify(body))?.[1]
    expect(called.headers.get('retry-after')).toBe(response.headers['retry-after'] ?? delay ?? '1')
  }
  expect(await stage.rowOf(called)).toMatchObject({ outcome: 'failed', status, usage: {}, cost: { nanoUsd: 0 } })
}
