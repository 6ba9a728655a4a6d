import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { priceOf } from '../../../src/money/price.ts'
import { dataPath, missingData } from '../../helpers/optional-data.ts'
import { type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type Recording, recordings, recordingsMissing } from '../../helpers/recordings.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'
import { type Answer, isStreamed, recordedAnswer } from '../recordings/replay-answers.ts'
import { storeIn } from './budget-world.ts'

// Recorded answers that say what they cost come in, and what a caller is told they cost goes out.

type Row = { case: string; provider: string; reported_cost_usd: number; computed_cost_usd?: number; verdict: string }

const missing = recordingsMissing ?? missingData('FACTS', 'cost-checks.json')

const rows = missing ? [] : (JSON.parse(readFileSync(dataPath('FACTS', 'cost-checks.json'), 'utf8')).rows as Row[])
/** The rows that can be reproduced by the prices of today. */
const exact = rows.filter(({ verdict }) => verdict.startsWith('exact'))

let provider: LoopbackProvider
let router: TestRouter
let store: Awaited<ReturnType<typeof storeIn>>
let answer: Answer

const slugs = ['openrouter', 'openrouter-messages', 'xai-responses', 'perplexity']

beforeAll(async () => {
  provider = await loopbackProvider((_, response) => {
    response.writeHead(answer.status, answer.headers).end(answer.text)
  })
  const settings = { base_url: provider.url, secret: 'key' }
  router = await testRouter({ providers: alone(Object.fromEntries(slugs.map((slug) => [slug, settings]))) })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store?.close()
  await router?.end()
  await provider?.close()
})

/** The provider that speaks as the recording does. */
function slugOf({ provider }: Row, { dialect }: Recording): string {
  const endings: { [dialect: string]: string } = { 'anthropic-messages': '-messages', 'openai-responses': '-responses' }
  return `${provider}${endings[dialect] ?? ''}`
}

describe.skipIf(missing)('the cost of recorded answers', () => {
  test('27 of them can be reproduced', () => {
    expect(exact).toHaveLength(27)
  })

  test.each(exact.map((row) => [row.case, row] as const))('%s', async (name, row) => {
    const [folder = ''] = name.split('/')
    const recording = recordings(folder).find((one) => one.case === name || `${folder}/${one.case}` === name)
    if (!recording) throw new Error(`there is no recording ${name}`)
    answer = recordedAnswer(recording)
    const slug = slugOf(row, recording)
    const stream = isStreamed(recording)
    const messages = [{ role: 'user', content: 'Hi' }]
    const model = `${slug}/${recording.model}`
    const options = stream && { stream, stream_options: { include_usage: true } }
    const response = await router.call('/v1/chat/completions', { model, messages, ...options })
    const text = await response.text()
    expect([response.status, response.status === 200 ? '' : text]).toEqual([200, ''])
    const cost = Number(/"cost":([0-9.e-]+)/.exec(text)?.[1])
    // Perplexity rounds what it reports; it is not charged by that.
    const isRounded = row.verdict.includes('rounded')
    expect(cost).toBeCloseTo((isRounded ? row.computed_cost_usd : row.reported_cost_usd) ?? Number.NaN, 9)
    if (row.verdict !== 'exact') return
    const settled = await store.ledger.find(response.headers.get('x-request-id') ?? '')
    const entry = router.snapshot().catalog.find(slug, recording.model ?? '')
    if (!settled || !entry) throw new Error(`${model} has no row or no entry`)
    expect(priceOf(settled.usage, entry, Date.now()).nanoUsd / 1e9).toBeCloseTo(row.computed_cost_usd ?? Number.NaN, 9)
  })
})
