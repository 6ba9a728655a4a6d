import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Citation } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { priceOf } from '../../src/money/price.ts'
import { errorFor, reportedFailure } from '../../src/upstream/provider-error.ts'
import { recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { assembled, type Body, type Facts, framesOf, joined, readIndependently } from './cohere-v2-reader.ts'
import { benchDialect, type Replayed } from './replay.ts'

/** The prices of these tests do not depend on when a call comes. */
const at = Date.UTC(2026, 10, 21, 12)

const cohere = benchDialect('cohere-v2')
const recorded = recordings('cohere-v2')
const answered = recorded.filter(({ response }) => response.status === 200)
const refused = recorded.filter(({ response }) => response.status !== 200)
const provider = { slug: 'x', auth: { scheme: 'none' }, headers: {}, errors: cohere.errors } as unknown as Provider

describe.skipIf(recordingsMissing)('every recorded answer', () => {
  for (const recording of answered) {
    test(`${recording.case} is read correctly`, async () => {
      const expectedReply = readIndependently(assembled(recording))
      const { reply, complete, error } = recording.response.sse
        ? await cohere.stream(recordedEvents(recording))
        : await cohere.reply(recording.response.body)
      expect(complete).toBe(true)
      expect(error?.code).toBe(expectedReply.finish === 'error' ? 'INVALID_TOOL_GENERATION' : undefined)
      expect(factsOf(reply)).toEqual(expectedReply)
      for (const { text, citation } of citedTexts(reply)) {
        expect([...text].slice(citation.start, citation.end).join('')).toBe(citation.cited_text)
      }
    })

    test(`${recording.case} means the same whole and streamed`, async () => {
      const body = assembled(recording)
      const whole = await cohere.reply(body)
      const streamed = await cohere.stream(framesOf(body).map((data) => ({ data })))
      expect(readIndependently(joined(framesOf(body)))).toEqual(readIndependently(body))
      expect(streamed.reply).toEqual(whole.reply)
      expect(streamed.error).toEqual(whole.error)
    })
  }

  test('none is left out', () => {
    expect(answered.length + refused.length).toBe(recorded.length)
    expect(recorded.length).toBeGreaterThanOrEqual(23)
  })
})

describe.skipIf(recordingsMissing)('every recorded refusal has its error', () => {
  const codes: { [name: string]: string } = {
    'error-400': 'context_length',
    'error-401': 'provider_refused',
    'error-404': 'model_not_found',
  }
  for (const recording of refused) {
    test(recording.case, () => {
      const { status, headers, body } = recording.response
      const error = errorFor(provider, { status, headers, text: JSON.stringify(body) })
      expect(error.code).toBe(codes[/error-\d+/.exec(recording.case)?.[0] ?? ''])
      // What a provider says about the router's own credential is for the operator.
      const isOwn = error.code === 'provider_refused'
      expect(isOwn ? error.forLog : error.message).toContain(body.message)
    })
  }
})

test.each([
  [429, 'You are using a Trial key, which is limited to 1000 API calls / month.', 'quota_exhausted'],
  [429, 'You are using a Trial key, which is limited to 20 API calls / minute.', 'rate_limited'],
  [498, 'invalid token', 'content_blocked'],
  [499, 'request cancelled', 'provider_failed'],
  [504, 'gateway timeout', 'provider_timeout'],
])('status %d with "%s" is %s', (status, message, code) => {
  expect(errorFor(provider, { status, headers: {}, text: JSON.stringify({ message }) }).code).toBe(code)
})

describe('an answer', () => {
  test('that failed is a retryable failure, after the content so far', async () => {
    const failed = {
      ...replyBody({ tool_plan: 'I will' }, 'ERROR'),
      error: 'broken',
      error_type: 'INVALID_TOOL_GENERATION',
    }
    for (const { reply, error } of await bothWays(failed)) {
      expect(error).toEqual({ code: 'INVALID_TOOL_GENERATION', message: 'broken', retryable: true })
      expect(reply.parts).toEqual([{ type: 'text', text: 'I will' }])
    }
    for (const { error } of await bothWays(replyBody({}, 'TIMEOUT'))) {
      expect(error && reportedFailure(provider, error).code).toBe('provider_timeout')
    }
  })

  test('of an unknown reason is a stop with the raw reason, and without one it is cut', async () => {
    for (const { reply, complete } of await bothWays(
      replyBody({ content: [{ type: 'text', text: 'Hm' }] }, 'BRAND_NEW'),
    )) {
      expect(reply).toMatchObject({ finish: 'stop', finish_raw: 'BRAND_NEW' })
      expect(complete).toBe(true)
    }
    const frames = framesOf(replyBody({ content: [{ type: 'text', text: 'Hm' }] }))
    expect((await cohere.stream(frames.slice(0, -1).map((data) => ({ data })))).complete).toBe(false)
  })

  test('that breaks in the middle of a stream reports the error', async () => {
    const { error } = await cohere.stream([{ data: { type: 'message-start', id: 'x' } }, { data: { message: 'gone' } }])
    expect(error).toEqual({ message: 'gone' })
  })

  test('calls without arguments, absent or null, have an empty object', async () => {
    const call = (id: string, text: string) => ({ id, type: 'function', function: { name: 'roll', arguments: text } })
    const { reply } = await cohere.reply(replyBody({ tool_calls: [call('a', 'null'), call('b', '')] }, 'TOOL_CALL'))
    const streamed = await cohere.stream(
      framesOf(replyBody({ tool_calls: [call('a', '')] }, 'TOOL_CALL')).map((data) => ({ data })),
    )
    for (const part of [...reply.parts, ...streamed.reply.parts]) expect(part).toMatchObject({ arguments: '{}' })
  })

  test('cites the block that is meant: by its index, else the first text; plans too, thoughts never', async () => {
    const cited = (text: string, facts: object) => ({
      text,
      start: 0,
      end: 3,
      sources: [
        { type: 'document', id: 'd', document: { url: `https://example.com/${text}` } },
        { type: 'tool', id: 't:0', tool_output: { content: 'x', title: 7 } },
      ],
      ...facts,
    })
    const message = {
      content: [
        { type: 'thinking', thinking: 'hmm' },
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
      tool_plan: 'six',
      citations: [
        cited('two', { content_index: 2, type: 'TEXT_CONTENT' }),
        cited('hmm', { content_index: 0, type: 'THINKING_CONTENT' }),
        cited('six', { type: 'PLAN' }),
      ],
    }
    for (const { reply } of await bothWays(replyBody(message))) {
      expect(citedTexts(reply).map(({ text, citation: { url, title } }) => [text, url ?? title, title])).toEqual([
        ['two', 'https://example.com/two', 'd'],
        ['two', 't:0', 't:0'],
        ['six', 'https://example.com/six', 'd'],
        ['six', 't:0', 't:0'],
      ])
    }
    const { reply } = await cohere.reply(replyBody({ ...message, citations: [cited('one', {})] }))
    expect(citedTexts(reply).map(({ text }) => text)).toEqual(['one', 'one'])
  })

  test('reports log probabilities, and keeps blocks of new types', async () => {
    const likely = { token_ids: [1, 2], text: 'Hi', logprobs: [-0.5, -0.25] }
    const answer = { ...replyBody({ content: [{ type: 'text', text: 'Hi' }] }), logprobs: [likely] }
    for (const { reply } of await bothWays(answer)) {
      expect(reply.logprobs).toEqual({ content: [{ token: 'Hi', logprob: -0.75, bytes: null, top_logprobs: [] }] })
    }
    const { reply } = await cohere.reply(replyBody({ content: [{ type: 'drawing', lines: [] }] }))
    expect(reply.parts).toEqual([{ type: 'opaque', by: 'maker', body: { type: 'drawing', lines: [] } }])
  })

  test('counts nothing where nothing is billed, whatever the model read', async () => {
    const usage = {
      billed_units: { input_tokens: 0, output_tokens: 0 },
      tokens: { input_tokens: 500, output_tokens: 1, reasoning_tokens: 1 },
    }
    for (const { reply } of await bothWays({ ...replyBody({}), usage })) {
      expect(reply.usage).toEqual({ input: 0, output: 0, reasoning: 0 })
    }
  })

  test('counts the model’s tokens where billed units are missing', async () => {
    const usage = { tokens: { input_tokens: 50, output_tokens: 9, reasoning_tokens: 4 } }
    for (const { reply } of await bothWays({ ...replyBody({}), usage })) {
      expect(reply.usage).toEqual({ input: 50, output: 5, reasoning: 4 })
    }
  })
})

test.skipIf(recordingsMissing)(
  'a bill is the billed units by the price list, image and thoughts included',
  async () => {
    const models = parse(readFileSync(join(import.meta.dirname, '../../catalog/cohere.yaml'), 'utf8')).models
    const bills = answered.flatMap((recording) => {
      const model: ModelEntry | undefined = models[recording.model ?? '']
      const { billed_units } = assembled(recording).usage
      return model?.pricing?.[0] && billed_units ? [{ recording, model, billed_units, tier: model.pricing[0] }] : []
    })
    expect(bills.length).toBeGreaterThan(8)
    for (const { recording, model, billed_units: billed, tier } of bills) {
      const { usage } = (await cohere.reply(assembled(recording))).reply
      const usd = billed.input_tokens * (tier.input_price ?? 0) + billed.output_tokens * (tier.output_price ?? 0)
      expect(priceOf(usage, model, at).nanoUsd).toBe(Math.round(usd * 1e9))
    }
  },
)

function replyBody(message: object, finish_reason = 'COMPLETE'): Body {
  return { id: 'c1', message: { role: 'assistant', ...message }, finish_reason, usage: {} }
}

async function bothWays(answer: Body): Promise<Replayed[]> {
  return [await cohere.reply(answer), await cohere.stream(framesOf(answer).map((data) => ({ data })))]
}

/** The same facts out of a folded reply. */
function factsOf(reply: Reply): Facts {
  const { parts } = reply
  const { modes, ...counts } = reply.usage
  const content = (reply.logprobs as { content?: { token: string; logprob: number }[] } | undefined)?.content ?? []
  return {
    text: parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''),
    reasoning: parts.flatMap((part) => (part.type === 'reasoning' ? (part.text ?? '') : [])).join(''),
    calls: parts.flatMap((part) =>
      part.type === 'tool_call' ? { id: part.id, name: part.name, arguments: part.arguments } : [],
    ),
    citations: citedTexts(reply).map(({ citation }) => citation),
    finish: reply.finish,
    raw: reply.finish_raw ?? '',
    usage: Object.fromEntries(
      Object.entries(counts).flatMap(([name, count]) =>
        typeof count === 'number' && count !== 0 ? [[name, count]] : [],
      ),
    ),
    logprobs: content.map(({ token, logprob }) => [token, logprob]),
    id: reply.id,
  }
}

function citedTexts({ parts }: Reply): { text: string; citation: Citation }[] {
  return parts.flatMap((part) =>
    part.type === 'text' ? (part.citations ?? []).map((citation) => ({ text: part.text, citation })) : [],
  )
}
