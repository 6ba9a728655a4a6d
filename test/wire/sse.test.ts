import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readSse } from '../../src/wire/sse.ts'
import { cutAt, read } from './frames.ts'

const wire = ': comment\r\n\r\nevent: delta\r\ndata: {"text":"für 🐧"}\r\n\r\ndata: one\ndata: two\n\ndata: [DONE]'
const meant = [{ event: 'delta', data: '{"text":"für 🐧"}' }, { data: 'one\ntwo' }, { data: '[DONE]' }]

test('comments are skipped, names and several data lines kept, a last frame without its blank line delivered', async () => {
  expect(await read(readSse, [Buffer.from(wire)])).toEqual(meant)
})

test('frames cut at any bytes are the same frames', async () => {
  const bytes = Buffer.from(wire)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 6 }), async (cuts) => {
      expect(await read(readSse, cutAt(bytes, cuts))).toEqual(meant)
    }),
  )
})
