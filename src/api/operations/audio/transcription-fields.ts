import { RouterError } from '../../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import { type Check, fieldsOf, listOf, oneOf, refuse, text } from '../../check.ts'
import type { OperationBody } from '../../operation-api.ts'
import { fileField, formFields, formFlag, formNumber, parsedJson } from '../form-fields.ts'
import { routingOfForm } from '../form-routing.ts'
import { readFields } from '../shared.ts'
import { audioFileOf } from './audio-file.ts'
import { languageOf } from './languages.ts'

/** The forms of a transcript that a client can ask for. */
export const transcriptFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const

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

/** Reads the form of a transcription. Throws RouterError 400, 415. */
export function readTranscription(form: OperationBody): OperationRequest {
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
  throw refused('timestamp_granularities', message)
}

/** A form has it as text. */
function requestyOf({ requesty }: JsonObject): JsonObject {
  return typeof requesty === 'string' ? { requesty: parsedJson(requesty) ?? requesty } : {}
}

/** Throws RouterError 400 for timestamps or a form that a model does not give, as far as the catalog knows. */
export function checkTranscriptionModel({ fields }: OperationRequest, entry: ModelEntry): void {
  const { formats, granularities, granularities_at_once: atOnce = granularities?.length ?? 0 } = entry
  const { response_format: format = 'json', timestamp_granularities: asked = [] } = fields
  if (formats && !isGiven(String(format), formats)) {
    throw refused(
      'response_format',
      `'response_format' of this model must be one of ${formats.join(', ')}, not ${format}.`,
    )
  }
  if (!granularities || !Array.isArray(asked)) return
  const other = asked.find((one) => !granularities.includes(String(one)))
  if (other !== undefined) {
    const known = granularities.join(', ')
    throw refused('timestamp_granularities', `'timestamp_granularities' of this model can be ${known}, not ${other}.`)
  }
  if (asked.length <= atOnce) return
  const message = `'timestamp_granularities' of this model must be ${atOnce} of ${granularities.join(', ')}, not ${asked.length} at once.`
  throw refused('timestamp_granularities', message)
}

/** Texts and subtitles are made of the other forms by the router. */
function isGiven(format: string, formats: readonly string[]): boolean {
  if (format === 'json' || format === 'text' || formats.includes(format)) return true
  return (format === 'srt' || format === 'vtt') && formats.includes('verbose_json')
}

function refused(param: string, message: string): RouterError {
  return new RouterError('invalid_request', message, { param })
}
