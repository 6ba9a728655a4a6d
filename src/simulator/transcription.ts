import { SimulatedError } from './request.ts'

/** The model of the simulator that listens. */
export const hearingModel = 'ear'

/** What was heard in a sound, in the form of a transcription with times. */
export type Heard = {
  task: 'transcribe'
  language: string
  duration: number
  text: string
  words: { word: string; start: number; end: number }[]
  segments: object[]
  usage: { type: 'duration'; seconds: number }
}

/**
 * Hears how long a sound is, and says it: of WAV files by their header, of others by their size. Throws SimulatedError for an
 * empty file or another model.
 */
export function heard(bytes: Buffer, asked: URLSearchParams): Heard {
  const model = asked.get('model')
  if (model !== hearingModel) {
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

/** The bytes of a second, where a file does not say them: 128 kbit. */
const usualBytes = 16_000

function secondsOf(bytes: Buffer): number {
  const isWav = bytes.length >= 44 && bytes.toString('latin1', 0, 4) === 'RIFF'
  const perSecond = isWav ? bytes.readUInt32LE(28) : usualBytes
  return (bytes.length - (isWav ? 44 : 0)) / (perSecond || usualBytes)
}
