import { expect, onTestFinished, test } from 'vitest'
import { isObject } from '../../src/core/json.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import { requestAnswer } from '../../src/upstream/provider-answer.ts'
import { beginStream, loopbackProvider } from '../helpers/provider.ts'

/** The events of a stream that consists of these frames, from a provider that declares `[DONE]` as its end marker. */
async function eventsOf(...frames: string[]) {
  const provider = await loopbackProvider((_, response) => {
    beginStream(response)
    response.end(frames.map((frame) => `data: ${frame}\n\n`).join(''))
  })
  const httpClient = openHttpClient()
  onTestFinished(async () => {
    await httpClient.close()
    await provider.close()
  })
  const timeouts = { connectMs: 5_000, firstEventMs: 5_000, betweenEventsMs: 5_000, wholeMs: 5_000, totalMs: 5_000 }
  const target = {
    model: 'm',
    provider: {
      slug: 'maker',
      baseUrl: provider.url,
      auth: { scheme: 'none' },
      headers: {},
      timeouts,
      traits: [],
      errors: {},
      chat: {
        stream: { path: '/chat', format: 'sse', data: 'json', done: '[DONE]' },
        events: new Map([['*', { run: mapped }]]),
        patch: {},
      },
    } as unknown as Provider,
  }
  const { signal } = new AbortController()
  const answer = await requestAnswer(target, { body: {}, stream: true, signal, forwardedHeaders: [] }, httpClient)
  if (answer.kind !== 'stream') throw new Error('expected a stream')
  const read = []
  try {
    for await (const batch of answer.batches) read.push(...batch)
  } catch (failure) {
    return [...read, failure]
  }
  return read
}

/** The event itself, but nothing for one that no mapping understands. */
function mapped(input: unknown): unknown {
  if (isObject(input) && input.text === undefined && !input.error) throw new Error('no such event')
  return input
}

test('the end marker of a stream is an event without a payload', async () => {
  expect(await eventsOf('{"text":"Hi"}', '[DONE]', '{"text":"after the end"}')).toEqual([
    { payload: { text: 'Hi' }, events: [{ text: 'Hi' }] },
    { events: [{ done: true }] },
  ])
})

test('a stream that ends without its mark has no such event', async () => {
  expect(await eventsOf('{"text":"Hi"}')).toEqual([{ payload: { text: 'Hi' }, events: [{ text: 'Hi' }] }])
})

test('an end marker alone is not a reply', async () => {
  await expect(eventsOf('[DONE]')).rejects.toMatchObject({ code: 'provider_cut' })
})

test.each([
  ['a mapping that fails', '{"unknown":1}', 'provider_unreadable'],
  ['a text that is not JSON, twice,', '{"text":', 'provider_unreadable'],
  ['an error of the provider', '{"error":{"message":"overloaded"}}', 'provider_failed'],
])('%s comes after the events that came before it at the same time', async (_, frame, code) => {
  const isTorn = frame === '{"text":'
  const frames = isTorn ? [frame, frame] : [frame]
  expect(await eventsOf('{"text":"Hi"}', ...frames, '{"text":"later"}')).toEqual([
    { payload: { text: 'Hi' }, events: [{ text: 'Hi' }] },
    // The first is passed over.
    ...(isTorn ? [{ events: [], damaged: true }] : []),
    expect.objectContaining({ code }),
  ])
})
