import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { promptTokens } from '../../src/core/usage.ts'
import { schemaMissing } from '../api/messagesSchema.ts'
import { responsesSchemaMissing } from '../dialects/responses-schema.ts'
import { recordingsMissing } from '../helpers/recordings.ts'
import { type Folder, openStage, type Stage, sorted, speakers } from './replay.ts'
import { type Answer, isStreamed, recordedAnswer } from './replay-answers.ts'
import { idleExceptions, listed, unexplained } from './replay-exceptions.ts'
import { asRecordedId, expectedOf } from './replay-expected.ts'
import { type Face, messagesFace, responsesFace } from './replay-faces.ts'
import { Grid } from './replay-grid.ts'

// Every recorded answer to clients of the Messages and the Responses API, whole and streamed.

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(async () => {
  await stage.end()
})

const folders = Object.keys(speakers) as Folder[]
const good = folders.flatMap((folder) => sorted(folder).good)
const schemasMissing = schemaMissing ?? responsesSchemaMissing

/** The client APIs, and the recordings that are of their own format. */
const faces = [
  { api: 'messages', face: messagesFace, own: 'anthropic-messages', grid: new Grid(folders) },
  { api: 'responses', face: responsesFace, own: 'openai-responses', grid: new Grid(folders) },
] as const

describe.skipIf(recordingsMissing).each(faces)('recordings through /v1/$api', ({ api, face, own, grid }) => {
  test.each(good.map((recording) => [recording.case, recording] as const))('%s', async (_, recording) => {
    const expected = expectedOf(recording)
    const asRecorded = isStreamed(recording)
    for (const stream of [asRecorded, !asRecorded]) {
      const answer = stream === asRecorded ? recordedAnswer(recording) : expected.otherWay
      const called = await stage.replay(recording, { api, stream, answer })
      expect([called.status, called.status === 200 ? '' : called.text]).toEqual([200, ''])
      const told = face.told(called.text, stream)
      // Where the provider told no usage, the router estimates it.
      const counted = promptTokens(expected.usage) > 0 ? {} : { usage: told.usage }
      const calls = told.calls.map(asRecordedId(expected))
      expect({ ...told, calls }).toEqual({ ...face.expected(expected), ...counted })
      const wrong = wrongIn(face, { text: called.text, stream, own: recording.dialect === own && answer })
      expect(unexplained(api, recording, wrong)).toEqual([])
      grid.count(recording)
    }
  })

  test.skipIf(schemasMissing)('every exception is needed', () => {
    console.info(grid.text(`Replies as recorded, whole and streamed, through /v1/${api}`))
    console.info(`Exceptions:\n${listed(api)}`)
    expect(idleExceptions(api)).toEqual([])
  })
})

/** What is wrong with an answer by the published schema: where it is the provider's own, what we made wrong of it. */
function wrongIn(face: Face, { text, stream, own }: { text: string; stream: boolean; own: Answer | false }): string[] {
  if (schemasMissing) return []
  const before = own ? face.wrong(String(own.text), stream) : []
  return face.wrong(text, stream).filter((one) => !before.includes(one))
}
