import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { dataPath, missingData } from './optional-data.ts'

/** One recorded exchange with a provider. */
export type Recording = {
  case: string
  provider: string
  dialect: string
  feature: string
  model: string | null
  tags: string[]
  stop: string[]
  note?: string
  // biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
  request: { method: string; path: string; headers: Record<string, string>; body: any } | null
  response: {
    status: number
    headers: Record<string, string>
    // biome-ignore lint/suspicious/noExplicitAny: see above
    body?: any
    sse?: string
    ndjson?: string
    /** The bytes of a binary stream. */
    body_base64?: string
    text?: string
  }
}

/** The reason why recorded exchanges cannot be read; undefined when they can. */
export const recordingsMissing = missingData('RECORDINGS')

const known = new Map<string, Recording[]>()

/**
 * All recorded exchanges of a wire format, sorted by name, read once per worker. Without the folder there are none, and the
 * suite that asks for them gets a skipped test that says so: `test.each` over an empty list would leave it without any.
 */
export function recordings(dialect: string): Recording[] {
  if (recordingsMissing) {
    test.skip(`recordings of ${dialect}: ${recordingsMissing}`, () => {})
    return []
  }
  const read = known.get(dialect) ?? readRecordings(dataPath('RECORDINGS', dialect))
  known.set(dialect, read)
  return [...read]
}

function readRecordings(path: string): Recording[] {
  const names = readdirSync(path).filter((name) => name.endsWith('.json'))
  return names.sort().map((name) => frozen(JSON.parse(readFileSync(join(path, name), 'utf8'))))
}

/** All files see the same objects: none may change them. */
function frozen<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value
  Object.values(value).forEach(frozen)
  return Object.freeze(value)
}

/** The events of a recorded stream: event name (when sent) and data. JSON-array streams count as nameless events. */
export function recordedEvents(recording: Recording): { event?: string; data: string }[] {
  const { sse, body } = recording.response
  if (sse === undefined) return Array.isArray(body) ? body.map((data) => ({ data: JSON.stringify(data) })) : []
  return sse
    .replaceAll('\r\n', '\n')
    .split('\n\n')
    .map((block) => {
      const lines = block.split('\n')
      const event = lines
        .find((line) => line.startsWith('event:'))
        ?.slice(6)
        .trim()
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).replace(/^ /, ''))
      return { ...(event && { event }), data: data.join('\n') }
    })
    .filter(({ data }) => data !== '')
}
