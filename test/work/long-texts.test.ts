import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callRoutes } from '../../src/http/endpoints.ts'
import { openStore } from '../../src/store/open.ts'
import { testEach } from '../helpers/slow.ts'
import { largeManifests } from './large-manifests.ts'
import { type LargeRequest, longQuery, quotes, requestsWith } from './large-requests.ts'
import { type MeasuredRouter, measuredRouter } from './measured-router.ts'
import { parseMs } from './parse-time.ts'

/** The path that the fast suite tries. */
const fast = '/v1/messages'
/** Longest time for which the event loop may be held at a time, beside parsing the same text once. Milliseconds. */
const mostAtOnceMs = 100

let router: MeasuredRouter

beforeAll(async () => {
  router = await measuredRouter({ files: largeManifests })
})

afterAll(() => router.end())

/** Measures a request up to three times: a machine has other work as well. */
async function longestHold(request: LargeRequest & { method?: 'GET' }, parsed: string): Promise<string | undefined> {
  const once = parseMs(parsed)
  let excess: string | undefined
  for (let time = 0; time < 3; time++) {
    const { path, type, body, method } = request
    const call = method ? { path, headers: {} } : { path, body, headers: { 'content-type': type } }
    const { all } = await router.measure(call)
    if (all.sliceMs <= mostAtOnceMs + once) return undefined
    excess = `${Math.round(all.sliceMs)} ms at a time, parsing takes ${Math.round(once)}`
  }
  return excess
}

testEach(
  callRoutes.map(({ path }) => path),
  { slowIf: (path) => path !== fast },
)(
  'a text of quotes holds the event loop for no longer than its parsing and a moment, anywhere in a request to %s',
  async (path) => {
    for (const request of requestsWith(path, quotes())) {
      expect([request.name, await longestHold(request, String(request.body))]).toEqual([request.name, undefined])
    }
  },
)

test('a long query is measured once for all of its documents', async () => {
  expect(await longestHold(longQuery, String(longQuery.body))).toBeUndefined()
})

test('the input of a stored response is listed in steps', async () => {
  const input = `[{"role":"user","content":${quotes()}}]`
  const store = await openStore(`sqlite:${join(router.folder, 'data/router.sqlite')}`)
  const organization = (await store.organizations.list())[0]?.id ?? ''
  const now = Date.now()
  const facts = { previous: null, model: 'all/c', provider: 'all', native: false, response: '{"output":[]}' }
  await store.responses.write({
    ...{ id: 'resp_long', organization, createdAt: now, expiresAt: now + 600_000, input },
    ...facts,
  })
  await store.close()
  const list = { path: '/v1/responses/resp_long/input_items', type: '', body: '', method: 'GET' as const }
  const { status, text } = await router.measure({ path: list.path, headers: {} })
  expect([status, JSON.parse(text).data[0].content[0].text.length]).toEqual([200, JSON.parse(quotes()).length])
  expect(await longestHold(list, input)).toBeUndefined()
})
