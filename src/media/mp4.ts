import { id3Length } from './audio-format.ts'
import {
  type AudioParser,
  Containers,
  codecRates,
  finished,
  hasBytes,
  largerOf,
  maxBoxes,
  minBytesPerSecond,
  needsMore,
  type ParserFile,
} from './audio-parser.ts'
import { aac, opus } from './packets.ts'

/** One track: how many samples it has, and how long each of them sounds. */
type Track = {
  id: number
  samples: number
  /** The most seconds of a sample, and whether one of its codecs is not known. */
  perSample: number
  isUnknown: boolean
  isSound: boolean
  /** Names of its codecs. */
  names: string[]
  /** Units of time that its list of edits plays, and how often it may play all of it where the list is too long to be read. */
  edited: number
  repeats: number
}

/** The movie as far as it has been read. */
type Movie = {
  tracks: Track[]
  /** Units of a second, and the units that the headers state. */
  scale: number
  stated: number
  /** The track whose boxes are read, of the movie or of a fragment. */
  track: Track | undefined
  /** Bytes after which nothing could be read, and boxes that hide others. */
  unread: number
  isHidden: boolean
}

/**
 * Returns a parser for the length of an MP4 file (M4A) in seconds: the samples of its longest track of sound, in fragments too, or what
 * the headers state if that is more.
 */
export function mp4Parser({ head, size }: ParserFile): AudioParser {
  const tag = id3Length(head)
  const around = new Containers()
  const movie: Movie = { tracks: [], scale: 0, stated: 0, track: undefined, unread: 0, isHidden: false }
  return {
    maxElements: maxBoxes,
    parse(bytes, at, position) {
      if (position === 0 && tag > 0) return tag
      const box = boxAt(bytes, at)
      if (box === undefined) return needsMore
      const { bodyAt } = box
      const length = Math.min(box.length, around.leftAt(position) - (bodyAt - at))
      if (length < 0) {
        movie.unread = size - position
        return finished
      }
      const name = bytes.toString('latin1', at + 4, at + 8)
      if (hiding.has(name)) movie.isHidden = true
      if (name === 'trak') beginTrack(movie)
      // What they contain follows at once.
      if (containers.has(name)) {
        around.enter(position + bodyAt - at + length)
        return bodyAt - at
      }
      const read = readers[name]
      if (read) {
        const end = bodyAt + Math.min(length, maxBodyBytes)
        if (bytes.length < end) return needsMore
        read(movie, bytes.subarray(bodyAt, end))
      }
      return bodyAt - at + length
    },
    seconds: () => secondsOf(movie, size),
    minBytesPerSecond: () => minRateOf(movie),
  }
}

/** Returns the bytes of a second at the lowest bit rate of the sounds, where all of them have a known one. */
function minRateOf({ tracks, isHidden }: Movie): number | undefined {
  const sounds = tracks.filter(({ isSound }) => isSound)
  const rates = sounds.map(({ names }) => Math.min(...names.map((name) => minRates[name] ?? 0)))
  const least = Math.min(...rates)
  return !isHidden && sounds.length > 0 && least > 0 && least < Infinity ? least : undefined
}

const minRates: { readonly [name: string]: number } = {
  'ac-3': codecRates.ac3,
  '.mp3': codecRates.mpeg,
  samr: codecRates.amr,
  sawb: codecRates.amrWideBand,
}

function beginTrack(movie: Movie): void {
  const track: Track = {
    id: 0,
    samples: 0,
    perSample: 0,
    isUnknown: false,
    isSound: false,
    edited: 0,
    repeats: 1,
    names: [],
  }
  movie.tracks.push(track)
  movie.track = track
}

function secondsOf({ tracks, scale, stated, unread, isHidden }: Movie, size: number): number | undefined {
  const sounds = tracks.filter(({ isSound }) => isSound)
  if (isHidden || sounds.length === 0 || sounds.some(({ isUnknown }) => isUnknown)) return undefined
  const longest = Math.max(...sounds.map(({ samples, perSample, repeats }) => samples * perSample * repeats))
  const edited = Math.max(...sounds.map((track) => track.edited))
  return largerOf(longest, scale > 0 ? Math.max(stated, edited) / scale : 0, size) + unread / minBytesPerSecond
}

const containers: ReadonlySet<string> = new Set([
  ...['moov', 'mvex', 'trak', 'edts', 'mdia', 'minf', 'stbl', 'moof', 'traf', 'udta'],
])
/** Boxes that contain others in a form of their own. */
const hiding: ReadonlySet<string> = new Set(['cmov', 'hoov'])

/** The most bytes of a box that are read. */
const maxBodyBytes = 960

/** Readers of boxes by their names. */
const readers: { readonly [name: string]: (movie: Movie, body: Buffer) => void } = {
  mvhd(movie, body) {
    const isLong = body[0] === 1
    const at = isLong ? 24 : 16
    if (body.length < at) return
    movie.scale = body.readUInt32BE(at - 4)
    movie.stated = Math.max(movie.stated, countAt(body, at, isLong))
  },
  mehd(movie, body) {
    movie.stated = Math.max(movie.stated, countAt(body, 4, body[0] === 1))
  },
  tkhd({ track }, body) {
    const at = body[0] === 1 ? 20 : 12
    if (track && body.length >= at + 4) track.id = body.readUInt32BE(at)
  },
  hdlr({ track }, body) {
    if (track && hasBytes(body, 8, 'soun')) track.isSound = true
  },
  stsd({ track }, body) {
    if (track) describe(track, body)
  },
  stsz: takeSamples,
  stz2: takeSamples,
  elst({ track }, body) {
    if (track) Object.assign(track, editsIn(body))
  },
  tfhd(movie, body) {
    if (body.length < 8) return
    const id = body.readUInt32BE(4)
    movie.track = movie.tracks.find((track) => track.id === id)
  },
  trun({ track }, body) {
    if (track && body.length >= 8) track.samples += body.readUInt32BE(4)
  },
  // Some writers put the whole movie where there is room for it.
  free: hideMovie,
  skip: hideMovie,
}

function hideMovie(movie: Movie, body: Buffer): void {
  if (hasBytes(body, 4, 'moov')) movie.isHidden = true
}

function takeSamples({ track }: Movie, body: Buffer): void {
  if (track && body.length >= 12) track.samples = Math.max(track.samples, body.readUInt32BE(8))
}

/** Reads a list of edits, each of which plays a part of the sound, maybe one that was played before. */
function editsIn(body: Buffer): Pick<Track, 'edited' | 'repeats'> {
  if (body.length < 8) return { edited: 0, repeats: 1 }
  const isLong = body[0] === 1
  const step = isLong ? 20 : 12
  const count = body.readUInt32BE(4)
  if (8 + count * step > body.length) return { edited: 0, repeats: Math.max(count, 1) }
  let edited = 0
  for (let index = 0; index < count; index++) edited += countAt(body, 8 + index * step, isLong)
  return { edited, repeats: 1 }
}

/** Reads how long the samples of a track sound by the descriptions of its codecs, of which there may be several. */
function describe(track: Track, body: Buffer): void {
  let at = 8
  while (at + 8 <= body.length) {
    const entry = body.subarray(at, at + Math.max(body.readUInt32BE(at), 8))
    const name = entry.toString('latin1', 4, 8)
    if (sounding.has(name)) track.isSound = true
    // One that is not kept counts as unknown.
    if (track.names.length < maxNames) track.names.push(name)
    else track.names[0] = ''
    const seconds = sampleSeconds(name, entry)
    if (seconds === undefined) track.isUnknown = true
    else track.perSample = Math.max(track.perSample, seconds)
    at += entry.length
  }
}

/** Returns the seconds of a sample by the description of its codec; undefined for one that is not known. */
function sampleSeconds(name: string, entry: Buffer): number | undefined {
  const rate = entry.length < 36 ? 0 : entry.readUInt16BE(32)
  if (name === 'mp4a') return aacSample(entry, rate)
  if (name === 'Opus') return opus.maxSeconds
  const cookie = entry.indexOf('alac', 36, 'latin1') + 8
  if (name !== 'alac' || cookie < 8 || entry.length < cookie + 24) return undefined
  return entry.readUInt32BE(cookie) / Math.max(entry.readUInt32BE(cookie + 20), 1)
}

/** Maximum number of codecs of a track of which the names are kept. */
const maxNames = 8

/** Codecs of sound. */
const sounding: ReadonlySet<string> = new Set(['mp4a', 'Opus', 'alac', 'fLaC', 'ac-3', 'ec-3', 'samr', 'sawb', 'lpcm'])

/** Reads the configuration of AAC in the description of a stream; undefined for another codec in the same form. */
function aacSample(entry: Buffer, rate: number): number | undefined {
  let at = entry.indexOf('esds', 0, 'latin1') + 8
  if (at < 8) return undefined
  let kind = 0
  while (at + 2 <= entry.length) {
    const tag = entry[at++]
    let length = 0
    for (let more = true; more && at < entry.length; at++) {
      length = length * 128 + ((entry[at] ?? 0) & 127)
      more = ((entry[at] ?? 0) & 128) !== 0
    }
    // Descriptors of the stream, and of how it is decoded, contain the next one.
    if (tag === 3) at += 3
    else if (tag === 4) {
      kind = entry[at] ?? 0
      at += 13
    } else if (tag === 5) {
      return kind === 0x40 || (kind >= 0x66 && kind <= 0x68)
        ? aac(entry.subarray(at, at + length), rate)?.maxSeconds
        : undefined
    } else at += length
  }
  return undefined
}

/** Finds the contents of a box and their length; undefined where its header is not all here. */
function boxAt(bytes: Buffer, at: number): { bodyAt: number; length: number } | undefined {
  if (bytes.length < at + 8) return undefined
  const short = bytes.readUInt32BE(at)
  if (short !== 1) return { bodyAt: at + 8, length: short === 0 ? Number.MAX_SAFE_INTEGER : short - 8 }
  if (bytes.length < at + 16) return undefined
  return { bodyAt: at + 16, length: uint64(bytes, at + 8) - 16 }
}

/** Reads a count; 0 where the file declares it unknown, or it is not here. */
function countAt(bytes: Buffer, at: number, isLong: boolean): number {
  if (bytes.length < at + (isLong ? 8 : 4)) return 0
  const count = isLong ? uint64(bytes, at) : bytes.readUInt32BE(at)
  return count === 0xffff_ffff || count >= Number.MAX_SAFE_INTEGER ? 0 : count
}

function uint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4)
}
