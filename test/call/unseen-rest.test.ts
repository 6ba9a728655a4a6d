import { expect, test } from 'vitest'
import { UnseenRest } from '../../src/call/attempt/unseen-rest.ts'
import type { ProviderEvent } from '../../src/core/events.ts'
import { Fold } from '../../src/core/fold.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Target } from '../../src/manifest/target.ts'
import { estimateOutputTokens } from '../../src/money/estimate-tokens.ts'
import { yieldEach } from '../../src/runtime/event-loop.ts'

const target: Target = { provider: { slug: 'maker' } as Provider, model: 'm1' }

async function restOf(events: ProviderEvent[], maxSize = 1_000_000) {
  const fold = new Fold({ signer: 'maker', newId: () => 'r', now: () => 1 })
  const rest = new UnseenRest(fold)
  const batches = yieldEach(events.map((event) => [{ events: [event] }]))
  await rest.read(batches[Symbol.asyncIterator](), target, maxSize)
  return { rest, fold }
}

const texts = Array.from({ length: 3_000 }, (_, at): ProviderEvent => ({ text: ` ${at}` }))

test('of the texts of a rest only their length is kept, whatever the pieces', async () => {
  const { rest, fold } = await restOf(texts)
  const text = texts.map((event) => event.text).join('')
  const whole = estimateOutputTokens([{ type: 'text', text }])
  expect(fold.reply().parts).toEqual([])
  expect(rest.tokens).toBeGreaterThanOrEqual(whole)
  expect(rest.tokens).toBeLessThanOrEqual(whole + 5)
})

test('thinking, refusals and arguments count as text', async () => {
  const { rest } = await restOf([
    { reasoning: { text: 'x'.repeat(400) } },
    { refusal: 'x'.repeat(400) },
    { tool: { id: 'c', name: 'f', arguments: 'x'.repeat(400) } },
  ])
  expect(rest.tokens).toBe(300)
})

test('usage, the end and the uses of tools are kept', async () => {
  const { fold } = await restOf([
    { search: { id: 's', status: 'completed', query: 'It' } },
    { at: 1, opaque: { body: { type: 'file_search_call' } } },
    { at: 2, media: { type: 'image', id: 'ig_1', data: 'x'.repeat(10_000) } },
    { finish: 'stop' },
    { usage: { input: 5, output: 7, reasoning: 9 } },
  ])
  expect(fold.complete).toBe(true)
  expect(fold.usage).toEqual({ input: 5, output: 7, reasoning: 9 })
  expect(fold.reply().parts.map(({ type }) => type)).toEqual(['search', 'opaque', 'image'])
  expect(JSON.stringify(fold.reply()).length).toBeLessThan(1_000)
})

test('a rest that is larger than answers may be is not read to its end', async () => {
  const opaque = { body: { type: 'file_search_call', text: 'x'.repeat(10_000) } }
  const { fold } = await restOf(
    [...Array.from({ length: 50 }, (_, at) => ({ at, opaque })), { finish: 'stop' }],
    50_000,
  )
  expect(fold.complete).toBe(false)
  expect(fold.reply().parts.length).toBeLessThan(10)
})
