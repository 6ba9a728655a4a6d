import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testEach } from '../helpers/slow.ts'
import { apis, filling, requestShapes } from './bodies.ts'
import { type MeasuredRouter, measuredRouter, refuse, slugs } from './measured-router.ts'

/** How large the bodies are. Bytes. */
const size = 1_000_000
/** How often each shape is tried, in other ways and with other contents. */
const numRuns = Number(process.env.WORK_RUNS ?? 1)

/** The shape that the fast suite tries. */
const fast = 'calls with their results'

let router: MeasuredRouter

beforeAll(async () => {
  router = await measuredRouter()
})

afterAll(() => router.end())

const ways = fc.constantFrom(...Object.values(apis))

testEach(Object.entries(requestShapes), { slowIf: ([name]) => name !== fast })(
  'a request of %s costs what its size allows',
  async (_, shape) => {
    const property = fc.asyncProperty(ways, fc.constantFrom(...slugs), filling, async (api, slug, content) => {
      const body = `{"model":"${slug}/m",${shape(api, size, content)}}`
      const found = await router.excesses({
        path: api.path,
        body,
        sized: [body],
        async answer(response, hold) {
          await hold()
          refuse(response)
        },
      })
      expect(found).toEqual({ excesses: [], status: 400 })
    })
    await fc.assert(property, { numRuns, endOnFailure: true })
  },
)

test('all of them together leave the process small', async () => {
  expect(await router.grown()).toBeLessThan(80 * size)
})
