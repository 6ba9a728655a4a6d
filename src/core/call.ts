import type { ErrorCode } from './errors.ts'
import type { JsonObject } from './json.ts'
import type { Operation, OperationApiName } from './operation.ts'
import type { Part } from './parts.ts'
import type { Reply } from './reply.ts'
import type { Api, NeutralRequest } from './request.ts'
import type { RecordedTrace } from './trace.ts'
import type { Usage, UsageClass } from './usage.ts'

/** The cost of a call in integer nano-USD; `parts` adds up to `nanoUsd` before the one rounding. */
export type Cost = {
  nanoUsd: number
  /** Nano-USD by usage class, for the request as such, and what the provider charged beyond them, with fractions. */
  parts: { [name in UsageClass | 'request' | 'reported']?: number }
  /** Identifies the prices that were used: a digest of the tier. */
  priceVersion: string
  /** True if no price is known for this model. */
  unpriced?: boolean
  /** Computed from estimated counts, because the provider reported none. */
  estimated?: boolean
}

/** Outcome of a call: `partial` when it broke off after its first event. */
export type Outcome = 'complete' | 'partial' | 'failed'

/**
 * One settled call, as recorded in the ledger, or an attempt of one that was followed by another attempt. Times are Unix
 * milliseconds.
 */
export type CallRecord = {
  id: string
  /** The call of which this is an attempt; `attempts` is then its number, and `durationMs` its own time. */
  attemptOf?: string
  /** The `x-request-id` that the client sent. */
  requestId?: string
  at: number
  organization: string
  key: string
  /** The group of the key when the call was made. */
  group?: string
  api: Api | OperationApiName
  operation: 'chat' | 'compact' | Operation
  /** The model string the client sent. */
  requested: string
  provider: string
  model: string
  /** The provider's own name of the model that served, where that is another one. */
  served?: string
  stream: boolean
  outcome: Outcome
  status: number
  error?: ErrorCode
  /** The message of the error, where it cannot repeat any content; and the provider's own code. */
  message?: string
  providerCode?: string
  /** The provider's own message, without secrets and content; stored for a limited time. */
  providerMessage?: string
  /** The class of the failure, by which it was decided what followed it: `connection`, `timeout`, `rate_limited` … */
  failure?: string
  usage: Usage
  cost: Cost
  dropped: string[]
  attempts: number
  /** The most that was reserved for the call, in nano-USD. */
  reservedNano?: number
  durationMs: number
  /** Time at which the attempt began, in milliseconds after the call; missing in older rows of calls with one attempt. */
  startedMs?: number
  firstEventMs?: number
  /** True if a piece of the answer could not be read, and was skipped. */
  damaged?: boolean
  /** Explanation of the choice of targets, where the call asked for it. */
  explanation?: JsonObject
  user?: string
  metadata?: JsonObject
  /** Place of the call in a trace; only the id of a trace that the client began is stored. */
  trace?: RecordedTrace
  /** Content of the call, for its spans, where the operator enables that; it is not stored. */
  contents?: CallContents
}

/** Facts of a call for the log alone: the description of its error, and the name of its key. */
export type LogFacts = { detail?: string | undefined; keyName?: string | undefined }

/** Content that a call sent and received, as JSON in the form of OpenTelemetry's conventions for generative AI. */
export type CallContents = { system?: string; input: string; output: string }

/** The contents of a call, each cut where it is very long. */
export function contentsOf({ system, messages }: NeutralRequest, { parts, finish }: Reply): CallContents {
  return {
    ...(system && { system: written(system.map(partOf)) }),
    input: written(messages.map(({ role, parts }) => ({ role, parts: parts.map(partOf) }))),
    output: written([{ role: 'assistant', parts: parts.map(partOf), finish_reason: finish }]),
  }
}

function written(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= maxLength ? text : text.slice(0, maxLength).toWellFormed()
}

/** Maximum length of a text, above what collectors accept. Characters. */
const maxLength = 64 * 1_024

/** Media are named, not repeated: they may be large. */
function partOf(part: Part): { type: string; [member: string]: unknown } {
  if (part.type === 'text' || part.type === 'refusal') return { type: 'text', content: part.text }
  if (part.type === 'reasoning') return { type: 'reasoning', content: part.text ?? part.summary ?? '' }
  if (part.type === 'tool_call') {
    const { id, name, arguments: said } = part
    return { type: 'tool_call', id, name, arguments: said }
  }
  if (part.type === 'tool_result') {
    return { type: 'tool_call_response', id: part.id, response: part.parts.map(partOf) }
  }
  if (part.type === 'search' || part.type === 'opaque') return { type: part.type }
  return { type: part.type, ...(part.media_type !== undefined && { mime_type: part.media_type }) }
}
