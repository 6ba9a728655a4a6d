import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readAwsEventStream } from '../../src/wire/aws-event-stream.ts'
import { awsEvent, awsException, awsFrame } from '../helpers/aws-frames.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { cutAt, everyCut, read, readUntilFailure } from './frames.ts'

const bytes = Buffer.concat([
  awsEvent('messageStart', { role: 'assistant' }),
  awsEvent('contentBlockDelta', { delta: { text: 'für 🐧' } }),
  awsFrame({ ':message-type': 'event', ':event-type': 'empty' }, ''),
  awsException('throttlingException', 'slow down'),
])
const meant = [
  { event: 'messageStart', data: '{"role":"assistant"}' },
  { event: 'contentBlockDelta', data: '{"delta":{"text":"für 🐧"}}' },
  { event: 'empty', data: '{}' },
  { event: 'throttlingException', data: '{"message":"slow down"}' },
]

test('frames are named by the type of their event or exception', async () => {
  expect(await read(readAwsEventStream, [bytes])).toEqual(meant)
})

test('an error has its code for a name, and its message for a payload', async () => {
  const headers = { ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'went wrong' }
  expect(await read(readAwsEventStream, [awsFrame(headers, '')])).toEqual([
    { event: 'InternalError', data: '{"message":"went wrong"}' },
  ])
})

test('frames cut at every byte are the same frames', async () => {
  for (const pieces of everyCut(bytes)) expect(await read(readAwsEventStream, pieces)).toEqual(meant)
})

test('frames cut at any bytes are the same frames', async () => {
  const property = fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 8 }), async (cuts) => {
    expect(await read(readAwsEventStream, cutAt(bytes, cuts))).toEqual(meant)
  })
  await fc.assert(property)
})

test('a frame with any byte changed is not taken, and the frames before it are', async () => {
  const good = awsEvent('messageStart', { role: 'assistant' })
  const bad = awsEvent('contentBlockDelta', { delta: { text: 'no' } })
  for (let at = 0; at < bad.length; at++) {
    const changed = Buffer.from(bad)
    changed[at] = (changed[at] as number) ^ 1
    const { frames, failure } = await readUntilFailure(readAwsEventStream, [good, changed])
    expect(frames).toEqual(meant.slice(0, 1))
    expect(failure).toMatchObject({ name: 'FrameError', kind: 'unreadable' })
  }
})

test('a stream that ends inside a frame is cut, wherever', async () => {
  const first = awsEvent('messageStart', { role: 'assistant' }).length
  for (let end = first + 1; end < first + 40; end++) {
    const { frames, failure } = await readUntilFailure(readAwsEventStream, [bytes.subarray(0, end)])
    expect(frames).toEqual(meant.slice(0, 1))
    expect(failure).toMatchObject({ name: 'FrameError', kind: 'cut' })
  }
})

test('lengths that cannot be are not waited for', async () => {
  for (const text of ['<html><body>Bad gateway</body></html>', '\0\0\0\x05\0\0\0\0\0\0\0\0']) {
    const { failure } = await readUntilFailure(readAwsEventStream, [Buffer.from(text)])
    expect(failure).toMatchObject({ name: 'FrameError', kind: 'unreadable', message: expect.stringContaining('bytes') })
  }
})

describe.skipIf(recordingsMissing)('recorded streams', () => {
  const recorded = recordings('bedrock-converse').flatMap(({ case: name, response }) => {
    const { body_base64, events } = response as unknown as Recorded
    return body_base64 === undefined ? [] : [{ name, bytes: Buffer.from(body_base64, 'base64'), events }]
  })
  type Recorded = { body_base64?: string; events: { headers: { [name: string]: string }; payload: unknown }[] }

  test('there are some', () => expect(recorded.length).toBeGreaterThan(5))

  test.each(recorded)('$name', async ({ bytes, events }) => {
    const expected = events.map(({ headers, payload }) => ({ event: headers[':event-type'], payload }))
    const third = Math.floor(bytes.length / 3)
    for (const pieces of [
      [bytes],
      cutAt(bytes, [1, 7, third, third + 1]),
      [...bytes].map((one) => Uint8Array.of(one)),
    ]) {
      const frames = await read(readAwsEventStream, pieces)
      expect(frames.map(({ event, data }) => ({ event, payload: JSON.parse(data) as unknown }))).toEqual(expected)
    }
  })
})
