import { RouterError } from '../../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import type { Usage } from '../../../core/usage.ts'
import { type Check, fieldsOf, filledText, number, oneOf, refuse, required, text } from '../../check.ts'
import type { OperationApi } from '../../operation-api.ts'
import { jsonOf, readFields, tokensOfText } from '../shared.ts'
import { audioFacts, audioFormats, secondsOf, speechBytes, speechEvents } from './spoken-audio.ts'

/** Maximum length of a text where the model's entry does not state it, the same as OpenAI's. Code points. */
const usualLength = 4_096

/** Tokens of a second of audio: OpenAI's, and those of the models that have the most, Gemini's. */
const tokensPerSecond = 1_250 / 60
const maxTokensPerSecond = 25

/** A word alone may be drawn out. Seconds. */
const minSeconds = 10

/** First code point of the scripts of China, Japan and Korea; all later ones are counted with them. */
const firstSign = 0x2e80

/**
 * Speech: a text in, audio out. A whole reply of a provider is `{audio, encoding?, media_type?}`: base64, or hexadecimal digits where
 * `encoding` is `hex`.
 */
export const speech: OperationApi = {
  operation: 'speech',
  json: true,
  read(body) {
    const json = jsonOf(body)
    const input = required(json.input, 'input', 'the text to speak', filledText)
    const voice = required(json.voice, 'voice', 'the name of a voice, or {"id": …}', readVoice)
    const fields: JsonObject = { input, voice, ...fieldsOf<JsonObject>(json, optionalFields) }
    const request = readFields('speech', json, { fields, stream: fields.stream_format === 'sse' })
    // The router records the user; no provider knows one here.
    return { ...request, fields }
  },
  wants: ({ stream }) => (stream ? 'events' : 'bytes'),
  checkModel: checkLength,
  maxUsage,
  count: ({ fields }, reply) => ({ characters: charactersOf(String(fields.input)), ...exactSeconds(reply) }),
  estimate,
  bytes: speechBytes,
  events: speechEvents,
}

const readVoice: Check<Json> = (value, path) => {
  if (!isObject(value)) return filledText(value, path)
  const { id, ...others } = value
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) refuse(`${path}.${unknown}`, 'absent: a voice is a name, or {"id": …}', others[unknown])
  return { id: required(id, `${path}.id`, 'the id of a voice', filledText) }
}

const optionalFields = [
  ['instructions', text],
  ['response_format', oneOf(audioFormats)],
  ['speed', number(0.25, 4)],
  ['stream_format', oneOf(['audio', 'sse'])],
] as const

function checkLength({ fields }: OperationRequest, { max_characters: most = usualLength }: ModelEntry): void {
  const length = charactersOf(String(fields.input))
  if (length <= most) return
  const message = `'input' must have from 1 to ${most} characters for this model, not ${length}.`
  throw new RouterError('invalid_request', message, { param: 'input' })
}

function maxUsage({ fields }: OperationRequest, entry: ModelEntry | undefined): Usage {
  const seconds = maxSeconds(fields)
  const longest = entry?.max_output_tokens ?? Number.POSITIVE_INFINITY
  const words = String(fields.input) + String(fields.instructions ?? '')
  return {
    // No text has more tokens than bytes.
    input: Buffer.byteLength(words) + 64,
    output_audio: Math.min(Math.ceil(seconds * maxTokensPerSecond), longest),
    characters: charactersOf(String(fields.input)),
    seconds,
  }
}

function estimate({ fields }: OperationRequest, reply?: JsonObject): Usage {
  const seconds = (reply && secondsOf(audioFacts(reply))) ?? estimatedSeconds(fields)
  const words = String(fields.input) + String(fields.instructions ?? '')
  return { input: tokensOfText(words), output_audio: Math.ceil(seconds * tokensPerSecond), seconds }
}

function exactSeconds(reply: JsonObject | undefined): Usage {
  const audio = reply && audioFacts(reply)
  const seconds = audio?.exactly === true ? secondsOf(audio) : undefined
  return seconds === undefined ? {} : { seconds }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

/** Counts the characters of a text, each code point being one. */
function charactersOf(text: string): number {
  let count = text.length
  for (let at = 1; at < text.length; at++) {
    const isPair = isLowSurrogate(text.charCodeAt(at)) && isHighSurrogate(text.charCodeAt(at - 1))
    if (isPair) count--
  }
  return count
}

/** Estimates how long it takes to speak a text at its `speed`, in seconds. */
function estimatedSeconds({ input, speed }: JsonObject): number {
  return sumOf(String(input), { letter: 1 / 15, digit: 0.3, sign: 0.2 }) / (typeof speed === 'number' ? speed : 1)
}

/** The longest that it can take, in seconds: numbers are long words, and instructions may ask for pauses. */
function maxSeconds({ input, speed, instructions }: JsonObject): number {
  const slowness = typeof speed === 'number' && speed < 1 ? 1 / speed : 1
  const spoken = sumOf(String(input), { letter: 0.2, digit: 1, sign: 0.5 })
  return (minSeconds + spoken) * slowness * (instructions === undefined ? 1 : 2)
}

/** Seconds of a letter of an alphabet, of a digit, and of a sign that is a syllable or a word. */
type Pace = { letter: number; digit: number; sign: number }

function sumOf(text: string, { letter, digit, sign }: Pace): number {
  let seconds = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    if (code >= firstSign) seconds += sign
    else seconds += code >= 48 && code <= 57 ? digit : letter
  }
  return seconds
}
