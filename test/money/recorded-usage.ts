import { framesOf, joined } from '../dialects/bedrock-converse-reader.ts'
import { type Recording, recordedEvents } from '../helpers/recordings.ts'

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
type Body = any

/** The usage in a recording, in the provider's form; undefined when there is none. */
export function rawUsage(recording: Recording): Body {
  const reported = documents(recording).flatMap((one) =>
    [one, one.message, one.response, one.delta, one.x_groq].map((holder) => holder?.usage ?? holder?.usageMetadata),
  )
  const lines = documents(recording).filter((one) => one.eval_count !== undefined)
  const all = [...reported, ...lines.map(({ prompt_eval_count, eval_count }) => ({ prompt_eval_count, eval_count }))]
  const counted = all.filter((one) => one && typeof one === 'object')
  return counted.length > 0 ? Object.assign({}, ...counted.map(withoutNulls)) : undefined
}

/** The form of a usage: the paths of its numbers, apart from sums, times and zeros. */
export function formOf(recording: Recording): string {
  const places = [...new Set(numbersIn(rawUsage(recording)))].filter((place) => !beside.test(place))
  return `${recording.dialect}: ${places.sort().join(' ')}`
}

/** Members that only repeat others, or are no counts. */
const beside =
  /(time|_ms|duration|total_?tokens?|tokens_per|context_details|market_cost|latency)|TotalToken|totalToken/i

function numbersIn(value: Body, place = ''): string[] {
  if (typeof value === 'number') return value === 0 ? [] : [place]
  if (value === null || typeof value !== 'object') return []
  return Object.entries(value).flatMap(([name, member]) =>
    numbersIn(member, Array.isArray(value) ? place : place ? `${place}.${name}` : name),
  )
}

function documents(recording: Recording): Body[] {
  const { body, ndjson, body_base64 } = recording.response
  if (body_base64 !== undefined) return [joined(framesOf(recording) ?? [])]
  if (ndjson !== undefined)
    return ndjson
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  if (body !== undefined && !Array.isArray(body)) return [body]
  return recordedEvents(recording).flatMap(({ data }) => (data.startsWith('{') ? [JSON.parse(data)] : []))
}

function withoutNulls(usage: object): object {
  return Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null && value !== undefined))
}
