import { errorBody } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import type { Usage } from '../../../core/usage.ts'
import { audioLength } from '../../../media/audio-length.ts'
import { onlyString } from '../../check.ts'
import type { OperationApi, OperationEvents } from '../../operation-api.ts'
import { tokensOfText } from '../shared.ts'
import { textOf, transcriptUsage, withoutTimes, writeTranscript } from './transcript.ts'
import { checkTranscriptionModel, readTranscription } from './transcription-fields.ts'

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
  most,
  count: ({ audio }) => (audio?.exact ? { seconds: audio.seconds } : {}),
  estimate,
  check: (reply) => void textOf(reply),
  write: writeTranscript,
  events,
}

/** Models hear a second in at most so many tokens, the shortest sound as if it lasted half a minute. */
const mostHeardTokens = 32
const leastHeardSeconds = 30
/** Nobody says more in a second, with the marks of who speaks. */
const mostSpokenTokens = 48

function most(request: OperationRequest, entry: ModelEntry | undefined): Usage {
  const longest = request.audio?.most ?? 0
  const output = Math.ceil(longest * mostSpokenTokens) + 256
  return {
    input: Buffer.byteLength(hintsOf(request)) + 64,
    input_audio: Math.ceil((longest + leastHeardSeconds) * mostHeardTokens),
    output: Math.min(output, entry?.max_output_tokens ?? output),
    seconds: Math.max(Math.ceil(longest), entry?.min_seconds ?? 0),
  }
}

/** Of models whose tokens are not counted. */
const heardTokens = 10

function estimate(request: OperationRequest, reply: JsonObject = {}): Usage {
  const seconds = request.audio?.seconds ?? 0
  return {
    input: tokensOfText(hintsOf(request)),
    input_audio: Math.ceil(seconds * heardTokens),
    output: tokensOfText(onlyString(reply.text) ?? ''),
    seconds,
  }
}

/** What the client says about the sound. */
function hintsOf({ fields: { prompt, keywords } }: OperationRequest): string {
  return [prompt, keywords].flat().filter(Boolean).join(' ')
}
