import type { JsonObject } from 'inference-router/plugin'

/** Attributes of a span or a resource by name. */
export type Attributes = { readonly [name: string]: AttributeValue | undefined }
export type AttributeValue = string | number | boolean | readonly string[]

/** Returns attributes in OTLP's JSON form: a list of keys and typed values. Those that are undefined are omitted. */
export function otlpAttributes(attributes: Attributes): JsonObject[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: otlpValue(value) }],
  )
}

function otlpValue(value: AttributeValue): JsonObject {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  // 64-bit integers are decimal strings in OTLP's JSON.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: `${value}` } : { doubleValue: value }
  return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } }
}

/** Returns Unix milliseconds as nanoseconds, in OTLP's JSON form. */
export function otlpTime(ms: number): string {
  return `${BigInt(Math.round(ms * 1_000)) * 1_000n}`
}

/** Returns the body of an export request, from spans that are JSON texts already. */
export function otlpRequest(resource: Attributes, spans: readonly string[]): string {
  const written = JSON.stringify({ attributes: otlpAttributes(resource) })
  return `{"resourceSpans":[{"resource":${written},"scopeSpans":[{"scope":{"name":"inference-router"},"spans":[${spans.join(',')}]}]}]}`
}
