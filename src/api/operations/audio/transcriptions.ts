import { errorBody, RouterError } from '../../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest, UploadedFile } from '../../../core/operation.ts'
import type { Usage } from '../../../core/usage.ts'
import { type AudioFormat, audioFormatOf, mediaTypes } from '../../../media/audio-format.ts'
import { audioLength, maxSecondsOf } from '../../../media/audio-length.ts'
import { type Check, fieldsOf, listOf, oneOf, onlyString, refuse, text } from '../../check.ts'
import type { OperationApi, OperationBody, OperationEvents } from '../../operation-api.ts'
import { fileField, formFields, formFlag, formNumber, parsedJson, routingOfForm } from '../form-fields.ts'
import { readFields, tokensOfText } from '../shared.ts'
import { languageOf, textOf, transcriptUsage, withoutTimes, writeTranscript } from './transcript.ts'

const events: OperationEvents = {
  ofWhole: (reply) => [{ ...withoutTimes(reply), type: done, text: textOf(reply) }],
  isEnd: ({ type }) => type === done,
  write: (event, { usage, costUsd }) => {
    if (event.type !== done || usage === undefined) return event
    return { ...event, usage: transcriptUsage({ usage, ...(costUsd !== undefined && { costUsd }) }) }
  },
  named: false,
  terminator: 'data: [DONE]\n\n',
  fail: errorBody,
  collect: (known, { type, delta, text }) => {
    if (type === done) return { text: onlyString(text) ?? '' }
    return { text: `${onlyString(known.text) ?? ''}${onlyString(delta) ?? ''}` }
  },
}

const done = 'transcript.text.done'

/** Maximum number of tokens that models count for a second; the shortest sound counts as if it lasted half a minute. */
const maxAudioTokensPerSecond = 32
const minAudioSeconds = 30
/** Maximum number of tokens spoken in a second, with the marks of who speaks. */
const maxSpokenTokensPerSecond = 48

/**
 * Tokens spoken in a second, twice as many as on average: 150 words a minute are three to four. The models that state how they count sound
 * are priced by both, and twice the price of a recording is enough to send it.
 */
const fastTokensPerSecond = 9

/** Tokens of audio per second, for models whose tokens are not counted. */
const audioTokensPerSecond = 10

/** The forms of a transcript that a client can ask for. */
const transcriptFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const

/** A language by its code of two letters. */
const language: Check<string> = (value, path) => {
  const code = typeof value === 'string' && /^[a-z]{2}$/i.test(value) ? value.toLowerCase() : ''
  return languageOf(code || 'und') === undefined ? refuse(path, `an ISO 639-1 code such as 'en'`, value) : code
}

const lists = [
  ['languages', listOf(language)],
  ['keywords', listOf(text)],
  ['timestamp_granularities', listOf(oneOf(['word', 'segment']))],
  ['include', listOf(oneOf(['logprobs']))],
  ['known_speaker_names', listOf(text)],
  ['known_speaker_references', listOf(text)],
] as const

const chunkingStrategy: Check<Json> = (value, path) => {
  const read = typeof value === 'string' && value.startsWith('{') ? parsedJson(value) : value
  if (read === 'auto' || (isObject(read) && read.type === 'server_vad')) return read
  return refuse(path, `'auto' or an object of the type server_vad`, value)
}

const optionalFields = [
  ['language', language],
  ['prompt', text],
  ['response_format', oneOf(transcriptFormats)],
  ['temperature', formNumber(0, 1)],
  ['chunking_strategy', chunkingStrategy],
  ['stream', formFlag],
  ...lists,
] as const

const names = {
  lists: lists.map(([name]) => name),
  known: [...optionalFields.map(([name]) => name), 'file', 'model', 'user', 'requesty'],
}

/** The endings of file names that can be transcribed. */
const endings = ['flac', 'mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'ogg', 'wav', 'webm']

/** Transcriptions: a file with sound in, its text out. */
export const transcriptions: OperationApi = {
  operation: 'transcribe',
  form: { fileBytes: 32 * 1024 * 1024, files: 1 },
  json: false,
  read: readTranscription,
  async measure(request, signal) {
    const [file] = request.files
    return file ? { ...request, audio: await audioLength(file, signal) } : request
  },
  wants: ({ stream }) => (stream ? 'events' : 'json'),
  checkModel: checkTranscriptionModel,
  maxUsage,
  plausible: ({ files: [file] }) => (file ? { seconds: maxSecondsOf(file) } : {}),
  count: ({ audio }) => (audio?.exact ? { seconds: audio.seconds } : {}),
  estimate,
  check: (reply) => void textOf(reply),
  write: writeTranscript,
  events,
}

function maxUsage(request: OperationRequest, entry: ModelEntry | undefined): Usage {
  const longest = request.audio?.maxSeconds ?? 0
  const counted = entry?.audio_tokens_per_second
  // A transcript with speakers has ten times as many tokens.
  const isPlain = counted !== undefined && !entry?.formats?.includes('diarized_json')
  const spoken = isPlain ? longest * fastTokensPerSecond + 64 : longest * maxSpokenTokensPerSecond + 256
  const output = Math.ceil(spoken)
  return {
    input: Buffer.byteLength(hintsOf(request)) + 64,
    input_audio: maxAudioTokens(longest + referenceSeconds(request), counted),
    output: Math.min(output, entry?.max_output_tokens ?? output),
    seconds: Math.max(Math.ceil(longest), entry?.min_seconds ?? 0),
  }
}

/** Returns the most tokens of sound; where a model states how many it counts, those and the rounding of its parts. */
function maxAudioTokens(seconds: number, counted: number | undefined): number {
  if (counted === undefined) return Math.ceil((seconds + minAudioSeconds) * maxAudioTokensPerSecond)
  return Math.ceil((seconds + 1) * counted * 1.1)
}

/** Returns the most seconds of the examples of known speakers, which are read as well: each has at most ten. */
function referenceSeconds({ fields: { known_speaker_references: references } }: OperationRequest): number {
  return Array.isArray(references) ? references.length * 10 : 0
}

function estimate(request: OperationRequest, reply: JsonObject = {}): Usage {
  const seconds = request.audio?.seconds ?? 0
  return {
    input: tokensOfText(hintsOf(request)),
    input_audio: Math.ceil(seconds * audioTokensPerSecond),
    output: tokensOfText(onlyString(reply.text) ?? ''),
    seconds,
  }
}

/** Returns the client's hints about the audio. */
function hintsOf({ fields: { prompt, keywords } }: OperationRequest): string {
  return [prompt, keywords].flat().filter(Boolean).join(' ')
}

/** Reads the form of a transcription. Throws RouterError 400, 415. */
function readTranscription(form: OperationBody): OperationRequest {
  if (!('fields' in form)) {
    const message = 'The body must be a form of the Content-Type multipart/form-data.'
    throw new RouterError('unsupported_media_type', message, { param: 'content-type' })
  }
  const { routing, others } = routingOfForm(form.fields)
  const { file: text, ...body } = formFields(others, names)
  const file = audioFileOf(form.files, text !== undefined)
  const { stream, ...fields } = fieldsOf<JsonObject>(body, optionalFields)
  checkGranularities(fields)
  const sent = { file: fileField(file, 0), ...fields, ...(stream === true && { stream }) }
  const { stream: _, ...members } = { ...body, ...requestyOf(body), ...routing }
  return readFields('transcribe', members, { fields: sent, files: [file], stream: stream === true })
}

function checkGranularities(fields: JsonObject): void {
  const { timestamp_granularities: granularities, response_format: format = 'json' } = fields
  if (!Array.isArray(granularities)) return
  fields.timestamp_granularities = [...new Set(granularities)]
  if (format === 'verbose_json') return
  const message = `'timestamp_granularities' needs the response_format verbose_json, not ${format}.`
  throw refusedField('timestamp_granularities', message)
}

/** A form has it as text. */
function requestyOf({ requesty }: JsonObject): JsonObject {
  return typeof requesty === 'string' ? { requesty: parsedJson(requesty) ?? requesty } : {}
}

/** Throws RouterError 400 for timestamps or a form that a model does not give, as far as the catalog knows. */
function checkTranscriptionModel({ fields }: OperationRequest, entry: ModelEntry): void {
  const { formats, granularities, granularities_at_once: atOnce = granularities?.length ?? 0 } = entry
  const { response_format: format = 'json', timestamp_granularities: asked = [] } = fields
  if (formats && !isGiven(String(format), formats)) {
    throw refusedField(
      'response_format',
      `'response_format' of this model must be one of ${formats.join(', ')}, not ${format}.`,
    )
  }
  if (!granularities || !Array.isArray(asked)) return
  const other = asked.find((one) => !granularities.includes(String(one)))
  if (other !== undefined) {
    const known = granularities.join(', ')
    throw refusedField(
      'timestamp_granularities',
      `'timestamp_granularities' of this model can be ${known}, not ${other}.`,
    )
  }
  if (asked.length <= atOnce) return
  const message = `'timestamp_granularities' of this model must be ${atOnce} of ${granularities.join(', ')}, not ${asked.length} at once.`
  throw refusedField('timestamp_granularities', message)
}

/** Texts and subtitles are made of the other forms by the router. */
function isGiven(format: string, formats: readonly string[]): boolean {
  if (format === 'json' || format === 'text' || formats.includes(format)) return true
  return (format === 'srt' || format === 'vtt') && formats.includes('verbose_json')
}

function refusedField(param: string, message: string): RouterError {
  return new RouterError('invalid_request', message, { param })
}

/** The file of a form that is to be transcribed, by its name and its first bytes; the one that is sent has both. Throws RouterError 400. */
function audioFileOf(files: readonly UploadedFile[], isText: boolean): UploadedFile {
  const file = files.find(({ field }) => field === 'file')
  if (!file) {
    const [other] = files
    const found = isText ? 'it is text' : other ? `the file of this form is '${other.field.slice(0, 80)}'` : ''
    throw refusedFile(`'file' is missing: it must be a file${found && `, but ${found}`}.`)
  }
  if (file.size === 0) throw refusedFile("'file' is empty: it must be a file with sound.")
  const format = audioFormatOf(file.head)
  const [, ending] = /\.([a-z\d]{1,8})$/i.exec(file.filename) ?? []
  const isNamed = ending === undefined || endings.includes(ending.toLowerCase())
  if (format && isNamed) return named(file, { format, ending })
  const what = isNamed ? 'its first bytes match none of them' : `not '.${ending}'`
  throw refusedFile(`'file' must be in one of the formats ${endings.join(', ')}: ${what}.`)
}

/** Names a file after its format: providers recognize formats by the file name extension. */
function named(file: UploadedFile, { format, ending }: { format: AudioFormat; ending: string | undefined }) {
  const filename = ending === undefined ? `${file.filename || 'audio'}.${format}` : file.filename
  const mediaType = /^(?:audio|video)\//.test(file.mediaType) ? file.mediaType : mediaTypes[format]
  return { ...file, filename, mediaType }
}

function refusedFile(message: string): RouterError {
  return new RouterError('invalid_request', message, { param: 'file' })
}
