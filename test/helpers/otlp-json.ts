/** A span of an OTLP request in JSON, as a receiver reads it. */
export type JsonSpan = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startMs: number
  endMs: number
  status: { code?: number; message?: string }
  attributes: Record<string, unknown>
  resource: Record<string, unknown>
}

const members = {
  request: ['resourceSpans'],
  resourceSpans: ['resource', 'scopeSpans', 'schemaUrl'],
  resource: ['attributes', 'droppedAttributesCount'],
  scopeSpans: ['scope', 'spans', 'schemaUrl'],
  scope: ['name', 'version', 'attributes'],
  span: [
    ...['traceId', 'spanId', 'parentSpanId', 'traceState', 'flags', 'name', 'kind', 'startTimeUnixNano'],
    ...['endTimeUnixNano', 'attributes', 'events', 'links', 'status', 'droppedAttributesCount'],
  ],
  status: ['code', 'message'],
  attribute: ['key', 'value'],
} as const

/**
 * Reads an ExportTraceServiceRequest in JSON, with the rules of OTLP: ids in hexadecimal, times and integers as decimal strings, attributes as
 * lists of keys and values of one type. Throws an Error for anything else.
 */
export function readOtlpJson(body: unknown): JsonSpan[] {
  return list(object(body, 'request').resourceSpans, 'resourceSpans').flatMap((one) => {
    const { resource, scopeSpans } = object(one, 'resourceSpans')
    const shared = attributes(object(resource, 'resource').attributes)
    return list(scopeSpans, 'scopeSpans').flatMap((scoped) => {
      const { scope, spans } = object(scoped, 'scopeSpans')
      text(object(scope, 'scope').name, /./, 'scope.name')
      return list(spans, 'spans').map((span) => ({ ...readSpan(object(span, 'span')), resource: shared }))
    })
  })
}

function readSpan(span: Record<string, unknown>): Omit<JsonSpan, 'resource'> {
  const { code, message } = object(span.status ?? {}, 'status')
  if (code !== undefined && ![0, 1, 2].includes(code as number)) throw new Error(`there is no status ${code}`)
  if (![0, 1, 2, 3, 4, 5].includes(span.kind as number)) throw new Error(`there is no kind ${span.kind}`)
  const ms = (name: string) => Number(BigInt(text(span[name], /^\d{1,19}$/, name)) / 1_000_000n)
  return {
    traceId: text(span.traceId, /^(?!0+$)[\da-f]{32}$/, 'traceId'),
    spanId: text(span.spanId, /^(?!0+$)[\da-f]{16}$/, 'spanId'),
    ...(span.parentSpanId !== undefined && {
      parentSpanId: text(span.parentSpanId, /^(?!0+$)[\da-f]{16}$/, 'parentSpanId'),
    }),
    name: text(span.name, /./, 'name'),
    startMs: ms('startTimeUnixNano'),
    endMs: ms('endTimeUnixNano'),
    status: {
      ...(code !== undefined && { code: Number(code) }),
      ...(message !== undefined && { message: `${message}` }),
    },
    attributes: attributes(span.attributes),
  }
}

function attributes(given: unknown): Record<string, unknown> {
  const found = list(given, 'attributes').map((one) => {
    const { key, value } = object(one, 'attribute')
    return [text(key, /./, 'key'), anyValue(value)] as const
  })
  if (new Set(found.map(([key]) => key)).size < found.length) throw new Error('an attribute is there twice')
  return Object.fromEntries(found)
}

function anyValue(given: unknown): unknown {
  const entries = Object.entries(given as object)
  const [[type, value] = ['none', undefined]] = entries
  if (entries.length !== 1) throw new Error(`a value has ${entries.length} types`)
  if (type === 'stringValue' && typeof value === 'string') return value
  if (type === 'boolValue' && typeof value === 'boolean') return value
  if (type === 'doubleValue' && typeof value === 'number') return value
  if (type === 'intValue') return Number(text(value, /^-?\d{1,19}$/, 'intValue'))
  if (type === 'arrayValue') return list((value as { values?: unknown }).values, 'arrayValue').map(anyValue)
  throw new Error(`a value is ${JSON.stringify(given)}`)
}

function object(given: unknown, kind: keyof typeof members): Record<string, unknown> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new Error(`${kind} is no object`)
  const unknown = Object.keys(given).filter((name) => !(members[kind] as readonly string[]).includes(name))
  if (unknown.length > 0) throw new Error(`${kind} has ${unknown}`)
  return given as Record<string, unknown>
}

function list(given: unknown, name: string): unknown[] {
  if (!Array.isArray(given)) throw new Error(`${name} is no list`)
  return given
}

function text(given: unknown, form: RegExp, name: string): string {
  if (typeof given !== 'string' || !form.test(given)) throw new Error(`${name} is ${JSON.stringify(given)}`)
  return given
}
