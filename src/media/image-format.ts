/** The image formats that are known, as image APIs name them. */
export type ImageFormat = 'png' | 'jpeg' | 'webp'

/** Size in pixels. */
export type ImageSize = { width: number; height: number }

/** Returns the format of an image by its first bytes; undefined for any other file. */
export function imageFormatOf(head: Uint8Array): ImageFormat | undefined {
  if (latin1(head, 0, 8) === '\x89PNG\r\n\x1a\n') return 'png'
  if (head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff) return 'jpeg'
  return latin1(head, 0, 4) === 'RIFF' && latin1(head, 8, 12) === 'WEBP' ? 'webp' : undefined
}

/** Returns the size of an image by its header; undefined where that is not among these bytes. */
export function imageSizeOf(bytes: Uint8Array): ImageSize | undefined {
  const format = imageFormatOf(bytes)
  if (!format) return undefined
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    const size = readers[format](view)
    return size && size.width > 0 && size.height > 0 ? size : undefined
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined
    throw thrown
  }
}

const readers: { [format in ImageFormat]: (bytes: Buffer) => ImageSize | undefined } = {
  png: (bytes) => ({ width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }),
  jpeg: jpegSize,
  webp: webpSize,
}

/** Segments of a JPEG before its frame header: a real one has some ten. */
const maxSegments = 1_000

/** Reads the size from the first frame header; segments before it are skipped. */
function jpegSize(bytes: Buffer): ImageSize | undefined {
  let at = 2
  for (let segment = 0; segment < maxSegments && bytes.readUInt8(at) === 0xff; segment++) {
    const marker = bytes.readUInt8(at + 1)
    if (isFrame(marker)) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    // Fill bytes may precede a marker.
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

/** Lossy, lossless and extended files each have it in a place of their own. */
function webpSize(bytes: Buffer): ImageSize | undefined {
  switch (latin1(bytes, 12, 16)) {
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      return undefined
  }
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to))
}
