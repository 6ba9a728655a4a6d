import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readNdjson } from '../../src/wire/ndjson.ts'
import { cutAt, everyCut, read, readUntilFailure } from './frames.ts'

const bytes = Buffer.from('{"text":"für 🐧 \\n"}\r\n\n  \n{"done":false}\n{"done":true}')
const meant = [{ data: '{"text":"für 🐧 \\n"}' }, { data: '{"done":false}' }, { data: '{"done":true}' }]

test('each line is a frame; empty lines are skipped, a last line without its end is delivered', async () => {
  expect(await read(readNdjson, [bytes])).toEqual(meant)
  expect(await read(readNdjson, [Buffer.from('\n\n')])).toEqual([])
})

test('lines cut at every byte are the same lines', async () => {
  for (const pieces of everyCut(bytes)) expect(await read(readNdjson, pieces)).toEqual(meant)
})

test('lines cut at any bytes are the same lines', async () => {
  const property = fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 6 }), async (cuts) => {
    expect(await read(readNdjson, cutAt(bytes, cuts))).toEqual(meant)
  })
  await fc.assert(property)
})

test('a line that never ends is given up', async () => {
  const endless = Array.from({ length: 9 }, () => Buffer.alloc(1024 * 1024, 'a'))
  const { frames, failure } = await readUntilFailure(readNdjson, [Buffer.from('{}\n'), ...endless])
  expect(frames).toEqual([{ data: '{}' }])
  expect(failure).toMatchObject({ name: 'FrameError', kind: 'long' })
})
