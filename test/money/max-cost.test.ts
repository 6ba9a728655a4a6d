import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { ModelEntry, PricingTier } from '../../src/core/models/model.ts'
import type { Part } from '../../src/core/parts.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import type { Usage } from '../../src/core/usage.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { estimateTokens } from '../../src/money/estimate-tokens.ts'
import { priceOf } from '../../src/money/price.ts'
import { ogg, wav, webm } from '../media/sounds.ts'
import { maxCost } from './max-cost.ts'

/** The prices of these tests do not depend on when a call comes. */
const at = Date.UTC(2026, 10, 21, 12)

const million = (count: number) => count / 1e6

function asking(text: string, more: Partial<NeutralRequest> = {}): NeutralRequest {
  const messages = [{ role: 'user' as const, parts: [{ type: 'text' as const, text }] }]
  return { model: 'm', messages, ...more, origin: { api: 'chat', body: {} } }
}

function model(pricing: Partial<PricingTier>, more: Partial<ModelEntry> = {}): ModelEntry {
  const tier = { prompt_tokens_threshold: 0, input_price: 0, output_price: 0, ...pricing }
  return { api: 'chat', max_output_tokens: 1_000, pricing: [tier], ...more }
}

const unstated = { defaultOutputTokens: 400, at }
const nanoOf = (request: NeutralRequest, ...entries: (ModelEntry | undefined)[]) =>
  Number(
    maxCost(
      request,
      entries.map((entry) => (entry ? { entry } : {})),
      unstated,
    ).nanoUsd,
  )

describe('the maximum cost of a call', () => {
  const answers = model({ output_price: million(4) })

  test('is the cost of the longest output when only output has a price', () => {
    const request = asking('Hi', { max_output_tokens: 123 })
    expect(nanoOf(request, answers)).toBe(123 * 4_000)
    expect(nanoOf(request, answers)).toBe(priceOf({ input: 9, output: 123 }, answers, at).nanoUsd)
    expect(nanoOf(request, model({ output_price: 0.0375e-6 }))).toBe(4_613)
  })

  test('counts no more output than the model can give', () => {
    expect(nanoOf(asking('', { max_output_tokens: 5_000 }), answers)).toBe(1_000 * 4_000)
    expect(nanoOf(asking(''), model({ output_price: million(4) }, { max_output_tokens: 10 }))).toBe(10 * 4_000)
  })

  test('is finite however large the bound is, for a model with an unknown output limit', () => {
    const { max_output_tokens: _, ...boundless } = answers
    const absurd = asking('', { max_output_tokens: 1e308, n: 128 })
    expect(maxCost(absurd, [{ entry: boundless }], unstated)).toMatchObject({
      nanoUsd: 128n * 1_000_000_000n * 4_000n,
      outputTokens: 128e9,
    })
  })

  test('counts every requested choice', () => {
    const asked = (n: number | undefined, best?: unknown) => {
      const extensions = best === undefined ? {} : { extensions: { best_of: best as number } }
      return nanoOf(asking('', { max_output_tokens: 10, ...(n !== undefined && { n }), ...extensions }), answers)
    }
    expect(asked(3)).toBe(30 * 4_000)
    // Of so many only the best ones are returned.
    expect([asked(2, 5), asked(5, 2), asked(undefined, 4), asked(3, 'x')]).toEqual(
      [50, 50, 40, 30].map((tokens) => tokens * 4_000),
    )
  })

  test('adds a thinking budget that exceeds the output limit', () => {
    const thinking = { max_output_tokens: 600, reasoning: { effort: 'high' as const } }
    const larger = { ...answers, max_output_tokens: 9_000 }
    expect(nanoOf(asking('', thinking), larger)).toBe((600 + 1_024) * 4_000)
    expect(nanoOf(asking('', { ...thinking, reasoning: { budget: 2_000 } }), larger)).toBe(2_600 * 4_000)
    expect(nanoOf(asking('', { ...thinking, reasoning: { effort: 'none' } }), larger)).toBe(600 * 4_000)
    expect(nanoOf(asking('', { ...thinking, max_output_tokens: 4_000 }), larger)).toBe(4_000 * 4_000)
    expect(nanoOf(asking('', { ...thinking, reasoning: { budget: 0 } }), larger)).toBe(600 * 4_000)
    // No budget is smaller than 1,024, and an answer is written after it.
    expect(nanoOf(asking('', { ...thinking, reasoning: { budget: 1 } }), larger)).toBe((600 + 1_024) * 4_000)
    expect(nanoOf(asking('', { ...thinking, reasoning: { budget: 500 } }), larger)).toBe((600 + 1_024) * 4_000)
    expect(nanoOf(asking('', { ...thinking, max_output_tokens: 1_024 }), larger)).toBe(2_048 * 4_000)
    expect(nanoOf(asking('', { ...thinking, max_output_tokens: 1_025 }), larger)).toBe(1_025 * 4_000)
  })

  test('knows the smallest limit that an API accepts', () => {
    const target = { entry: answers, provider: { sameAs: 'responses' } as Provider }
    const most = (length: number, of = target) =>
      maxCost(asking('', { max_output_tokens: length }), [of], unstated).outputTokens
    expect([most(1), most(16), most(100)]).toEqual([16, 16, 100])
    expect(most(1, { ...target, provider: { sameAs: 'chat' } as Provider })).toBe(1)
  })

  test('is that of the most expensive target', () => {
    const request = asking('', { max_output_tokens: 10 })
    expect(nanoOf(request, answers, undefined, model({ output_price: million(9) }), answers)).toBe(90_000)
    expect(nanoOf(request, undefined)).toBe(0)
    expect(nanoOf(request)).toBe(0)
  })

  test('takes thinking at its own price when that is the dearer one', () => {
    const thinker = model({ output_price: million(2) }, { other_prices: { reasoning_token: million(3) } })
    expect(nanoOf(asking('', { max_output_tokens: 10 }), thinker)).toBe(30_000)
  })

  test('uses the price of audio when audio is requested', () => {
    const audioModel = model({ output_price: million(2) }, { other_prices: { output_audio_token: million(64) } })
    expect(nanoOf(asking('', { max_output_tokens: 10 }), audioModel)).toBe(20_000)
    expect(nanoOf(asking('', { max_output_tokens: 10, modalities: ['text', 'audio'] }), audioModel)).toBe(640_000)
  })

  const explicit = model({ input_price: million(1), caching_5m_price: million(1.25), caching_1h_price: million(2) })
  /** With its markup, and what providers put before it, no more than 10,000 tokens. */
  const text = 'x'.repeat(8_912)
  const hint = (cache: object) => [{ role: 'user' as const, parts: [{ type: 'text' as const, text, cache }] }]
  test.each<[fact: string, entry: ModelEntry, more: Partial<NeutralRequest>, nanoUsd: number]>([
    ['no cache', explicit, {}, 10_000_000],
    ['a part to be cached', explicit, { messages: hint({}) }, 12_500_000],
    ['a part to be cached for an hour', explicit, { messages: hint({ ttl: '1h' }) }, 20_000_000],
    ['all to be cached', explicit, { cache: { options: { type: 'ephemeral' } } }, 12_500_000],
    ['all to be cached for an hour', explicit, { cache: { options: { type: 'ephemeral', ttl: '1h' } } }, 20_000_000],
    ['a key for the cache alone', explicit, { cache: { key: 'k' } }, 10_000_000],
    ['a model that caches unasked', model({ input_price: million(1), caching_price: million(1.25) }), {}, 12_500_000],
    [
      'a model that keeps it for hours when asked',
      model({ input_price: million(1), caching_price: million(1.25), caching_1h_price: million(2.5) }),
      { cache: { retention: '12h' } },
      25_000_000,
    ],
  ])('takes the prompt at the dearest price that can apply: %s', (_, entry, more, nanoUsd) => {
    expect(nanoOf(asking(text, { max_output_tokens: 1, ...more }), entry)).toBe(nanoUsd)
  })

  describe('a recording whose bytes do not tell how long it is may be as long as the context', () => {
    const hearing = model({ input_price: million(1) }, { other_prices: { input_audio_token: million(40) } })
    const nanoFor = (bytes: Buffer, kind = 'audio/wav') => {
      const parts = [{ type: 'audio' as const, data: bytes.toString('base64'), media_type: kind }]
      return nanoOf({ ...asking(''), messages: [{ role: 'user', parts }] }, hearing)
    }
    const honest = nanoFor(wav(10))

    test.each([
      ['a WAV with next to no samples a second', wav(10, { rate: 100 }), 'audio/wav'],
      ['a WAV of another coding', Buffer.from(wav(10)).fill(0x55, 20, 21), 'audio/wav'],
      ['an Ogg that is declared as a WAV', ogg(10), 'audio/wav'],
      ['a WebM that is declared as an MP3', webm(10), 'audio/mpeg'],
    ])('%s', (_, bytes, kind) => {
      expect(nanoFor(bytes, kind)).toBeGreaterThan(honest * 2)
      expect(nanoFor(bytes, kind)).toBe(nanoFor(Buffer.from('x'), 'audio/unknown'))
    })

    test('a WAV whose samples are described after something else is measured', () => {
      const sound = wav(10)
      const junk = Buffer.concat([Buffer.from('JUNK\x10\0\0\0fmt '), Buffer.alloc(12)])
      expect(nanoFor(Buffer.concat([sound.subarray(0, 12), junk, sound.subarray(12)]))).toBeLessThan(honest * 1.01)
    })
  })

  test('uses the prices of audio and image input', () => {
    const hearing = model({ input_price: million(1) }, { other_prices: { input_audio_token: million(40) } })
    const parts = [{ type: 'audio' as const, data: 'aGk=', media_type: 'audio/wav' }]
    expect(nanoOf(asking('', { messages: [{ role: 'user', parts }] }), hearing)).toBe((1_024 + 64 + 1_001) * 40_000)
  })

  test.each<[fact: string, parts: Part[], nano: number]>([
    ['an image at that of images', [{ type: 'image', url: 'https://example.com/a.png' }], 20_000],
    ['a file of unknown content at the most expensive one', [{ type: 'file', url: 'https://example.com/a' }], 40_000],
    ['text at that of text', [{ type: 'text', text: 'Hi' }], 1_000],
  ])('takes the price of what may be in the prompt: %s', (_, parts, nano) => {
    const prices = { input_image_token: million(20), input_audio_token: million(40) }
    const request = asking('', { messages: [{ role: 'user', parts }] })
    const of = (other_prices: Record<string, number>) =>
      maxCost(request, [{ entry: model({ input_price: million(1) }, { other_prices }) }], unstated)
    expect(Number(of(prices).nanoUsd) / of(prices).promptTokens).toBe(nano)
    const images = { input_image_token: million(60) }
    expect(Number(of(images).nanoUsd) / of(images).promptTokens).toBe(nano === 1_000 ? 1_000 : 60_000)
  })

  test.each<[fact: string, more: Partial<NeutralRequest>, draws: boolean, nano: number]>([
    ['a model that draws may draw where nothing is said', {}, true, 30_000],
    ['a model that draws is asked for text alone', { modalities: ['text'] }, true, 2_000],
    ['images are asked for', { modalities: ['text', 'image'] }, false, 30_000],
    ['a model that does not draw is asked', {}, false, 2_000],
    ['a voice is asked for', { audio: { voice: 'a', format: 'wav' } }, false, 64_000],
  ])('takes the price of what may be in the reply: %s', (_, more, draws, nano) => {
    const other_prices = { output_image_token: million(30), output_audio_token: million(64) }
    const entry = model({ output_price: million(2) }, { other_prices, supports_image_generation: draws })
    expect(nanoOf(asking('', { max_output_tokens: 10, ...more }), entry)).toBe(10 * nano)
  })

  test('takes the tier that the prompt reaches, and a lower one that is dearer', () => {
    const pricing = [
      { prompt_tokens_threshold: 0, input_price: million(1), output_price: 0 },
      { prompt_tokens_threshold: 9_999, input_price: million(3), output_price: 0 },
    ]
    const limit = { max_output_tokens: 1 }
    expect(nanoOf(asking(text, limit), { api: 'chat', pricing })).toBe(30_000_000)
    expect(nanoOf(asking(text.slice(1), limit), { api: 'chat', pricing })).toBe(9_999_000)
    const falling = pricing.map((tier, place) => ({ ...tier, input_price: million(3 - place * 2) }))
    expect(nanoOf(asking(text, limit), { api: 'chat', pricing: falling })).toBe(9_999 * 3_000)
    // A prompt of as many tokens as the threshold is in the higher tier here: one less is in the lower one.
    const inclusive: ModelEntry = { api: 'chat', tier_from: 'at', pricing: falling }
    expect(nanoOf(asking(text, limit), inclusive)).toBe(9_998 * 3_000)
  })

  test('uses the most expensive class for each slice of a prompt', () => {
    const pricing = [
      { prompt_tokens_threshold: 0, input_price: 0, cached_price: million(5), output_price: 0 },
      { prompt_tokens_threshold: 600, input_price: million(2), cached_price: 0, output_price: 0 },
    ]
    const sliced: ModelEntry = { api: 'chat', pricing, tier_billing: 'marginal' }
    expect(priceOf({ cache_read: 600, input: 400 }, sliced, at).nanoUsd).toBe(3_800_000)
    expect(nanoOf(asking(text, { max_output_tokens: 1 }), sliced)).toBe((600 * 5 + 9_400 * 2) * 1_000)
  })

  test('assumes a requested mode that costs more, and none that costs less', () => {
    const served = { ...answers, multipliers: { flex: 0.5, priority: 1.75, fast: 2, us: 1.1 } }
    const bound = { max_output_tokens: 100 }
    expect(nanoOf(asking('', { ...bound, service_tier: 'priority' }), served)).toBe(700_000)
    expect(nanoOf(asking('', { ...bound, service_tier: 'flex' }), served)).toBe(400_000)
    expect(nanoOf(asking('', { ...bound, extensions: { speed: 'fast', inference_geo: 'us' } }), served)).toBe(880_000)
  })

  test('assumes the most expensive of the raised modes where the requested one has no price', () => {
    const asked = (tier: string, multipliers: Record<string, number>) =>
      nanoOf(asking('', { max_output_tokens: 100, service_tier: tier }), { ...answers, multipliers })
    expect(asked('fast', { priority: 2, reserved: 3, batch: 9 })).toBe(1_200_000)
    expect(asked('fast', { reserved: 2, priority: 3 })).toBe(1_200_000)
    expect(asked('fast', { priority: 3, fast: 2 })).toBe(800_000)
    expect(asked('scale', { priority: 3 })).toBe(400_000)
  })

  test('counts the allowed searches, ten by default, and the price of the request', () => {
    const searcher = model(
      {},
      { other_prices: { web_search_per_call: 0.01, per_request: 0.005, per_request_high: 0.012 } },
    )
    expect(nanoOf(asking(''), searcher)).toBe(5_000_000)
    expect(nanoOf(asking('', { web_search: {} }), searcher)).toBe(105_000_000)
    expect(nanoOf(asking('', { web_search: { max_uses: 4, context_size: 'high' } }), searcher)).toBe(52_000_000)
  })

  test('counts searches in files as well, as many as the request allows', () => {
    const searcher = model({}, { other_prices: { web_search_per_call: 0.01, file_search_per_call: 0.0025 } })
    const tools = (kind: string) => [{ kind, by: 'responses' as const, definition: { type: kind } }]
    const files = { tools: tools('file_search') }
    expect(nanoOf(asking('', files), searcher)).toBe(25_000_000)
    expect(nanoOf(asking('', { ...files, extensions: { max_tool_calls: 3 } }), searcher)).toBe(7_500_000)
    expect(nanoOf(asking('', { web_search: {}, extensions: { max_tool_calls: 3 } }), searcher)).toBe(30_000_000)
    expect(nanoOf(asking('', { tools: tools('code_interpreter') }), searcher)).toBe(0)
  })
})

describe('the longest prompt', () => {
  /** What providers put before a prompt, and around its one message and part. */
  const around = 1_024 + 64
  const provider = (facts?: JsonObject) =>
    ({ traits: facts ? [{ match: /./, facts }] : [], maker: 'm' }) as unknown as Provider
  const longest = (text: string, counted: number | undefined, facts?: JsonObject) => {
    const target = { model: 'm', entry: model({}), provider: provider(facts) }
    return maxCost(asking(text), [target], { ...unstated, ...(counted !== undefined && { counted }) }).promptTokens
  }
  // 10,000 bytes, of which 100 characters that are not ASCII have 300.
  const mixed = `${'x'.repeat(9_700)}${'漢'.repeat(100)}`

  test('has a token for each byte of a text that is not counted', () => {
    expect(longest(mixed, undefined)).toBe(10_000 + around)
    expect(longest(mixed, undefined, { token_factor: 1 })).toBe(10_000 + around)
  })

  test('has as many as are counted for a model of the same tokenizer', () => {
    expect(longest(mixed, 3_000, { token_factor: 1 })).toBe(3_000 + around)
  })

  test.each([
    ['half as many more', { token_factor: 1.5 }, 4_500],
    ['twice as many', { token_factor: 2 }, 6_000],
    ['twice as many where nothing is stated', undefined, 6_000],
  ])('of another tokenizer has %s, and two for each character that is not ASCII', (_, facts, tokens) => {
    expect(longest(mixed, 3_000, facts)).toBe(tokens + 200 + around)
    expect(longest('x'.repeat(10_000), 3_000, facts)).toBe(tokens + around)
  })

  test.each([
    ['the whole context, where that is more than the images beside it have', 50_000, 1, 50_000],
    ['what the images beside it have, where that is more than the context', 10_000, 2, 2 * 16_384],
    ['the whole context without images', 10_000, 0, 10_000],
  ])('counts for a file of unknown length %s', (_, context, images, tokens) => {
    const image = { type: 'image' as const, url: 'https://example.com/a.png' }
    const parts = [{ type: 'file' as const, url: 'https://example.com/a.pdf' }, ...Array(images).fill(image)]
    const request = asking('', { messages: [{ role: 'user', parts }] })
    const entry = model({}, { context_window: context })
    const { promptTokens } = maxCost(request, [{ entry }], unstated)
    // A message, and each of its parts.
    expect(promptTokens).toBe(1_024 + 32 + 32 * parts.length + tokens)
  })

  test.each<[fact: string, body: JsonObject, sameAs: string, contexts: number]>([
    ['an earlier response', { previous_response_id: 'r' }, 'responses', 1],
    ['a conversation', { conversation: { id: 'c' } }, 'responses', 1],
    ['a stored prompt', { prompt: { id: 'p' } }, 'responses', 1],
    ['a thread', { thread: 't' }, 'responses', 1],
    ['nothing', { previous_response_id: null }, 'responses', 0],
    ['what a provider of another API does not hear of', { previous_response_id: 'r' }, 'chat', 0],
  ])('has the whole context where the provider continues %s', (_, body, sameAs, contexts) => {
    const request = { ...asking('Hi'), origin: { api: 'responses', body } } as NeutralRequest
    const target = { entry: model({}, { context_window: 50_000 }), provider: { sameAs } as Provider }
    const { promptTokens } = maxCost(request, [target], unstated)
    expect(promptTokens).toBe(around + 2 + contexts * 50_000)
  })

  test('has no more than a token for each byte, nor fewer than are estimated', () => {
    expect(longest(mixed, 9_000)).toBe(10_000 + around)
    // Four ASCII characters are a token, and so is each other one; the markup of a message is four.
    expect(longest(mixed, 0, { token_factor: 1 })).toBe(9_700 / 4 + 100 + 4)
  })
})

describe('tools that run at the provider', () => {
  const entry = model({}, { context_window: 10_000, other_prices: { web_search_per_call: 0.01 } })
  type Asked = Partial<NeutralRequest>
  const used = (asked: Asked, facts: JsonObject = {}, sameAs = 'messages') => {
    const provider = { traits: [{ match: /./, facts }], maker: 'm', sameAs } as unknown as Provider
    const target = { model: 'm', entry, provider }
    const plain = maxCost(asking(''), [{ model: 'm', entry }], unstated)
    const { promptTokens, nanoUsd } = maxCost(asking('', asked), [target], unstated)
    // What is asked for is a part of the prompt as well.
    const tokens = promptTokens - plain.promptTokens
    return { contexts: Math.floor(tokens / 10_000), tokens, searches: Number(nanoUsd) / 10_000_000 }
  }
  const search = (web_search: object): Asked => ({ web_search })
  const tool = (kind: string, definition: JsonObject = {}, by = 'messages'): Asked => ({
    tools: [{ kind, by, definition: { type: kind, ...definition } }] as NonNullable<NeutralRequest['tools']>,
  })

  test.each<[fact: string, asked: Asked, facts: JsonObject, searches: number]>([
    ['ten of them, where nothing says how many', search({}), {}, 10],
    ['as many as the manifest says', search({}), { search_uses: 3 }, 3],
    ['as many as the request says, whatever the manifest does', search({ max_uses: 2 }), { search_uses: 3 }, 2],
    ['one at least', search({ max_uses: 0 }), {}, 1],
    ['one at least, whatever the manifest says', search({}), { search_uses: 0 }, 1],
  ])('may search: %s', (_, asked, facts, searches) => {
    expect(used(asked, facts)).toMatchObject({ searches, contexts: searches })
  })

  test('read no more after a search than the manifest says', () => {
    const few = used(search({ max_uses: 4 }), { search_tokens: 500 })
    expect(few).toMatchObject({ searches: 4, contexts: 0 })
    expect(few.tokens).toBeGreaterThanOrEqual(2_000)
    expect(few.tokens).toBeLessThan(2_200)
  })

  test('are bounded all together at Responses, and only there', () => {
    const bounded = { ...search({}), extensions: { max_tool_calls: 4 } }
    expect(used(bounded, {}, 'responses')).toMatchObject({ searches: 4, contexts: 4 })
    expect(used(bounded)).toMatchObject({ searches: 10, contexts: 10 })
    expect(used({ ...bounded, ...search({ max_uses: 2 }) }, {}, 'responses')).toMatchObject({ searches: 2 })
  })

  test.each<[fact: string, asked: Asked, facts: JsonObject, contexts: number]>([
    ['ten times, where nothing says how often', tool('code_execution'), {}, 10],
    ['as often as the tool says', tool('code_execution', { max_uses: 3 }), {}, 3],
    ['once at least', tool('code_execution', { max_uses: 0 }), {}, 1],
    ['as often as the manifest says without a tool', {}, { remote_uses: 2 }, 2],
    ['as often as both say together', tool('code_execution', { max_uses: 3 }), { remote_uses: 2 }, 5],
    ['never, where the client runs it', tool('bash'), {}, 0],
    ['never, where it is of another API', tool('code_execution', {}, 'responses'), {}, 0],
    ['ten times for the servers of MCP', { extensions: { mcp_servers: [] } }, {}, 10],
  ])('may read everything again: %s', (_, asked, facts, contexts) => {
    expect(used(asked, facts)).toMatchObject({ contexts, searches: 0 })
  })
})

describe('the length of a reply that is left open', () => {
  const thousand = model({ input_price: million(1), output_price: million(4) })
  /** A prompt of 10,000 tokens at most, which cost 10,000,000 nano-USD. */
  const prompt = asking('x'.repeat(8_912))
  const asked = (leftNano: bigint) => maxCost(prompt, [{ entry: thousand }], { defaultOutputTokens: 50, at, leftNano })

  test.each([
    ['an eighth of what is left, where the prompt leaves more', 20_000_000n, 625],
    ['all that the prompt leaves, where that is less than an eighth', 10_400_000n, 100],
    ['the configured length, where an eighth is less', 10_000_000n, 50],
    ['the configured length, where the prompt does not fit either', 1_000n, 50],
  ])('is paid by %s', (_, left, length) => {
    expect(asked(left)).toMatchObject({ lengths: [length], nanoUsd: 10_000_000n + BigInt(length) * 4_000n })
  })

  test('fits into what is left, down to the configured length', () => {
    for (let left = 10_200_000n; left <= 12_000_000n; left += 7_000n)
      expect(asked(left).nanoUsd).toBeLessThanOrEqual(left)
  })

  test.each<[fact: string, more: Partial<NeutralRequest>, entry: Partial<ModelEntry>, length: number]>([
    ['at the price of output', {}, {}, 625],
    ['shared by all choices', { n: 5 }, {}, 125],
    ['at the price of thinking, where that is higher', {}, { other_prices: { reasoning_token: million(10) } }, 250],
    ['at the price of the mode that is asked for', { service_tier: 'priority' }, { multipliers: { priority: 2 } }, 312],
    ['at that of no cheaper mode', { service_tier: 'flex' }, { multipliers: { flex: 0.5 } }, 625],
  ])('is paid %s', (_, more, entry, length) => {
    // An eighth of what is left is 2,500,000 nano-USD. A prompt costs nothing here.
    const priced = { ...model({ output_price: million(4) }), ...entry }
    const { lengths } = maxCost(asking('', more), [{ entry: priced }], {
      ...{ defaultOutputTokens: 50, at, leftNano: 20_000_000n },
    })
    expect(lengths).toEqual([length])
  })

  test.each([
    ['rise', [million(2), million(8)]],
    ['fall', [million(8), million(2)]],
  ])('is paid at the highest price of any tier where they %s', (_, [first = 0, second = 0]) => {
    const pricing = [
      { prompt_tokens_threshold: 0, input_price: 0, output_price: first },
      { prompt_tokens_threshold: 100, input_price: 0, output_price: second },
    ]
    const left = { defaultOutputTokens: 50, at, leftNano: 20_000_000n }
    expect(maxCost(asking(''), [{ entry: model({}, { pricing }) }], left).lengths).toEqual([312])
  })

  test('is sent where the catalog does not say how long a reply can be: the provider may give more than the context', () => {
    const entry: ModelEntry = {
      api: 'chat',
      context_window: 900,
      pricing: model({ output_price: million(4) }).pricing ?? [],
    }
    expect(maxCost(asking(''), [{ entry }], { defaultOutputTokens: 50, at, leftNano: 1_000_000_000n })).toMatchObject({
      ...{ lengths: [900], outputTokens: 900 },
    })
  })

  test('is that of the model where an eighth pays more', () => {
    expect(asked(80_000_000n)).toMatchObject({ lengths: [undefined], nanoUsd: 14_000_000n })
  })
})

describe('a prompt is sized up', () => {
  test.each([
    ['English, four characters to the token', 'x'.repeat(400), 100],
    ['Chinese, a token to the character', '漢'.repeat(1_000), 1_000],
    ['Russian, a token to the character', 'ж'.repeat(1_000), 1_000],
    ['pictures in the text, at most two tokens each', '🙂'.repeat(300), 600],
    ['a little of both', `${'x'.repeat(4_000)}${'漢'.repeat(1_000)}`, 2_000],
    ['one character among many', `${'x'.repeat(40_000)}é`, 10_001],
    ['nothing', '', 0],
  ])('%s', (_, text, tokens) => {
    expect(Math.abs(estimateTokens(asking(text)).tokens - 4 - tokens)).toBeLessThanOrEqual(tokens / 100)
  })

  test('with its tools, schemas, calls, results and media', () => {
    const parameters = { type: 'object', properties: { city: { type: 'string', description: 'x'.repeat(400) } } }
    const tools = [{ kind: 'function' as const, name: 'weather', parameters }]
    const bare = estimateTokens(asking('')).tokens
    expect(estimateTokens(asking('', { tools })).tokens - bare).toBeGreaterThan(100)
    expect(estimateTokens(asking('', { tools })).tokens - bare).toBeLessThan(150)
    expect(estimateTokens(asking('', { extensions: { context: 'x'.repeat(400) } })).tokens - bare).toBeGreaterThan(100)
    const parts = [
      { type: 'tool_result' as const, id: 'a', parts: [{ type: 'text' as const, text: 'x'.repeat(400) }] },
      { type: 'image' as const, url: 'https://example.com/a.png' },
      { type: 'file' as const, data: 'x'.repeat(640_000), media_type: 'application/pdf' },
    ]
    expect(estimateTokens(asking('', { messages: [{ role: 'user', parts }] })).tokens).toBe(4 + 100 + 1_000 + 10_000)
  })

  test('with the reasoning of earlier replies, or its summary where that is all', () => {
    const summary = { type: 'reasoning' as const, summary: 'x'.repeat(400) }
    const tokens = (part: Part) =>
      estimateTokens(asking('', { messages: [{ role: 'assistant', parts: [part] }] })).tokens
    expect([tokens(summary), tokens({ ...summary, text: 'x'.repeat(800) })]).toEqual([4 + 100, 4 + 200])
  })
})

const price = fc.integer({ min: 0, max: 100_000_000 }).map((pico) => pico / 1e12)
const tier = fc.record({
  input_price: price,
  cached_price: fc.option(price),
  caching_price: fc.option(price),
  caching_5m_price: fc.option(price),
  caching_1h_price: fc.option(price),
  output_price: price,
})

test('no call costs more than its maximum', () => {
  const property = fc.property(
    fc.record({
      tiers: fc.tuple(tier, tier),
      threshold: fc.integer({ min: 1, max: 2_000 }),
      billing: fc.constantFrom('whole' as const, 'marginal' as const),
      from: fc.constantFrom('above' as const, 'at' as const),
      reasoningPrice: fc.option(price, { nil: undefined }),
      searchPrice: price,
      text: fc.string({ maxLength: 8_000, unit: fc.constantFrom('a', 'é', '漢') }),
      cached: fc.constantFrom(undefined, '5m' as const, '1h' as const),
      limit: fc.option(fc.integer({ min: 1, max: 2_000 }), { nil: undefined }),
      n: fc.integer({ min: 1, max: 3 }),
      searches: fc.integer({ min: 0, max: 4 }),
      serving: fc.constantFrom(undefined, 'flex', 'priority'),
      shares: fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true })),
      fill: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    (given) => {
      const entry = entryOf(given)
      const request = asking(given.text, {
        n: given.n,
        ...(given.limit !== undefined && { max_output_tokens: given.limit }),
        ...(given.cached && { cache: { options: { type: 'ephemeral', ttl: given.cached } } }),
        ...(given.searches > 0 && { web_search: { max_uses: given.searches } }),
        ...(given.serving && { service_tier: given.serving }),
      })
      const maximum = maxCost(request, [{ entry }], unstated)
      const prompt = Math.floor(maximum.promptTokens * given.fill)
      const read = Math.floor(prompt * given.shares[0])
      const rest = prompt - read
      // Only requested cache writes happen, unless the provider caches by default.
      const writesUnasked = given.tiers.some((one) => one.caching_price !== null && one.caching_5m_price === null)
      const written = given.cached || writesUnasked ? Math.floor(rest * given.shares[1]) : 0
      const hour = given.cached === '1h' ? Math.floor(written / 2) : 0
      const output = Math.floor(maximum.outputTokens * given.shares[1])
      const usage: Usage = {
        input: rest - written,
        cache_read: read,
        cache_write_5m: written - hour,
        cache_write_1h: hour,
        output,
        reasoning: maximum.outputTokens - output,
        searches: given.searches,
        ...(given.serving && { modes: [given.serving] }),
      }
      expect(Number(maximum.nanoUsd)).toBeGreaterThanOrEqual(priceOf(usage, entry, at).nanoUsd)
      expect(Number(maximum.nanoUsd)).toBeGreaterThanOrEqual(priceOf({ ...usage, modes: [] }, entry, at).nanoUsd)
    },
  )
  fc.assert(property, { numRuns: 1_000 })
})

type Given = {
  tiers: [Omit<PricingTier, 'prompt_tokens_threshold'>, Omit<PricingTier, 'prompt_tokens_threshold'>]
  threshold: number
  billing: 'whole' | 'marginal'
  from: 'above' | 'at'
  reasoningPrice: number | undefined
  searchPrice: number
}

function entryOf({ tiers, threshold, billing, from, reasoningPrice, searchPrice }: Given): ModelEntry {
  const pricing = tiers.map((prices, place) => ({ prompt_tokens_threshold: place * threshold, ...prices }))
  return {
    api: 'chat',
    max_output_tokens: 1_000,
    pricing,
    tier_billing: billing,
    tier_from: from,
    multipliers: { flex: 0.5, priority: 2 },
    other_prices: {
      web_search_per_call: searchPrice,
      ...(reasoningPrice !== undefined && { reasoning_token: reasoningPrice }),
    },
  }
}
