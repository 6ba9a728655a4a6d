import type { CallRecord } from '../core/call.ts'
import { attemptSpan } from '../core/trace.ts'
import { completionTokens, promptTokens } from '../core/usage.ts'

/** One span of a trace, in the words of OpenTelemetry; times are Unix milliseconds. */
export type SpanFacts = {
  name: string
  kind: 'server' | 'client'
  traceId: string
  spanId: string
  parentId?: string
  start: number
  end: number
  /** The message of a failure. */
  error?: string
  attributes: SpanAttributes
  events: SpanEvent[]
}

export type SpanAttributes = { [name: string]: string | number | boolean | string[] }
export type SpanEvent = { name: string; at: number; attributes?: SpanAttributes }

/**
 * Spans of the ledger's rows: one of kind client for each attempt and, when the call has ended, one of kind server for the call, which has the
 * attempts before the last one as events as well.
 */
export class Spans {
  /** Results of the earlier attempts of calls that go on. */
  readonly #earlier = new Map<string, SpanEvent[]>()

  of(record: CallRecord): SpanFacts[] {
    if (!record.trace?.isSampled) return []
    const attempt = attemptOf(record)
    if (record.attemptOf !== undefined) {
      this.#remember(record.attemptOf, failed(record, attempt))
      return [attempt]
    }
    const earlier = this.#earlier.get(record.id) ?? []
    this.#earlier.delete(record.id)
    return [attempt, callSpan(record, earlier)]
  }

  #remember(call: string, event: SpanEvent): void {
    const known = this.#earlier.get(call)
    if (known) known.push(event)
    else this.#earlier.set(call, [event])
    // A call whose row never comes is not remembered for ever.
    if (this.#earlier.size > maxRemembered) this.#earlier.delete(this.#earlier.keys().next().value ?? '')
  }
}

const maxRemembered = 10_000

function callSpan(record: CallRecord, earlier: readonly SpanEvent[]): SpanFacts {
  const { at, durationMs, firstEventMs, trace, requested, outcome } = record
  const end = at + durationMs
  const first = firstEventMs === undefined ? [] : [{ name: 'gen_ai.first_token', at: at + firstEventMs }]
  const cut = outcome === 'partial' ? [{ name: 'inference_router.cut', at: end }] : []
  const { parentId } = trace ?? {}
  return {
    ...spanOf(record, requested),
    kind: 'server',
    spanId: trace?.spanId ?? '',
    ...(parentId !== undefined && { parentId }),
    start: at,
    end,
    attributes: {
      ...modelAttributes(record),
      ...usageAttributes(record),
      ...callAttributes(record),
      ...contentAttributes(record),
    },
    events: [...earlier, ...first, ...cut].toSorted((one, other) => one.at - other.at),
  }
}

function attemptOf(record: CallRecord): SpanFacts {
  const { at, startedMs = 0, durationMs, firstEventMs, trace, attempts, failure } = record
  const isPart = record.attemptOf !== undefined
  const start = at + startedMs
  const attributes = { ...modelAttributes(record), ...usageAttributes(record), 'inference_router.attempt': attempts }
  const first = firstEventMs === undefined || isPart ? [] : [{ name: 'gen_ai.first_token', at: at + firstEventMs }]
  return {
    ...spanOf(record, record.model),
    kind: 'client',
    spanId: attemptSpan({ spanId: trace?.spanId ?? '' }, attempts),
    parentId: trace?.spanId ?? '',
    start,
    // The time of an attempt is its own, that of a call begins with the call.
    end: isPart ? start + durationMs : at + durationMs,
    attributes: { ...attributes, ...(failure !== undefined && { 'inference_router.failure': failure }) },
    events: first,
  }
}

function failed({ provider, model, failure = '', error }: CallRecord, { end }: SpanFacts): SpanEvent {
  const attributes = {
    'inference_router.target': `${provider}/${model}`,
    'inference_router.failure': failure,
    ...(error !== undefined && { 'error.type': error }),
  }
  return { name: 'inference_router.attempt_failed', at: end, attributes }
}

function spanOf({ operation, trace, error }: CallRecord, model: string): Pick<SpanFacts, 'name' | 'traceId' | 'error'> {
  return { name: `${operation} ${model}`, traceId: trace?.traceId ?? '', ...(error !== undefined && { error }) }
}

function modelAttributes({ operation, provider, model, served, error }: CallRecord): SpanAttributes {
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': model,
    ...(served !== undefined && { 'gen_ai.response.model': served }),
    ...(error !== undefined && { 'error.type': error }),
  }
}

function usageAttributes({ usage, cost }: CallRecord): SpanAttributes {
  return {
    'gen_ai.usage.input_tokens': promptTokens(usage),
    'gen_ai.usage.output_tokens': completionTokens(usage),
    ...(usage.cache_read !== undefined && { 'gen_ai.usage.cache_read.input_tokens': usage.cache_read }),
    'inference_router.cost_usd': cost.nanoUsd / 1e9,
  }
}

function callAttributes(record: CallRecord): SpanAttributes {
  const { id, organization, key, api, requested, stream, status, outcome, attempts, dropped } = record
  return {
    'http.request.method': 'POST',
    'http.response.status_code': status,
    'gen_ai.request.model': requested,
    'gen_ai.request.stream': stream,
    'inference_router.call': id,
    'inference_router.organization': organization,
    'inference_router.key': key,
    'inference_router.api': api,
    'inference_router.outcome': outcome,
    'inference_router.attempts': attempts,
    ...(dropped.length > 0 && { 'inference_router.dropped': dropped }),
  }
}

function contentAttributes({ contents }: CallRecord): SpanAttributes {
  if (!contents) return {}
  const { system, input, output } = contents
  return {
    ...(system !== undefined && { 'gen_ai.system_instructions': system }),
    'gen_ai.input.messages': input,
    'gen_ai.output.messages': output,
  }
}
