/**
 * Place of a call in a trace, in the terms of W3C Trace Context: ids in hexadecimal. `spanId` is that of the call here, `parentId` that
 * of the client's span. `baggage` and `state` pass through as they came.
 */
export type TraceContext = {
  traceId: string
  spanId: string
  parentId?: string
  isSampled: boolean
  state?: string
  baggage?: string
  /** True if the content of the call is in its spans as well. */
  hasContents?: boolean
}

/** Sampling of traces where the client has not decided: the share that is recorded; and whether content is included. */
export type Sampling = { share: number; followsParent: boolean; contents?: boolean }

type TraceHeaders = { readonly [name: string]: string | string[] | undefined }

/** The trace of a call with this id, a UUID: the one that its headers name, else a new one, whose id is that of the call. */
export function traceOf(
  { traceparent, tracestate, baggage }: TraceHeaders,
  id: string,
  sampling: Sampling,
): TraceContext {
  const hex = id.slice(0, 8) + id.slice(9, 13) + id.slice(14, 18) + id.slice(19, 23) + id.slice(24)
  // The last byte is left for the attempts.
  const spanId = `${hex.slice(16, 30)}00`
  const [, traceId, parentId, flags] = (typeof traceparent === 'string' && parent.exec(traceparent)) || []
  const passed = typeof baggage === 'string' && baggage.length <= maxBaggage ? { baggage } : undefined
  if (traceId === undefined || parentId === undefined || isZero(traceId) || isZero(parentId)) {
    const isSampled = isTaken(hex, sampling.share)
    return { traceId: hex, spanId, isSampled, ...passed, ...contentsIf(isSampled, sampling) }
  }
  const isSampled = sampling.followsParent
    ? (Number.parseInt(flags ?? '', 16) & 1) === 1
    : isTaken(traceId, sampling.share)
  const state = typeof tracestate === 'string' && tracestate.length <= maxState ? { state: tracestate } : undefined
  return { traceId, spanId, parentId, isSampled, ...state, ...passed, ...contentsIf(isSampled, sampling) }
}

function contentsIf(isSampled: boolean, { contents }: Sampling): Pick<TraceContext, 'hasContents'> {
  return isSampled && contents === true ? { hasContents: true } : {}
}

/** Trace members of a row: spans are made of rows. */
export type RecordedTrace = Pick<TraceContext, 'traceId' | 'spanId' | 'parentId' | 'isSampled'>

export function recordedTrace({ traceId, spanId, parentId, isSampled }: TraceContext): RecordedTrace {
  return { traceId, spanId, isSampled, ...(parentId !== undefined && { parentId }) }
}

/** Version 00, and later ones as far as they are like it; `ff` is not a version. */
const parent = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/
const maxBaggage = 8_192
const maxState = 512

function isZero(hex: string): boolean {
  return /^0+$/.test(hex)
}

/** The end of a trace id is random. */
function isTaken(traceId: string, share: number): boolean {
  if (share >= 1 || share <= 0) return share >= 1
  return Number.parseInt(traceId.slice(-8), 16) / 2 ** 32 < share
}

/** The span of one attempt of a call, by its number. */
export function attemptSpan({ spanId }: Pick<TraceContext, 'spanId'>, attempt: number): string {
  return spanId.slice(0, 14) + Math.min(attempt, 255).toString(16).padStart(2, '0')
}

/** Returns the headers that give a provider the place of its attempt in the trace. */
export function traceHeaders(trace: TraceContext, attempt: number): Record<string, string> {
  const { traceId, isSampled, state, baggage } = trace
  return {
    traceparent: `00-${traceId}-${attemptSpan(trace, attempt)}-${isSampled ? '01' : '00'}`,
    ...(state !== undefined && { tracestate: state }),
    ...(baggage !== undefined && { baggage }),
  }
}
