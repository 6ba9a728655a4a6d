import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionTokens, promptTokens } from '../../../src/core/usage.ts'
import { schemaMissing } from '../../api/messagesSchema.ts'
import { responsesSchemaMissing } from '../../dialects/responses-schema.ts'
import { type Recording, recordingsMissing } from '../../helpers/recordings.ts'
import { slow } from '../../helpers/slow.ts'
import { type Folder, openStage, providersOf, type Stage, sorted } from './replay.ts'
import { type Answer, isStreamed, recordedAnswer } from './replay-answers.ts'
import { countsOf } from './replay-client.ts'
import { type ClientApiReader, messagesReader, responsesReader } from './replay-client-apis.ts'
import { idleExceptions, listed, unexplained } from './replay-exceptions.ts'
import { asRecordedId, expectedOf, refusalOf } from './replay-expected.ts'
import { Grid } from './replay-grid.ts'

// Every recorded answer to clients of the Messages and the Responses API, whole and streamed.

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(async () => {
  await stage.end()
})

const folders = Object.keys(providersOf) as Folder[]
const byFolder = folders.map(sorted)
const named = (list: readonly Recording[]) => list.map((recording) => [recording.case, recording] as const)
const all = {
  good: named(byFolder.flatMap(({ good }) => good)),
  failing: named(byFolder.flatMap(({ failing }) => failing)),
  refused: named(byFolder.flatMap(({ refused }) => refused)),
}
const few = {
  good: named(
    byFolder.flatMap(
      ({ good }, index) => good.find((one) => isStreamed(one) === (index % 2 === 0)) ?? good.slice(0, 1),
    ),
  ),
  failing: all.failing.slice(0, 1),
  refused: named(byFolder.flatMap(({ refused }) => refused.slice(0, 1))),
}
const schemasMissing = schemaMissing ?? responsesSchemaMissing

/** The client APIs, and the recordings that are of their own format. */
const faces = [
  { api: 'messages', reader: messagesReader, own: 'anthropic-messages', grid: new Grid(folders) },
  { api: 'responses', reader: responsesReader, own: 'openai-responses', grid: new Grid(folders) },
] as const

type Recorded = Record<'good' | 'failing' | 'refused', (readonly [name: string, Recording])[]>

/** Tests that these answers reach clients of an API. */
function testReplies({ api, reader, own, grid }: (typeof faces)[number], { good, failing, refused }: Recorded): void {
  test.each(good)('%s', async (_, recording) => {
    const expected = expectedOf(recording)
    const asRecorded = isStreamed(recording)
    for (const stream of [asRecorded, !asRecorded]) {
      const answer = stream === asRecorded ? recordedAnswer(recording) : expected.otherWay
      const called = await stage.replay(recording, { api, stream, answer })
      expect([called.status, called.status === 200 ? '' : called.text]).toEqual([200, ''])
      const reply = reader.read(called.text, stream)
      // Where the provider sent no usage, or counted nothing of a call, the router estimates it.
      const isCounted = completionTokens(expected.usage) > 0 || expected.reply.calls.length === 0
      const known = promptTokens(expected.usage) > 0 && isCounted
      const counted = known ? {} : { usage: reply.usage }
      const row = await stage.rowOf(called)
      expect(row).toMatchObject({ api, stream, outcome: 'complete', attempts: 1, dropped: [] })
      expect(known ? countsOf(row.usage) : row.cost.estimated).toEqual(known ? countsOf(expected.usage) : true)
      const calls = reply.calls.map(asRecordedId(expected))
      expect({ ...reply, calls }).toEqual({ ...reader.expected(expected), ...counted })
      const wrong = wrongIn(reader, { text: called.text, stream, own: recording.dialect === own && answer })
      expect(unexplained(api, recording, wrong)).toEqual([])
      if (recording.dialect === own && stream && asRecorded) {
        expect(eventTypes(called.text)).toEqual(eventTypes(String(answer.text)))
      }
      grid.count(recording)
    }
  })

  test.each(failing)('%s fails', async (_, recording) => {
    const stream = isStreamed(recording)
    const called = await stage.replay(recording, { api, stream, answer: recordedAnswer(recording) })
    // A stream that fails before any content has an error of its own.
    const begun = stream && !called.text.startsWith('{')
    const { message, done } = reader.failure(called.text, begun)
    expect([typeof message, done]).toEqual(['string', false])
    expect((await stage.rowOf(called)).outcome).toBe(begun ? 'partial' : 'failed')
    grid.count(recording)
  })

  test.each(refused)('%s is refused', async (_, recording) => {
    const { status, type } = refusalOf(recording)
    for (const stream of [false, true]) {
      const called = await stage.replay(recording, { api, stream, answer: recordedAnswer(recording) })
      const { body } = recording.response
      expect(called.status).toBe(status)
      const { error, ...beside } = JSON.parse(called.text)
      expect(error.type).toBe(type)
      if (error.code !== 'provider_refused')
        expect(error.message).toContain(body.error?.message ?? body.error ?? body.message ?? body.detail)
      if (api === 'messages') expect(beside.type).toBe('error')
      expect(await stage.rowOf(called)).toMatchObject({ api, outcome: 'failed', status, usage: {} })
      grid.count(recording)
    }
  })
}

describe.skipIf(recordingsMissing).each(faces)('a recording of each format through /v1/$api', (face) =>
  testReplies(face, few),
)

describe.skipIf(recordingsMissing).each(faces)('all recordings through /v1/$api', slow, (face) => {
  const { api, grid } = face
  testReplies(face, all)

  test.skipIf(schemasMissing)('every exception is needed', () => {
    console.info(grid.text(`Replies as recorded, whole and streamed, through /v1/${api}`))
    console.info(`Exceptions:\n${listed(api)}`)
    expect(idleExceptions(api)).toEqual([])
  })
})

/** The types of a stream's events without a marker of its end; what keeps its connection counts once. */
function eventTypes(text: string): string[] {
  const data = [...text.matchAll(/^data: *(\{.*)$/gm)].flatMap(([, json]) => json ?? [])
  const types = data.map((json): string => JSON.parse(json).type)
  return types.filter((type, at) => type !== 'ping' || types[at - 1] !== 'ping')
}

/** The violations of the published schema in a reply; in a provider's own reply, those that the router added. */
function wrongIn(
  reader: ClientApiReader,
  { text, stream, own }: { text: string; stream: boolean; own: Answer | false },
): string[] {
  if (schemasMissing) return []
  const before = own ? reader.wrong(String(own.text), stream) : []
  return reader.wrong(text, stream).filter((one) => !before.includes(one))
}
