import { type AudioParser, finished, maxTimedElements, needsMore } from './audio-parser.ts'

/** The length of a WebM file: as its header says it, else where its last block begins. Seconds. */
export function webmParser(): AudioParser {
  // Nanoseconds.
  let scale = 1_000_000
  let cluster = 0
  let last: number | undefined
  let stated: number | undefined
  let isBroken = false
  return {
    maxElements: maxTimedElements,
    parse(bytes, at) {
      const idBytes = numberBytes(bytes[at])
      if (idBytes > 4) return finished
      const sizeAt = at + idBytes
      if (sizeAt >= bytes.length) return needsMore
      const sizeBytes = numberBytes(bytes[sizeAt])
      if (sizeBytes > 8) return finished
      const bodyAt = sizeAt + sizeBytes
      if (bodyAt > bytes.length) return needsMore
      const id = unsigned(bytes, at, sizeAt)
      // What they contain follows at once; some do not say how long they are.
      if (isMaster(id)) return bodyAt - at
      const length = sizeOf(bytes, sizeAt, bodyAt)
      const isBlock = id === simpleBlock || id === block
      const isValue = id === timestampScale || id === duration || id === clusterTime
      isBroken = isValue && length > maxValueBytes
      if (isBroken) return finished
      const end = bodyAt + (isValue ? length : isBlock ? Math.min(length, maxValueBytes) : 0)
      if (end > bytes.length) return needsMore
      if (isBlock) last = Math.max(last ?? 0, cluster + blockTime(bytes, bodyAt, end))
      else if (id === clusterTime) cluster = unsigned(bytes, bodyAt, end)
      else if (id === timestampScale) scale = unsigned(bytes, bodyAt, end)
      else if (id === duration && length > 0) {
        stated = floating(bytes, bodyAt, length)
        return finished
      }
      return bodyAt - at + length
    },
    seconds() {
      const count = stated ?? (isBroken ? undefined : last)
      return count === undefined ? undefined : (count * scale) / 1e9
    },
  }
}

const timestampScale = 0x2a_d7_b1
const duration = 0x44_89
const clusterTime = 0xe7
const simpleBlock = 0xa3
const block = 0xa1
/** The most bytes of a number, and of a block as far as it is read. */
const maxValueBytes = 12

/** Segment, Info, Cluster, BlockGroup. */
function isMaster(id: number): boolean {
  return id === 0xa0 || id === 0x1f_43_b6_75 || id === 0x15_49_a9_66 || id === 0x18_53_80_67
}

/** Returns the length of a number by its first byte: the zeros before its first one. */
function numberBytes(first = 0): number {
  return Math.clz32(first) - 23
}

/** Reads a size without the bit that marks its own length. */
function sizeOf(bytes: Buffer, from: number, to: number): number {
  const mark = 2 ** (8 - (to - from))
  return unsigned(bytes, from + 1, to, (bytes[from] ?? 0) & (mark - 1))
}

function unsigned(bytes: Buffer, from: number, to: number, before = 0): number {
  let sum = before
  for (let at = from; at < to; at++) sum = sum * 256 + (bytes[at] ?? 0)
  return sum
}

function floating(bytes: Buffer, at: number, length: number): number {
  return length === 8 ? bytes.readDoubleBE(at) : length === 4 ? bytes.readFloatBE(at) : 0
}

/** Where a block begins, counted from its cluster: after the number of its track. */
function blockTime(bytes: Buffer, from: number, to: number): number {
  const at = from + numberBytes(bytes[from])
  return to >= at + 2 ? bytes.readInt16BE(at) : 0
}
