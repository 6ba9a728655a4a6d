import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as a collector reads it. */
export type ReceivedSpan = {
  traceId: string
  spanId: string
  parentId: string
  name: string
  kind: number
  startMs: number
  endMs: number
  attributes: Record<string, string | number | boolean>
  events: string[]
  status: number
  service: string
}

/** One data point of a metric as a collector reads it. */
export type ReceivedPoint = {
  name: string
  unit: string
  type: 'gauge' | 'sum' | 'histogram'
  temporality: 'delta' | 'cumulative' | 'none'
  isMonotonic: boolean
  attributes: Record<string, string | number | boolean>
  value: number
  /** Counts by bucket and their upper bounds; the value of a histogram is its sum. */
  buckets?: { counts: number[]; bounds: number[]; count: number }
  startMs: number
  endMs: number
  resource: ReceivedSpan['attributes']
}

/**
 * A collector on loopback that reads OTLP's protobuf by the numbers of its published schema (trace/v1/trace.proto, metrics/v1/metrics.proto).
 * It refuses requests with the statuses in `refusals`, one after the other.
 */
export async function otlpCollector() {
  const spans: ReceivedSpan[] = []
  const requests: { path: string; headers: IncomingHttpHeaders; points: ReceivedPoint[] }[] = []
  const refusals: number[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { url: path = '', headers } = request
    const refusal = refusals.shift()
    if (refusal !== undefined) return void response.writeHead(refusal).end()
    const isMetrics = path.endsWith('/v1/metrics')
    requests.push({ path, headers, points: isMetrics ? readMetrics(Buffer.concat(chunks)) : [] })
    if (!isMetrics) spans.push(...read(Buffer.concat(chunks)))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    spans,
    requests,
    refusals,
    base: `http://127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/v1/traces`,
    close: () => new Promise<void>((resolve) => void server.close(() => resolve()).closeAllConnections()),
  }
}

type Value = bigint | Buffer

/** The fields of a message by their numbers. */
function fields(bytes: Buffer): Map<number, Value[]> {
  const found = new Map<number, Value[]>()
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw new Error('the message is cut off')
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  const take = (length: number) => {
    if (at + length > bytes.length) throw new Error('the message is cut off')
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const type = tag & 7
    if (type !== 0 && type !== 1 && type !== 2 && type !== 5) throw new Error(`there is no wire type ${type}`)
    const value = type === 0 ? varint() : take(type === 1 ? 8 : type === 5 ? 4 : Number(varint()))
    found.set(tag >> 3, [...(found.get(tag >> 3) ?? []), value])
  }
  return found
}

function read(request: Buffer): ReceivedSpan[] {
  return messages(request, 1).flatMap((resourceSpans) => {
    const [resource = Buffer.alloc(0)] = messages(resourceSpans, 1)
    const service = String(attributesOf(resource, 1)['service.name'])
    return messages(resourceSpans, 2).flatMap((scope) =>
      messages(scope, 2).map((span) => ({ ...spanOf(span), service })),
    )
  })
}

function readMetrics(request: Buffer): ReceivedPoint[] {
  return messages(request, 1).flatMap((resourceMetrics) => {
    const [resource = Buffer.alloc(0)] = messages(resourceMetrics, 1)
    const shared = attributesOf(resource, 1)
    return messages(resourceMetrics, 2)
      .flatMap((scope) => messages(scope, 2))
      .flatMap((metric) => pointsOf(metric).map((point) => ({ ...point, resource: shared })))
  })
}

const kinds = { gauge: 5, sum: 7, histogram: 9 } as const

function pointsOf(metric: Buffer): Omit<ReceivedPoint, 'resource'>[] {
  const of = fields(metric)
  const text = (number: number) => String(of.get(number)?.[0] ?? '')
  const found = (['gauge', 'sum', 'histogram'] as const).filter((kind) => of.has(kinds[kind]))
  const [type] = found
  if (!type || found.length > 1) throw new Error(`${text(1)} has ${found.length} types`)
  const data = fields(of.get(kinds[type])?.[0] as Buffer)
  const temporality = (['none', 'delta', 'cumulative'] as const)[Number(data.get(2)?.[0] ?? 0)]
  if (!temporality) throw new Error(`${text(1)} has no temporality`)
  const named = { name: text(1), unit: text(3), type, temporality, isMonotonic: data.get(3)?.[0] === 1n }
  return ((data.get(1) ?? []) as Buffer[]).map((bytes) => ({ ...named, ...pointOf(bytes, type) }))
}

function pointOf(bytes: Buffer, type: ReceivedPoint['type']) {
  const of = fields(bytes)
  const one = (number: number) => of.get(number)?.[0] as Buffer
  const ms = (number: number) => Number(one(number).readBigUInt64LE() / 1_000_000n)
  const shared = { startMs: ms(2), endMs: ms(3) }
  if (type !== 'histogram') return { ...shared, value: one(4).readDoubleLE(), attributes: attributesOf(bytes, 7) }
  const counts = eights(one(6)).map((eight) => Number(eight.readBigUInt64LE()))
  const bounds = eights(one(7)).map((eight) => eight.readDoubleLE())
  const count = Number(one(4).readBigUInt64LE())
  if (counts.length !== bounds.length + 1) throw new Error('a histogram has buckets without bounds')
  if (counts.reduce((sum, own) => sum + own, 0) !== count) throw new Error('a histogram counts other values')
  return {
    ...shared,
    value: one(5).readDoubleLE(),
    buckets: { counts, bounds, count },
    attributes: attributesOf(bytes, 9),
  }
}

function eights(packed: Buffer): Buffer[] {
  return Array.from({ length: packed.length / 8 }, (_, at) => packed.subarray(8 * at, 8 * at + 8))
}

function messages(bytes: Buffer, number: number): Buffer[] {
  return (fields(bytes).get(number) ?? []) as Buffer[]
}

function spanOf(bytes: Buffer): Omit<ReceivedSpan, 'service'> {
  const of = fields(bytes)
  const one = (number: number) => of.get(number)?.[0]
  const hex = (number: number) => (one(number) as Buffer | undefined)?.toString('hex') ?? ''
  const ms = (number: number) => Number((one(number) as Buffer).readBigUInt64LE() / 1_000n) / 1_000
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    name: String(one(5)),
    kind: Number(one(6)),
    startMs: ms(7),
    endMs: ms(8),
    attributes: attributesOf(bytes, 9),
    events: messages(bytes, 11).map((event) => String(fields(event).get(2)?.[0])),
    status: Number(fields((one(15) as Buffer | undefined) ?? Buffer.alloc(0)).get(3)?.[0] ?? 0n),
  }
}

function attributesOf(bytes: Buffer, number: number): ReceivedSpan['attributes'] {
  return Object.fromEntries(
    messages(bytes, number).map((pair) => {
      const value = fields(messages(pair, 2)[0] ?? Buffer.alloc(0))
      const text = value.get(1)?.[0]
      const double = value.get(4)?.[0] as Buffer | undefined
      const told =
        text !== undefined
          ? String(text)
          : double
            ? double.readDoubleLE()
            : Number(value.get(3)?.[0] ?? value.get(2)?.[0])
      return [String(fields(pair).get(1)?.[0]), told]
    }),
  )
}
