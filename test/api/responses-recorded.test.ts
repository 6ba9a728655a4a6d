import { describe, expect, test } from 'vitest'
import { responses } from '../../src/api/responses/api.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { StreamEvent } from '../../src/core/events.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { framesOf as converseFrames } from '../dialects/bedrock-converse-reader.ts'
import { linesOf as ollamaLines } from '../dialects/ollama-reader.ts'
import { framesOf as responsesFrames, wholeOf } from '../dialects/openai-responses-reader.ts'
import { benchDialect, type Frame, type Replayed } from '../dialects/replay.ts'
import { type Recording, recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { testEach } from '../helpers/slow.ts'
import { choicesOf, schemaMissing, violations } from './chatSchema.ts'
import { eventsIn, follow } from './responses-order.ts'

const dialects = [
  'anthropic-messages',
  'bedrock-converse',
  'cohere-v2',
  'gemini',
  'ollama',
  'openai-chat',
  'openai-responses',
] as const

/** Formats whose streams are no server-sent events. */
const framesOf: { readonly [dialect: string]: (recording: Recording) => Frame[] | undefined } = {
  'bedrock-converse': converseFrames,
  ollama: (recording) => ollamaLines(recording)?.map((data) => ({ data })),
}

const model = 'maker/model'
const id = '0198f7a2-0000-7000-8000-000000000001'
const body = {
  model,
  input: 'Hello',
  instructions: 'Be brief.',
  tools: [{ type: 'function', name: 'weather', parameters: { type: 'object' } }, { type: 'web_search' }],
  include: ['web_search_call.action.sources', 'message.output_text.logprobs'],
  text: { verbosity: 'low' },
  service_tier: 'flex',
  metadata: { team: 'one' },
}
const request = responses.read(body)
const schemaOf = schemaMissing ? new Map<string, string>() : choicesOf('ResponseStreamEvent')

describe.skipIf(recordingsMissing ?? schemaMissing).each(dialects)('every recorded answer of %s', (dialect) => {
  const bench = benchDialect(dialect)
  const recorded = recordings(dialect).filter(({ response }) => response.status === 200)

  const sizes = new Map(recorded.map((one) => [one, JSON.stringify(one).length]))
  const few = new Set(recorded.toSorted((one, other) => (sizes.get(one) ?? 0) - (sizes.get(other) ?? 0)).slice(0, 3))
  testEach(recorded, { slowIf: (one) => !few.has(one) })(
    '$case as a response, whole and streamed',
    async (recording) => {
      const replayed = await replay(recording)
      if (!replayed.complete || replayed.error) return breaksOff(replayed)
      const usage = replayed.reply.usage
      const facts = { model, usage, costUsd: 0.25, request, id }
      const whole = JSON.parse(JSON.stringify(responses.writeReply(replayed.reply, facts)))
      expect(violations('Response', whole)).toEqual([])

      const writer = responses.openStream(request, { model, id })
      const written = batches(replayed.emitted).map((batch) => writer.events(batch))
      const events = eventsIn([...written, writer.end(facts)].join(''))
      for (const event of events)
        expect([event.type, ...violations(published(event.type), event)]).toEqual([event.type])
      const last = follow(events)
      expect(comparable(last)).toEqual(comparable(whole))
      expect(last.usage).toMatchObject({ cost: 0.25 })
      expect(comparable(writer.reply?.(facts) as JsonObject)).toEqual(comparable(whole))
    },
  )

  test('at least one is there', () => {
    expect(recorded.length).toBeGreaterThan(0)
  })

  async function replay(recording: Recording): Promise<Replayed> {
    if (dialect === 'openai-responses' && recording.response.sse === undefined) {
      return await bench.stream(responsesFrames(wholeOf(recording)) as Frame[])
    }
    const frames = framesOf[dialect]?.(recording) ?? recordedEvents(recording)
    return frames.length > 0 ? await bench.stream(frames) : await bench.reply(recording.response.body)
  }
})

/** A reply that the provider broke off: its content so far is there, and it ends with a failure. */
function breaksOff({ emitted, error }: Replayed): void {
  expect(error).toBeDefined()
  const writer = responses.openStream(request, { model, id })
  const failure = new RouterError('provider_failed', error?.message ?? '', { provider: 'maker' })
  // The gateway fails the call at the failure event: the events that would close the reply never come.
  const before = emitted.filter(({ type }) => type !== 'close' && type !== 'finish' && type !== 'usage')
  const events = eventsIn(writer.events(before) + writer.fail(failure))
  for (const event of events) expect([event.type, ...violations(published(event.type), event)]).toEqual([event.type])
  expect(follow(events)).toMatchObject({ status: 'failed', error: { code: 'server_error', message: error?.message } })
}

function published(type: string): string {
  return schemaOf.get(type) ?? `unknown event ${type}`
}

/** The changes of one provider event: text, and then its log probabilities. */
function batches(emitted: readonly StreamEvent[]): StreamEvent[][] {
  const all: StreamEvent[][] = []
  for (const event of emitted) {
    if (event.type === 'logprobs') all.at(-1)?.push(event)
    else all.push([event])
  }
  return all
}

/** Streams do not have the tier that served, and their time is later. */
function comparable({ service_tier: _tier, completed_at: _at, ...response }: JsonObject): JsonObject {
  return response
}
