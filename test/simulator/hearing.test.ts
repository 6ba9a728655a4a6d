import { afterAll, beforeAll, expect, test } from 'vitest'
import { simulatorOnly, type TestRouter, testKey, testRouter } from '../helpers/router.ts'

let router: TestRouter

beforeAll(async () => {
  router = await testRouter({ files: simulatorOnly })
})

afterAll(() => router?.end())

async function listen(file: Blob, fields: { [name: string]: string } = {}): Promise<Response> {
  const form = new FormData()
  form.append('file', file, 'sound.wav')
  form.append('model', 'demo/ear')
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  const headers = { authorization: `Bearer ${testKey}` }
  return await fetch(`${router.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form })
}

test('1.5, 1.6: what the demo provider says, it hears: the length of the sound, for its price by the second', async () => {
  const said = await router.call('/v1/audio/speech', {
    ...{ model: 'demo/tone', voice: 'tone', response_format: 'wav' },
    input: 'Thirty letters are two seconds',
  })
  const sound = new Blob([await said.arrayBuffer()], { type: 'audio/wav' })
  expect(await (await listen(sound)).json()).toEqual({
    text: 'A sound of 2 seconds.',
    usage: { type: 'duration', seconds: 2, cost: 0.00002 },
  })
  const verbose = await listen(sound, { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' })
  expect(await verbose.json()).toMatchObject({
    task: 'transcribe',
    duration: 2,
    words: [{ word: 'A', start: 0, end: 0.4 }, {}, {}, {}, { word: 'seconds.', end: 2 }],
  })
})
