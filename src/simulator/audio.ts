import { SimulatedError } from './request.ts'
import { requireLength } from './words.ts'

/** The model of the simulator that speaks. */
export const speechModel = 'tone'

/** Spoken text: 24,000 samples a second, of 16 bits, and how they are to be sent. */
type Spoken = {
  samples: Buffer
  format: 'wav' | 'pcm'
  events: boolean
  usage: { input_tokens: number; output_tokens: number; total_tokens: number }
}

/** Speaks a text: a tone that is longer the longer the text is. Throws SimulatedError for a body that is not a request. */
export function spoken(body: unknown): Spoken {
  const { model, input, speed, response_format: format, stream_format: stream } = Object(body)
  if (model !== speechModel) {
    throw new SimulatedError(404, `The model \`${model}\` does not exist.`, { param: 'model', code: 'model_not_found' })
  }
  if (typeof input === 'string') requireLength(input.length, maxSpeechLength)
  if (typeof input !== 'string' || input === '') {
    throw new SimulatedError(400, "Missing required parameter: 'input'.", { param: 'input' })
  }
  const seconds = input.length / lettersPerSecond / (typeof speed === 'number' ? speed : 1)
  const input_tokens = Math.ceil(input.length / 4)
  const output_tokens = Math.ceil(seconds * tokensPerSecond)
  return {
    samples: tone(Math.ceil(seconds * sampleRate)),
    format: format === 'pcm' ? 'pcm' : 'wav',
    events: stream === 'sse',
    usage: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
  }
}

/** The pieces of spoken text in its format, of a fifth of a second. */
export function* piecesOf({ samples, format }: Spoken): Generator<Buffer> {
  if (format === 'wav') yield headerOf(samples.length)
  for (let at = 0; at < samples.length; at += pieceBytes) yield samples.subarray(at, at + pieceBytes)
}

const sampleRate = 24_000
const lettersPerSecond = 15
/** Maximum length of a text, the same as OpenAI's. Letters. */
const maxSpeechLength = 4_096
const tokensPerSecond = 20
const pieceBytes = (sampleRate * 2) / 5

/** The note A, not loud. */
function tone(count: number): Buffer {
  return Buffer.alloc(count * 2, waves)
}

/** Wave of the note, which begins again after this many samples. */
const waves = Buffer.alloc(600 * 2)
for (let at = 0; at < 600; at++) {
  waves.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * 440 * at) / sampleRate)), at * 2)
}

/** Returns the header of a WAV file with `length` bytes of samples. */
function headerOf(length: number): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + length, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(sampleRate * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(length, 40)
  return header
}

/** The model of the simulator that listens. */
export const transcriptionModel = 'ear'

/** Text recognized in a sound, in the form of a transcription with times. */
type SimulatedTranscript = {
  task: 'transcribe'
  language: string
  duration: number
  text: string
  words: { word: string; start: number; end: number }[]
  segments: object[]
  usage: { type: 'duration'; seconds: number }
}

/**
 * Transcribes a sound as a sentence that states its length: of WAV files by their header, of others by their size. Throws SimulatedError
 * for an empty file or another model.
 */
export function transcribed(bytes: Buffer, asked: URLSearchParams): SimulatedTranscript {
  const model = asked.get('model')
  if (model !== transcriptionModel) {
    throw new SimulatedError(404, `The model \`${model}\` does not exist.`, { param: 'model', code: 'model_not_found' })
  }
  if (bytes.length === 0) throw new SimulatedError(400, 'The file is empty.', { param: 'file' })
  const duration = Math.round(secondsOf(bytes) * 100) / 100
  const text = `A sound of ${duration} seconds.`
  const spoken = text.split(' ')
  const each = duration / spoken.length
  const words = spoken.map((word, index) => ({ word, start: index * each, end: (index + 1) * each }))
  const segment = { id: 0, start: 0, end: duration, text, tokens: [], temperature: 0, avg_logprob: 0 }
  return {
    task: 'transcribe',
    language: asked.get('language') ?? 'english',
    duration,
    text,
    words,
    segments: [{ ...segment, compression_ratio: 1, no_speech_prob: 0 }],
    usage: { type: 'duration', seconds: duration },
  }
}

/** Bytes per second, where a file does not state them: 128 kbit. */
const usualBytes = 16_000

function secondsOf(bytes: Buffer): number {
  const isWav = bytes.length >= 44 && bytes.toString('latin1', 0, 4) === 'RIFF'
  const perSecond = isWav ? bytes.readUInt32LE(28) : usualBytes
  return (bytes.length - (isWav ? 44 : 0)) / (perSecond || usualBytes)
}
