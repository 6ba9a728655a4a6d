import type { AudioLength } from '../core/operation.ts'
import type { UploadedFile } from '../core/upload.ts'
import { type AudioFormat, audioFormatOf } from './audio-format.ts'
import { type AudioParser, parseElements } from './audio-parser.ts'
import { mp4Parser } from './mp4.ts'
import { mpegParser } from './mpeg-audio.ts'
import { oggParser } from './ogg.ts'
import { flacParser, wavParser } from './wav-flac.ts'
import { webmParser } from './webm.ts'

/** A file as far as it is read to be measured. */
export type MeasuredFile = Pick<UploadedFile, 'head' | 'size' | 'read'>

/**
 * Measures how long the sound of a file is, piece by piece; estimates it by the size where the file does not say, or has more elements
 * than a recording. Rejects with the reason of an aborted signal.
 */
export async function audioLength(file: MeasuredFile, signal?: AbortSignal): Promise<AudioLength> {
  const format = audioFormatOf(file.head)
  const seconds = format && (await secondsOf(format, file, signal))
  if (seconds !== undefined && isPlausible(seconds, file.size)) return { seconds, most: seconds, exact: true }
  return { seconds: file.size / usualBytes, most: file.size / fewestBytes, exact: false }
}

/** Of what is spoken, in bytes per second: at 64 kbit/s, and at 6 kbit/s, the least that speech is understood at. */
const usualBytes = 8_000
const fewestBytes = 750

/** A header may say anything: nothing has more bytes per second than a film, and nothing fewer than silence. */
function isPlausible(seconds: number, size: number): boolean {
  return seconds > 0 && seconds * mostBytes >= size && seconds * silentBytes <= size
}

const pieceBytes = 32 * 1024
const mostBytes = 6_000_000
const silentBytes = 25

const parsers: { readonly [format in AudioFormat]?: (file: Pick<UploadedFile, 'head' | 'size'>) => AudioParser } = {
  flac: ({ head }) => flacParser(head),
  mp3: mpegParser,
  mp4: mp4Parser,
  ogg: oggParser,
  wav: ({ size }) => wavParser(size),
  webm: webmParser,
}

async function secondsOf(format: AudioFormat, file: MeasuredFile, signal?: AbortSignal): Promise<number | undefined> {
  const parser = parsers[format]?.(file)
  if (!parser) return undefined
  // Many files that are read at once must not leave their pieces to the garbage collector.
  const pieces = file.read(Buffer.allocUnsafeSlow(pieceBytes))
  const isRead = await parseElements({ size: file.size, pieces }, parser, signal)
  return isRead ? parser.seconds() : undefined
}
