import type { Limits, MediaLimit } from '../../src/manifest/limits.ts'
import { type Ask, type Probe, pixel, type Seen } from './limit-asks.ts'

/** Larger media are not sent by the thousand: `test/manifest/media-limits.test.ts` has their bounds. Bytes. */
const most = 6_000_000

/** Returns the probes for what is declared about images, documents and all media together. */
export function mediaProbes({ images, files, media }: Limits): Probe[] {
  return [
    ...(images ? imageProbes(images) : []),
    ...(files ? fileProbes(files) : []),
    ...(media && media.bytes < most ? mediaSizeProbes(media.bytes) : []),
  ]
}

/** A probe whose request outside is refused, and whose images arrive inside. */
function refusing(limit: string, inside: Ask, outside: Ask): Probe {
  const unchanged = ({ arrived }: Seen) => arrived.turns.flatMap((turn) => turn.images).length === (inside.images ?? 0)
  return { limit, inside, unchanged, outside, refused: true }
}

function countProbes(kind: 'images' | 'files', limit: string, count: number | undefined): Probe[] {
  return count === undefined ? [] : [refusing(limit, { [kind]: count }, { [kind]: count + 1 })]
}

function fileProbes({ count, message_count, bytes }: MediaLimit): Probe[] {
  const one = (size: number): Ask => ({ files: 1, file: pdfOf(size) })
  const probe = (size: number): Probe => ({
    limit: 'files.bytes',
    inside: one(size),
    unchanged: ({ arrived }) => arrived.turns.some(({ files }) => files === 1),
    outside: one(size + 1),
    refused: true,
  })
  return [
    ...countProbes('files', 'files.message_count', message_count),
    ...countProbes('files', 'files.count', count),
    ...(bytes !== undefined && bytes < most ? [probe(bytes)] : []),
  ]
}

/** A document with so many bytes. */
function pdfOf(bytes: number): string {
  const data = Buffer.alloc(bytes)
  data.write('%PDF-1.4')
  return data.toString('base64')
}

function imageProbes({ count, message_count, bytes, types, side, pixels }: MediaLimit): Probe[] {
  const one = (image: Ask['image']): Ask => ({ images: 1, ...(image && { image }) })
  return [
    ...countProbes('images', 'images.message_count', message_count),
    ...countProbes('images', 'images.count', (count ?? 0) < 1_000 ? count : undefined),
    ...(types
      ? types.map((type) => refusing('images.types', one({ type: `image/${type}` }), one({ type: 'image/tiff' })))
      : []),
    ...(bytes !== undefined && bytes < most
      ? [refusing('images.bytes', one({ data: padded(bytes) }), one({ data: padded(bytes + 1) }))]
      : []),
    ...(side === undefined
      ? []
      : [refusing('images.side', one({ data: sized(side, 1) }), one({ data: sized(1, side + 1) }))]),
    ...(pixels === undefined
      ? []
      : [refusing('images.pixels', one({ data: sized(pixels, 1) }), one({ data: sized(pixels, 2) }))]),
  ]
}

function mediaSizeProbes(characters: number): Probe[] {
  const data = (length: number) => padded((length / 4) * 3)
  return [
    refusing(
      'media.bytes',
      { images: 1, image: { data: data(characters) } },
      { images: 1, image: { data: data(characters + 4) } },
    ),
  ]
}

/** The picture with so many bytes. */
function padded(bytes: number): string {
  const data = Buffer.alloc(bytes)
  data.write(pixel, 'base64')
  return data.toString('base64')
}

/** The picture with a header that says this size. */
function sized(width: number, height: number): string {
  const data = Buffer.from(pixel, 'base64')
  data.writeUInt32BE(width, 16)
  data.writeUInt32BE(height, 20)
  return data.toString('base64')
}
