import { describe, expect, test } from 'vitest'
import type { Reply } from '../../src/core/reply.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { errorFor, reportedFailure } from '../../src/upstream/provider-error.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { type Body, type Facts, joined, linesFor, linesOf, readIndependently } from './ollama-reader.ts'
import { benchDialect, type Replayed } from './replay.ts'

const ollama = benchDialect('ollama')
const recorded = recordings('ollama')
const answered = recorded.filter(({ response }) => response.status === 200)
const refused = recorded.filter(({ response }) => response.status !== 200)
const provider = { slug: 'x', auth: { scheme: 'none' }, headers: {}, errors: ollama.errors } as unknown as Provider

describe.skipIf(recordingsMissing)('every recorded answer', () => {
  for (const recording of answered) {
    const lines = linesOf(recording)
    const body = lines ? joined(lines) : recording.response.body

    test(`${recording.case} is read correctly`, async () => {
      const { reply, complete, error } = lines ? await replayed(lines) : await ollama.reply(body)
      expect(complete).toBe(true)
      expect(error).toBeUndefined()
      expect(factsOf(reply)).toEqual(readIndependently(body))
    })

    test(`${recording.case} means the same whole and streamed`, async () => {
      const whole = await ollama.reply(body)
      const streamed = await replayed(linesFor(body))
      expect(streamed.reply).toEqual(whole.reply)
    })
  }

  test('none is left out', () => {
    expect(answered.length + refused.length).toBe(recorded.length)
    expect(recorded.length).toBeGreaterThanOrEqual(11)
  })
})

describe.skipIf(recordingsMissing)('every recorded refusal has its error', () => {
  for (const recording of refused) {
    test(recording.case, () => {
      const { status, headers, body } = recording.response
      const error = errorFor(provider, { status, headers, text: JSON.stringify(body) })
      expect(error).toMatchObject({ code: 'model_not_found', message: body.error })
    })
  }
})

test.each([
  [400, '"llama3" does not support thinking', 'invalid_request'],
  [400, 'the input length exceeds the context length', 'context_length'],
  [401, 'unauthorized', 'provider_refused'],
  [503, 'server busy, please try again.  maximum pending requests exceeded', 'rate_limited'],
  [500, 'model requires more system memory (9.2 GiB) than is available (1.8 GiB)', 'provider_failed'],
])('status %d with "%s" is %s', (status, error, code) => {
  expect(errorFor(provider, { status, headers: {}, text: JSON.stringify({ error }) }).code).toBe(code)
})

describe('an answer', () => {
  test('thinks, speaks and calls in that order, even in one line', async () => {
    const call = (name: string, facts: object = {}) => ({ function: { name, arguments: { n: 1 } }, ...facts })
    const message = { thinking: 'Hm.', content: 'So.', tool_calls: [call('roll', { id: 'call_1' }), call('roll')] }
    for (const { reply } of await bothWays(replyBody(message))) {
      expect(reply.parts).toEqual([
        { type: 'reasoning', text: 'Hm.', by: 'maker' },
        { type: 'text', text: 'So.' },
        { type: 'tool_call', id: 'call_1', name: 'roll', arguments: '{"n":1}' },
        { type: 'tool_call', id: 'call_madeupid', name: 'roll', arguments: '{"n":1}' },
      ])
      expect(reply).toMatchObject({ finish: 'tool_calls', finish_raw: 'stop' })
    }
  })

  test('without a reason ends, without an end is cut', async () => {
    for (const { reply, complete } of await bothWays({ ...replyBody({ content: 'Hi' }), done_reason: undefined })) {
      expect(reply).toMatchObject({ finish: 'stop', parts: [{ type: 'text', text: 'Hi' }] })
      expect(complete).toBe(true)
    }
    for (const { complete } of await bothWays({ ...replyBody({ content: 'Hi' }), done: false }))
      expect(complete).toBe(false)
  })

  test('that breaks in the middle reports it in a line of its own', async () => {
    const { error, complete, reply } = await replayed([
      ...linesFor(replyBody({ content: 'Once' })).slice(0, -1),
      { error: 'gone' },
    ])
    expect(error && reportedFailure(provider, error)).toMatchObject({ code: 'provider_failed', message: 'gone' })
    expect(complete).toBe(false)
    expect(reply.parts).toEqual([{ type: 'text', text: 'Once' }])
    expect((await ollama.reply({ error: 'gone' })).error).toEqual({ message: 'gone' })
  })

  test('reports the log probability of each token', async () => {
    const logprobs = [{ token: 'Hi', logprob: -0.1, bytes: [72, 105], top_logprobs: [{ token: 'Ho', logprob: -2 }] }]
    for (const { reply } of await bothWays({ ...replyBody({ content: 'Hi' }), logprobs })) {
      expect(reply.logprobs).toEqual({ content: logprobs })
    }
  })

  test('is of the time it was made at, unless that is nothing', async () => {
    const created = async (created_at: string) => (await ollama.reply({ ...replyBody({}), created_at })).reply.created
    expect(await created('2025-06-09T19:58:55.337823123+02:00')).toBe(1_749_491_935)
    expect(await created('0001-01-01T00:00:00Z')).toBe(1)
  })

  test('draws an image', async () => {
    for (const { reply } of await bothWays(replyBody({ images: ['aGk='] }))) {
      expect(reply.parts).toEqual([{ type: 'image', data: 'aGk=', media_type: 'image/png' }])
    }
  })
})

function replyBody(message: object): Body {
  return {
    model: 'm',
    created_at: '2026-11-21T00:00:00Z',
    message: { role: 'assistant', content: '', ...message },
    done: true,
    done_reason: 'stop',
  }
}

async function replayed(lines: Body[]): Promise<Replayed> {
  return await ollama.stream(lines.map((data) => ({ data })))
}

/** Whole, and as one line of a stream. */
async function bothWays(answer: Body): Promise<Replayed[]> {
  return [await ollama.reply(answer), await replayed([answer])]
}

/** The same facts out of a folded reply. */
function factsOf({
  parts,
  finish,
  finish_raw: raw = '',
  usage: { modes, corrected, unread, ...usage },
  model = '',
  created,
}: Reply): Facts {
  return {
    text: parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''),
    reasoning: parts.flatMap((part) => (part.type === 'reasoning' ? (part.text ?? '') : [])).join(''),
    calls: parts.flatMap((part) =>
      part.type === 'tool_call'
        ? {
            id: part.id === 'call_madeupid' ? undefined : part.id,
            name: part.name,
            arguments: JSON.parse(part.arguments),
          }
        : [],
    ),
    finish,
    raw,
    usage,
    model,
    // Recordings whose time was taken away begin with the epoch, which counts as no time at all.
    created: created === 1 ? 0 : created,
  }
}
