import type { Frame } from '../../src/wire/frame.ts'

/** All frames of a stream that comes in these pieces. */
export async function read(
  reader: (bytes: AsyncIterable<Uint8Array>) => AsyncGenerator<Frame[], void>,
  pieces: Uint8Array[],
): Promise<Frame[]> {
  const frames: Frame[] = []
  for await (const batch of reader(from(pieces))) frames.push(...batch)
  return frames
}

/** The frames that came before a stream failed, and its failure. */
export async function readUntilFailure(
  reader: (bytes: AsyncIterable<Uint8Array>) => AsyncGenerator<Frame[], void>,
  pieces: Uint8Array[],
): Promise<{ frames: Frame[]; failure: unknown }> {
  const frames: Frame[] = []
  try {
    for await (const batch of reader(from(pieces))) frames.push(...batch)
  } catch (failure) {
    return { frames, failure }
  }
  throw new Error('the stream should have failed')
}

/** Bytes cut into pieces at these places. */
export function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const at = [0, ...[...cuts].sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

/** The bytes cut once, at every place there is; and into single bytes. */
export function everyCut(bytes: Uint8Array): Uint8Array[][] {
  const once = Array.from({ length: bytes.length - 1 }, (_, index) => cutAt(bytes, [index + 1]))
  return [...once, [...bytes].map((byte) => Uint8Array.of(byte))]
}

async function* from<T>(items: T[]): AsyncGenerator<T> {
  yield* items
}
