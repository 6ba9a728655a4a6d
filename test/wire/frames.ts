import type { Frame, FrameReader } from '../../src/wire/frame.ts'

/** All frames of a stream that comes in these pieces. */
export async function read(
  open: () => FrameReader | Promise<FrameReader>,
  pieces: Iterable<Uint8Array>,
): Promise<Frame[]> {
  const { frames, failure } = await readUntilFailure(open, pieces)
  if (failure) throw failure
  return frames
}

/** The frames of a stream, those before it failed if it does, and its failure. */
export async function readUntilFailure(
  open: () => FrameReader | Promise<FrameReader>,
  pieces: Iterable<Uint8Array>,
): Promise<{ frames: Frame[]; failure: unknown }> {
  const reader = await open()
  const frames: Frame[] = []
  for (const piece of pieces) {
    frames.push(...reader.take(piece))
    if (reader.failure()) return { frames, failure: reader.failure() }
  }
  frames.push(...reader.end())
  return { frames, failure: reader.failure() }
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
