import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testEach } from '../helpers/slow.ts'
import { answerShapes } from './answers.ts'
import { apis, filling } from './bodies.ts'
import { type MeasuredRouter, measuredRouter } from './measured-router.ts'

/** How large the answers are. Bytes. */
const size = 1_000_000
/** How often each shape is tried, in other ways and with other contents. */
const numRuns = Number(process.env.WORK_RUNS ?? 1)

/** The shape that the fast suite tries. */
const fast = 'a stream: fragments of one call'

let router: MeasuredRouter

beforeAll(async () => {
  router = await measuredRouter()
})

afterAll(() => router.end())

const ways = fc.constantFrom(...Object.values(apis))
const hi = '{"role":"user","content":"Hi"}'

testEach(Object.entries(answerShapes), { slowIf: ([name]) => name !== fast })(
  '%s costs what its size allows',
  async (_, shape) => {
    const { model, stream, status = 200, text, end } = shape
    const property = fc.asyncProperty(ways, filling, async (api, content) => {
      const { pieces, bytes } = text(size, content)
      const found = await router.excesses({
        path: api.path,
        body: `{"model":"${model}/m","stream":${stream},${api.body(hi)}}`,
        sized: pieces,
        async answer(response, hold) {
          response.writeHead(status, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
          response.on('error', () => {})
          // Sent, or not wanted any more.
          await new Promise((resolve) => response.on('close', resolve).write(bytes, resolve))
          await hold()
          response.end(end)
        },
      })
      expect(found.excesses).toEqual([])
      expect([200, 502]).toContain(found.status)
    })
    await fc.assert(property, { numRuns, endOnFailure: true })
  },
)

test('all of them together leave the process small', async () => {
  expect(await router.grown()).toBeLessThan(80 * size)
})
