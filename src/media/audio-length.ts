import type { AudioLength, UploadedFile } from '../core/operation.ts'
import { type AudioFormat, audioFormatOf } from './audio-format.ts'
import { type AudioParser, minBytesPerSecond, type ParserFile, parseElements } from './audio-parser.ts'
import { flacParser } from './flac.ts'
import { mp4Parser } from './mp4.ts'
import { mpegParser, programParser } from './mpeg-audio.ts'
import { oggParser } from './ogg.ts'
import { wavParser } from './wav.ts'
import { webmParser } from './webm.ts'

/** A file as far as it is read to be measured. */
type MeasuredFile = Pick<UploadedFile, 'head' | 'size' | 'read'>

/**
 * Measures how long the sound of a file is, piece by piece: by what a decoder makes of it, since a header may state anything. Estimates it
 * by the size and the lowest bit rate of its codec where it cannot be measured, or has more elements than a recording. Rejects with the reason of an aborted signal.
 */
export async function audioLength(file: MeasuredFile, signal?: AbortSignal): Promise<AudioLength> {
  const format = audioFormatOf(file.head)
  const parser = format && parsers[format](file)
  const isRead = parser !== undefined && (await readThrough(parser, file, signal))
  const seconds = isRead ? parser.seconds() : undefined
  if (seconds !== undefined && seconds > 0) return { seconds, maxSeconds: seconds, exact: true }
  // Whoever chooses the codec chooses the bit rate: what is not measured counts as if it had the lowest.
  const longest = file.size / ((isRead ? parser.minBytesPerSecond?.() : undefined) ?? minBytesPerSecond)
  return { seconds: longest, maxSeconds: longest, exact: false }
}

/** The longest that the speech in a file can last, by its size. */
export function maxSecondsOf({ size }: Pick<UploadedFile, 'size'>): number {
  return size / minBytesPerSecond
}

const pieceBytes = 32 * 1024

const parsers: { readonly [format in AudioFormat]: (file: ParserFile) => AudioParser } = {
  flac: flacParser,
  mp3: mpegParser,
  mp4: mp4Parser,
  mpeg: programParser,
  ogg: oggParser,
  wav: wavParser,
  webm: webmParser,
}

async function readThrough(parser: AudioParser, file: MeasuredFile, signal: AbortSignal | undefined): Promise<boolean> {
  // Many files that are read at once must not leave their pieces to the garbage collector.
  const pieces = file.read(Buffer.allocUnsafeSlow(pieceBytes))
  return await parseElements({ size: file.size, pieces }, parser, signal)
}
