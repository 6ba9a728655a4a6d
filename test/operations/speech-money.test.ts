import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newKey } from '../e2e/money/budget-world.ts'
import {
  answerJson,
  audioOf,
  eventsIn,
  mp3Of,
  openaiSpeech,
  type SpeechStage,
  type SpeechWorld,
  sendEvents,
  sendPieces,
  speechStage,
  wavOf,
} from './speech-world.ts'

// What speech costs: exactly, by what was counted, else by an estimate that says so.

let stage: SpeechStage
let world: Omit<SpeechWorld, 'end'>
beforeAll(async () => {
  stage = await speechStage({
    openai: { ...openaiSpeech, models: { ...openaiSpeech.models, whole: tokensAtOnce, unknown: { api: 'speech' } } },
    google: { base: '/v1beta', models: { tokens: { api: 'speech', pricing: tokenPrices } } },
  })
})
afterAll(() => stage?.end())

const usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 }

describe('by character', () => {
  test.each(['audio', 'sse'])('%s: known in advance, and never an estimate', async (stream_format) => {
    world = await stage.begin((_, response) => sendPieces(response, [audioOf(100)]))
    const response = await world.speak({ input: 'Zażółć 𝄞', stream_format })
    expect(response.headers.get('x-router-cost')).toBe(stream_format === 'audio' ? '0.00012' : null)
    const text = await response.text()
    if (stream_format === 'sse') expect(text).toContain('"cost":0.00012')
    expect(await world.rows()).toMatchObject([
      {
        api: 'speech',
        operation: 'speech',
        provider: 'openai',
        model: 'characters',
        outcome: 'complete',
        status: 200,
        usage: { characters: 8 },
        cost: { nanoUsd: 120_000, parts: { characters: 120_000 } },
        stream: stream_format === 'sse',
      },
    ])
    expect((await world.rows())[0]?.cost.estimated).toBeUndefined()
  })
})

describe('by token', () => {
  const model = 'openai/tokens'

  test('as the provider counts them in its events', async () => {
    world = await stage.begin((_, response) => sendEvents(response, [audioOf(100)], usage))
    const events = await eventsIn(await world.speak({ model, stream_format: 'sse' }))
    expect(events.at(-1)?.data.usage).toEqual({ ...usage, cost: 0.0012204 })
    expect(await world.rows()).toMatchObject([
      { usage: { input: 14, output_audio: 101 }, cost: { nanoUsd: 1_220_400 }, outcome: 'complete' },
    ])
    expect((await world.rows())[0]?.cost.estimated).toBeUndefined()
  })

  test.each([
    ['wav: its length is exact', wavOf(12), 'wav', 250],
    ['pcm: its length is exact', Buffer.alloc(24_000 * 2 * 12), 'pcm', 250],
    ['mp3: by its bit rate', mp3Of(12), 'mp3', 250],
    ['opus: by the text', audioOf(5_000), 'opus', 21],
  ])('bytes alone are estimated by their length. %s', async (_, audio, response_format, output_audio) => {
    world = await stage.begin((_, response) =>
      sendPieces(response, [audio.subarray(0, 4_000), audio.subarray(4_000)], 'x/y'),
    )
    const response = await world.speak({ model, input: 'Count to five!!', response_format })
    expect(response.headers.get('x-router-cost')).toBe(null)
    expect(Buffer.from(await response.arrayBuffer()).equals(audio)).toBe(true)
    const nanoUsd = 4 * 600 + output_audio * 12_000
    expect(await world.rows()).toMatchObject([
      { usage: { input: 4, output_audio, characters: 15 }, cost: { nanoUsd, estimated: true } },
    ])
  })

  test('events of such bytes tell the estimate', async () => {
    world = await stage.begin((_, response) => sendPieces(response, [wavOf(12)], 'audio/wav'))
    const events = await eventsIn(
      await world.speak({ model: 'openai/whole', input: 'Count to five!!', stream_format: 'sse' }),
    )
    const told = { input_tokens: 4, output_tokens: 250, total_tokens: 254, cost: 0.0030024 }
    expect(events.at(-1)?.data.usage).toEqual(told)
  })

  test('a count that cannot be is bounded', async () => {
    const absurd = { input_tokens: 14, output_tokens: 9e9, total_tokens: 9e9 }
    world = await stage.begin((_, response) => sendEvents(response, [audioOf(100)], absurd))
    await eventsIn(await world.speak({ model, stream_format: 'sse' }))
    const [row] = await world.rows()
    expect(row?.usage.output_audio).toBeLessThanOrEqual(1_000_000)
    expect(row?.cost.estimated).toBe(true)
  })
})

const tokenPrices = [{ prompt_tokens_threshold: 0, input_price: 0.6e-6, output_price: 12e-6 }]
/** A model whose audio comes as bytes only. */
const tokensAtOnce = { api: 'speech', streams: false, pricing: tokenPrices }

describe('by second', () => {
  test('of a WAV file, exactly', async () => {
    world = await stage.begin((_, response) => sendPieces(response, [wavOf(2.5)], 'audio/wav'))
    await (await world.speak({ model: 'openai/seconds', response_format: 'wav' })).arrayBuffer()
    expect(await world.rows()).toMatchObject([{ usage: { seconds: 2.5 }, cost: { nanoUsd: 250_000 } }])
    expect((await world.rows())[0]?.cost.estimated).toBeUndefined()
  })

  test('of another, by an estimate', async () => {
    world = await stage.begin((_, response) => sendPieces(response, [mp3Of(2)], 'audio/mpeg'))
    await (await world.speak({ model: 'openai/seconds' })).arrayBuffer()
    expect(await world.rows()).toMatchObject([{ cost: { nanoUsd: 200_000, estimated: true } }])
  })
})

describe('limits of money', () => {
  test.each(['audio', 'sse'])('of 60 calls at once, %s, a key that pays 12 makes exactly 12', async (stream_format) => {
    world = await stage.begin(async (_, response) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      await sendPieces(response, [audioOf(100)])
    })
    const key = await newKey(world.store, { monthlyLimitNano: 12n * 90_000n })
    const calls = Array.from({ length: 60 }, async () => {
      const response = await world.speak({ stream_format }, { authorization: `Bearer ${key.secret}` })
      await response.arrayBuffer()
      return response.status
    })
    const statuses = await Promise.all(calls)
    expect(statuses.filter((status) => status === 200)).toHaveLength(12)
    expect(statuses.filter((status) => status === 402)).toHaveLength(48)
    expect(await world.store.spend.ofKey(key.id, Date.now())).toBe(12n * 90_000n)
    expect((await world.speak({}, { authorization: `Bearer ${key.secret}` })).status).toBe(402)
  })

  test('a call reserves what the slowest reading costs', async () => {
    world = await stage.begin((_, response) => sendEvents(response, [audioOf(10)], usage))
    const model = 'openai/tokens'
    const speak = async (limit: bigint, fields: object = {}) => {
      const { secret } = await newKey(world.store, { monthlyLimitNano: limit })
      const response = await world.speak(
        { model, stream_format: 'sse', ...fields },
        { authorization: `Bearer ${secret}` },
      )
      await response.arrayBuffer()
      return response.status
    }
    // Ten seconds, and a fifth for each of six letters, at 25 tokens a second.
    const most = 280n * 12_000n + 70n * 600n
    expect(await speak(most)).toBe(200)
    expect(await speak(most - 1n)).toBe(402)
    expect(await speak(most, { speed: 0.5 })).toBe(402)
    expect(await speak(most, { instructions: 'Slowly.' })).toBe(402)
  })

  test('a model without a price is refused where there is a limit', async () => {
    world = await stage.begin((_, response) => sendPieces(response, [audioOf(100)]))
    const { secret } = await newKey(world.store, { monthlyLimitNano: 1_000_000_000n })
    const model = 'openai/unknown'
    expect((await world.speak({ model }, { authorization: `Bearer ${secret}` })).status).toBe(402)
    const free = await world.speak({ model })
    expect([free.status, free.headers.get('x-router-cost')]).toEqual([200, null])
    await free.arrayBuffer()
    expect(await world.rows()).toMatchObject([{ cost: { unpriced: true } }])
  })
})

test('what a provider charges for an answer without audio is paid', async () => {
  world = await stage.begin((_, response) =>
    answerJson(response, { candidates: [], usageMetadata: { promptTokenCount: 1000 } }),
  )
  for (const stream_format of ['audio', 'sse']) {
    const response = await world.speak({ model: 'google/tokens', stream_format })
    expect(response.status).toBe(502)
    expect((await world.rows())[0]).toMatchObject({ outcome: 'partial', usage: { input: 1_000 } })
    expect((await world.rows())[0]?.cost.nanoUsd).toBeGreaterThanOrEqual(600_000)
  }
})
