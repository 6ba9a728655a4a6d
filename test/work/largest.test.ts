import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callRoutes } from '../../src/http/endpoints.ts'
import { testKey } from '../helpers/router.ts'
import { testEach } from '../helpers/slow.ts'
import { largeManifests } from './large-manifests.ts'
import { largeRequests, largest } from './large-requests.ts'
import { type MeasuredRouter, measuredRouter } from './measured-router.ts'
import { parseMs } from './parse-time.ts'

/** How many requests to each path are tried. */
const numRuns = Number(process.env.WORK_RUNS ?? 1)

/** The paths try different requests. */
const seedOf = (path: string) => Object.keys(largeRequests).indexOf(path) * 7_919 + Number(process.env.WORK_SEED ?? 1)

/** The path that the fast suite tries. */
const fast = '/v1/rerank'

/**
 * Longest time for which a request may hold the event loop at a time, beside parsing it once; and what it may take before it is admitted,
 * beside parsing it five times. Milliseconds.
 */
const [mostAtOnceMs, mostBeforeMs] = [100, 1_000]

let router: MeasuredRouter

beforeAll(async () => {
  router = await measuredRouter({ files: largeManifests })
  // Every part of a price is reserved.
  const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ monthly_limit: 1_000_000 })
  const limited = await fetch(`${router.url}/v1/manage/apikey/self/limit`, { method: 'POST', headers, body })
  expect(limited.status).toBe(200)
})

afterAll(() => router.end())

test('every path that takes calls is tried', () => {
  expect(Object.keys(largeRequests).sort()).toEqual(callRoutes.map(({ path }) => path).sort())
})

testEach(Object.entries(largeRequests), { slowIf: ([path]) => path !== fast })(
  'a request to %s of the largest size holds the event loop for no longer than its parsing and a moment',
  async (path, requests) => {
    const property = fc.asyncProperty(requests, async (request) => {
      expect(request.body.length).toBeLessThan(1.7 * largest.bytes)
      const once = request.type === 'application/json' ? parseMs(request.body) : 0
      let excesses: string[] = []
      // Too much is measured three times: a machine has other work as well.
      for (let time = 0; time < 3; time++) {
        const { admitted, all, status, text } = await router.measure({
          ...request,
          headers: { 'content-type': request.type },
        })
        excesses = []
        if (all.sliceMs > mostAtOnceMs + once)
          excesses.push(`${Math.round(all.sliceMs)} ms at a time, parsing takes ${Math.round(once)}`)
        if (admitted.loopMs > mostBeforeMs + 5 * once)
          excesses.push(`${Math.round(admitted.loopMs)} ms before it is admitted`)
        if (process.env.WORK_LOG)
          console.log(
            request.path,
            request.name,
            status,
            JSON.stringify({
              once: Math.round(once),
              slice: Math.round(all.sliceMs),
              before: Math.round(admitted.loopMs),
              all: Math.round(all.loopMs),
            }),
            text.slice(0, 150),
          )
        if (excesses.length === 0) break
      }
      expect({ request: request.name, excesses }).toEqual({ request: request.name, excesses: [] })
    })
    // The counterexample would be printed with its 50 MB.
    const reporter = ({ failed, errorInstance }: { failed: boolean; errorInstance: unknown }) => {
      if (failed) throw errorInstance
    }
    await fc.assert(property, { numRuns, endOnFailure: true, seed: seedOf(path), reporter })
  },
)
