import { describe, expect, test } from 'vitest'
import { type StreamFormat, streamFormats } from '../../src/wire/frames.ts'
import { awsFrame } from '../helpers/aws-frames.ts'
import { cutAt, read, readUntilFailure } from './frames.ts'

const longest = 1_000

/** An object of so many characters, and a frame of so many bytes with it, by format. */
const object = (length: number) => `{"a":"${'x'.repeat(length - '{"a":""}'.length)}"}`
const formats: { [format in StreamFormat]: (length: number) => string | Buffer } = {
  sse: (length) => `event: e\ndata: ${object(length)}\n\n`,
  ndjson: (length) => `${object(length)}\n`,
  'json-array': (length) => `[${object(length)}]`,
  'aws-event-stream': (length) => awsFrame({}, object(length - 16)),
}

describe.each(Object.entries(formats))('a frame of %s', (name, write) => {
  const format = name as StreamFormat
  const open = () => streamFormats[format].open(longest)
  const pieces = (length: number) => {
    const bytes = Buffer.from(write(length) as string)
    const cuts = [
      [],
      [5],
      [500],
      [bytes.length - 1],
      [bytes.length - 2],
      Array.from({ length: 99 }, (_, at) => at * 10),
    ]
    return cuts.map((at) => cutAt(bytes, at))
  }

  test('may be as long as the limit, however it is cut', async () => {
    for (const cut of pieces(longest)) expect(await read(open, cut)).toHaveLength(1)
  })

  test('ends the stream when it is longer', async () => {
    for (const cut of pieces(longest + 1)) {
      const reading = readUntilFailure(open, cut)
      expect(await reading).toMatchObject({
        frames: [],
        failure: { kind: 'long', message: expect.stringMatching(/1000 characters or bytes/) },
      })
    }
  })

  test('is not waited for once it is too long', async () => {
    const endless = {
      sse: 'data: x\n',
      ndjson: 'x',
      'json-array': '{"a":[1,',
      'aws-event-stream': awsFrame({}, object(longest)),
    }[format]
    let sent = 0
    function* bytes(): Generator<Uint8Array> {
      for (;;) {
        sent++
        yield Buffer.from(endless as string).subarray(0, 900)
      }
    }
    expect(await readUntilFailure(open, bytes())).toMatchObject({ failure: { kind: 'long' } })
    expect(sent).toBeLessThan(1_100)
  })
})
