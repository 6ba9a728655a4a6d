import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isObject, type JsonObject } from '../../core/json.ts'
import { CommandError } from '../command.ts'
import { recordedRequest } from './recorded.ts'

/** A request to send to both gateways: the path of its endpoint and its body. `place` is where it stands: `requests.jsonl:3`. */
export type ReplayedRequest = { place: string; path: string; body: JsonObject; headers: { [name: string]: string } }

/** Requests, and reasons for which others are not sent. */
export type ReadRequests = { requests: ReplayedRequest[]; skipped: { place: string; reason: string }[] }

/**
 * Reads requests, one JSON object in each line: a body of Chat Completions, `{ path, body }` (`url` as in files for batches), or what the plugin
 * log-payloads wrote. A folder is read file by file. Throws CommandError.
 */
export function readRequests(from: string): ReadRequests {
  if (!existsSync(from)) throw new CommandError(`There is no file or folder ${from}.`)
  const files = statSync(from).isDirectory()
    ? readdirSync(from)
        .filter((name) => name.endsWith('.jsonl'))
        .toSorted()
        .map((name) => join(from, name))
    : [from]
  const result: ReadRequests = { requests: [], skipped: [] }
  for (const file of files) {
    for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
      if (line.trim() === '') continue
      const place = `${file}:${index + 1}`
      const read = requestIn(line, place)
      if (read === undefined) continue
      if ('reason' in read) result.skipped.push({ place, ...read })
      else result.requests.push({ place, headers: {}, ...read })
    }
  }
  return result
}

type ReadRequest = Pick<ReplayedRequest, 'path' | 'body'> & Partial<Pick<ReplayedRequest, 'headers'>>

/** Returns the request of a line, the reason why it is not sent, or undefined for a line that is about something else. */
function requestIn(line: string, place: string): ReadRequest | { reason: string } | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new CommandError(`${place}: this is not JSON; a file of requests has one JSON object in each line`)
  }
  if (!isObject(value)) throw new CommandError(`${place}: this is not an object`)
  if (typeof value.kind === 'string' && typeof value.id === 'string') return recordedRequest(value)
  const path = value.path ?? value.url
  if (typeof path === 'string' && isObject(value.body)) {
    const headers = isObject(value.headers) ? value.headers : {}
    const texts = Object.entries(headers).flatMap(([name, text]) =>
      typeof text === 'string' ? [[name, text] as const] : [],
    )
    return { path: path.startsWith('/') ? path : `/${path}`, body: value.body, headers: Object.fromEntries(texts) }
  }
  if (Array.isArray(value.messages)) return { path: '/v1/chat/completions', body: value }
  throw new CommandError(`${place}: write a body with messages, or { "path": "/v1/embeddings", "body": { … } }`)
}
