import { type AudioParser, finished, hasBytes, maxDescriptions, needsMore } from './audio-parser.ts'

/** The length of an MP4 file (M4A), as its header says it; of one in fragments, where they are announced. Seconds. */
export function mp4Parser(): AudioParser {
  let scale = 0
  let seconds: number | undefined
  return {
    maxElements: maxDescriptions,
    parse(bytes, at) {
      const box = boxAt(bytes, at)
      if (box === undefined) return needsMore
      const { bodyAt, length } = box
      if (length < 0) return finished
      // What they contain follows at once.
      if (hasBytes(bytes, at + 4, 'moov') || hasBytes(bytes, at + 4, 'mvex')) return bodyAt - at
      const isMovie = hasBytes(bytes, at + 4, 'mvhd')
      if (!isMovie && !hasBytes(bytes, at + 4, 'mehd')) return bodyAt - at + length
      const end = bodyAt + Math.min(length, maxBodyBytes)
      if (bytes.length < end) return needsMore
      const duration = isMovie ? movieDuration(bytes, bodyAt, end) : extendedDuration(bytes, bodyAt, end)
      if (!duration) return finished
      scale = duration.scale ?? scale
      if (duration.count > 0 && scale > 0) {
        seconds = duration.count / scale
        return finished
      }
      return bodyAt - at + length
    },
    seconds: () => seconds,
  }
}

/** The most bytes of a header that are read. */
const maxBodyBytes = 32

/** Finds the contents of a box and their length; undefined where its header is not all here. */
function boxAt(bytes: Buffer, at: number): { bodyAt: number; length: number } | undefined {
  if (bytes.length < at + 8) return undefined
  const short = bytes.readUInt32BE(at)
  if (short !== 1) return { bodyAt: at + 8, length: short === 0 ? Number.MAX_SAFE_INTEGER : short - 8 }
  if (bytes.length < at + 16) return undefined
  return { bodyAt: at + 16, length: uint64(bytes, at + 8) - 16 }
}

/** A count of units, and how many there are in a second. */
type Duration = { count: number; scale?: number }

function movieDuration(bytes: Buffer, from: number, to: number): Duration | undefined {
  const isLong = bytes[from] === 1
  const at = from + (isLong ? 24 : 16)
  const count = countAt(bytes, { at, to, isLong })
  return count === undefined ? undefined : { count, scale: bytes.readUInt32BE(at - 4) }
}

function extendedDuration(bytes: Buffer, from: number, to: number): Duration | undefined {
  const count = countAt(bytes, { at: from + 4, to, isLong: bytes[from] === 1 })
  return count === undefined ? undefined : { count }
}

/** Reads a count; 0 where the file says that it is unknown. */
function countAt(bytes: Buffer, { at, to, isLong }: { at: number; to: number; isLong: boolean }): number | undefined {
  if (to < at + (isLong ? 8 : 4)) return undefined
  const count = isLong ? uint64(bytes, at) : bytes.readUInt32BE(at)
  return count === 0xffff_ffff || count >= Number.MAX_SAFE_INTEGER ? 0 : count
}

function uint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4)
}
