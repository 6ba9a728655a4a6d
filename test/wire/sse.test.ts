import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Frame } from '../../src/wire/frame.ts'
import { sseFrames } from '../../src/wire/sse.ts'

async function framesOf(chunks: Uint8Array[]): Promise<Frame[]> {
  const frames: Frame[] = []
  for await (const batch of sseFrames(from(chunks))) frames.push(...batch)
  return frames
}

async function* from<T>(items: T[]): AsyncGenerator<T> {
  yield* items
}

const wire = ': comment\r\n\r\nevent: delta\r\ndata: {"text":"für 🐧"}\r\n\r\ndata: one\ndata: two\n\ndata: [DONE]'
const meant = [{ event: 'delta', data: '{"text":"für 🐧"}' }, { data: 'one\ntwo' }, { data: '[DONE]' }]

test('comments are skipped, names and several data lines kept, a last frame without its blank line delivered', async () => {
  expect(await framesOf([Buffer.from(wire)])).toEqual(meant)
})

test('frames cut at any bytes are the same frames', async () => {
  const bytes = Buffer.from(wire)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 6 }), async (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
      expect(await framesOf(chunks)).toEqual(meant)
    }),
  )
})
