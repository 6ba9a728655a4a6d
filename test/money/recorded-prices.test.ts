import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import { priceOf } from '../../src/money/price.ts'
import { type Folder, openStage, providersOf, type Stage, sorted } from '../e2e/recordings/replay.ts'
import { type Body, isStreamed, recordedAnswer } from '../e2e/recordings/replay-answers.ts'
import { type Recording, recordingsMissing } from '../helpers/recordings.ts'
import { testEach } from '../helpers/slow.ts'
import { shippedEntry } from './catalog.ts'
import { byHand } from './recorded-bills.ts'
import { formOf, rawUsage } from './recorded-usage.ts'

/** No model has special prices then. */
const at = Date.UTC(2026, 10, 21, 12)

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(async () => {
  await stage.end()
})

const good = (Object.keys(providersOf) as Folder[]).flatMap((folder) => sorted(folder).good)
const counted = good.filter((recording) => Object.keys(rawUsage(recording) ?? {}).length > 0)

describe.skipIf(recordingsMissing)(
  'the cost of a recorded usage equals a manual calculation, to the nano-dollar:',
  () => {
    testEach(byHand, { slowIf: (_, index) => index % 4 !== 0 })(
      '%s at the prices of %s',
      async (name, model, nanoUsd) => {
        const recording = good.find((one) => one.case.startsWith(name)) as Recording
        const { usage, cost } = await rowOf(recording)
        expect(priceOf(usage, shippedEntry(model), at).nanoUsd).toBe(nanoUsd)
        expect(cost.estimated).toBe(/vercel-gateway\.gemini|apply-patch-call/.test(name) || undefined)
      },
    )

    test('every form of usage that was recorded is among them', () => {
      const known = new Set(byHand.map(([name]) => formOf(good.find((one) => one.case.startsWith(name)) as Recording)))
      const missing = counted.filter((recording) => !known.has(formOf(recording)) && !uncounted.test(recording.case))
      expect(missing.map((recording) => `${recording.case} ${formOf(recording)}`)).toEqual([])
      console.info(`${counted.length} recorded usages in ${known.size} forms`)
    })
  },
)

/** They do not report the prompt: the router estimates it. */
const uncounted = /^ollama\/text__ollama\.llama3|^gemini\/stop-reason-block-model-armor/

const reporting = counted.flatMap((recording) => {
  const reported = reportedNano(rawUsage(recording))
  return reported > 0 ? [[recording.case, recording, reported] as const] : []
})

describe.skipIf(recordingsMissing)('the cost that a provider reports', () => {
  let agreed = 0
  test.each(reporting)('is recorded beside our own figure: %s', async (_, recording, reported) => {
    const { usage, cost } = await rowOf(recording)
    expect(Math.round((usage.reported_cost ?? 0) * 1e9)).toBe(Math.round(reported))
    // Gateways of many kinds were recorded, and are played as a server of one's own, which costs nothing.
    if (cost.unpriced || Object.keys(cost.parts).join() === 'reported' || recording.dialect === 'openai-compatible')
      return
    const [, beside = 0] = otherBills.find(([pattern]) => pattern.test(recording.case)) ?? []
    // Perplexity rounds each of its parts to a hundredth of a thousandth of a dollar.
    const rounded = recording.dialect === 'perplexity' ? 10_000 : 0.5
    // Where the provider charges by its figure the difference is a part of its own.
    const ours = cost.nanoUsd - (cost.parts.reported ?? 0)
    expect(Math.abs(ours + beside - reported)).toBeLessThanOrEqual(rounded)
    if (beside === 0) agreed++
  })

  test('is ours in all that were recorded at the prices of the catalog', () => {
    const silent = otherBills.filter(([pattern]) => !reporting.some(([name]) => pattern.test(name)))
    expect(silent).toEqual([])
    console.info(`${agreed} of ${reporting.length} provider's own figures are ours; ${otherBills.length} differ`)
    expect(agreed).toBeGreaterThanOrEqual(15)
  })
})

/** Where the provider's figure is another one: by how much it is more than ours, and why. */
const otherBills: [case_: RegExp, nanoUsd: number, why: string][] = [
  [/^openrouter\/annotations__openrouter.gpt-5.1-codex-mini/, 2_000_000, 'reading a file costs 0.002 there'],
  [/^openrouter\/web-search-stream__openrouter.deepseek-chat/, 7_000_000, 'a search at 0.007'],
  [/^openrouter\/web-search__openrouter.sonar/, 4_997_000, 'the maker charges for the request, the list says nothing'],
]

/** The provider's own figure in nano-USD, in any form. */
function reportedNano({ cost, cost_in_usd_ticks: ticks = 0, is_byok, cost_details }: Body): number {
  if (ticks > 0) return ticks / 10
  const charged = (cost?.total_cost ?? cost ?? 0) * 1e9
  return charged + (is_byok ? (cost_details?.upstream_inference_cost ?? 0) * 1e9 : 0)
}

async function rowOf(recording: Recording): Promise<CallRecord> {
  const requested = { api: 'chat', stream: isStreamed(recording), answer: recordedAnswer(recording) } as const
  const called = await stage.replay(recording, requested)
  expect([called.status, called.status === 200 ? '' : called.text]).toEqual([200, ''])
  return await stage.rowOf(called)
}
