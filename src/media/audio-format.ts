/** A format of sound, or of a film with sound, that can be recognized by its first bytes. */
export type AudioFormat = 'flac' | 'mp3' | 'mp4' | 'mpeg' | 'ogg' | 'wav' | 'webm'

/** The format of a file by its first bytes; undefined for any other one. */
export function audioFormatOf(head: Uint8Array): AudioFormat | undefined {
  const start = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString('latin1')
  const begin = start.startsWith('ID3') ? start.slice(id3Length(head)) : start
  return signatures.find(([pattern]) => pattern.test(begin))?.[1] ?? (start.startsWith('ID3') ? 'mp3' : undefined)
}

const signatures: readonly (readonly [RegExp, AudioFormat])[] = [
  [/^(?:RIFF|RF64).{4}WAVE/s, 'wav'],
  [/^OggS/, 'ogg'],
  [/^fLaC/, 'flac'],
  [/^.{4}ftyp/s, 'mp4'],
  [/^\p{Cc}E\xdf\xa3/u, 'webm'],
  // A frame of MPEG audio; layer 00 would be AAC.
  [/^\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]/, 'mp3'],
  // A program stream or a video of MPEG.
  [/^\p{Cc}{3}[\xb3\xba]/u, 'mpeg'],
]

/** The bytes of the tag that a file begins with, 0 where there is none. */
export function id3Length(bytes: Uint8Array): number {
  const [i, d, three, , , flags = 0, ...size] = bytes.subarray(0, 10)
  if (i !== 0x49 || d !== 0x44 || three !== 0x33 || size.length < 4) return 0
  const length = size.reduce((sum, byte) => sum * 128 + (byte & 127), 0)
  return 10 + length + (flags & 0x10 ? 10 : 0)
}

/** The media type of a format. */
export const mediaTypes: Readonly<Record<AudioFormat, string>> = {
  flac: 'audio/flac',
  mp3: 'audio/mpeg',
  mp4: 'audio/mp4',
  mpeg: 'video/mpeg',
  ogg: 'audio/ogg',
  wav: 'audio/wav',
  webm: 'audio/webm',
}
