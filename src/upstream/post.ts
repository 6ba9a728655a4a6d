import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { Provider } from '../manifest/provider.ts'
import type { Target } from '../manifest/target.ts'
import { addressOf, authorize } from './authorize.ts'
import type { HttpClient, HttpResponse } from './http-client.ts'
import { refusal } from './provider-error.ts'

/** A header of the client for the provider: it stands before the manifest's own, or is joined to it as a list. */
export type PassedHeader = { name: string; value: string; how: 'before' | 'joined' }

/** Sends one body to a path of a target and waits for an answer that is no refusal. Throws RouterError. */
export async function post(
  { provider, model }: Target,
  outgoing: {
    path: string
    accept: string
    body: JsonObject
    signal: AbortSignal
    passed?: readonly PassedHeader[]
  },
  httpClient: HttpClient,
): Promise<HttpResponse> {
  const { path, accept, signal, passed = [] } = outgoing
  const anonymous = {
    url: addressOf(provider, path, model),
    headers: withPassed(
      {
        'content-type': 'application/json',
        accept,
        'accept-encoding': 'identity',
        'user-agent': 'inference-router',
        ...lowerCased(provider.headers),
      },
      passed,
    ),
    body: wellFormed(JSON.stringify(outgoing.body)),
  }
  const { url, headers, refused } = await authorize(provider, anonymous, { httpClient, signal })
  const { timeouts, slug } = provider
  const response = await httpClient.send({ url, headers, body: anonymous.body, timeouts, signal, provider: slug })
  if (response.status >= 200 && response.status < 300) return response
  if (response.status === 401) refused?.()
  const text = await textOf(provider, response)
  throw refusal(provider, { status: response.status, headers: response.headers, text })
}

/** The whole text of an answer. Throws RouterError. */
export async function textOf(provider: Provider, { bytes }: HttpResponse): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > answerLimit) {
      throw new RouterError('provider_unreadable', 'The provider sent an answer without end', {
        provider: provider.slug,
      })
    }
  }
  return text + decoder.decode()
}

/** The client's headers among ours; a list keeps each of its words once. */
function withPassed(own: Record<string, string>, passed: readonly PassedHeader[]): Record<string, string> {
  const headers = { ...own }
  for (const { name, value, how } of passed) {
    const words = [headers[name] ?? '', value].flatMap((list) => list.split(',')).map((word) => word.trim())
    headers[name] = how === 'before' ? value : [...new Set(words)].filter(Boolean).join(',')
  }
  return headers
}

/** One name, one header: however a manifest writes it, it stands over ours. */
function lowerCased(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** A text that was cut in the middle of a character: strict parsers refuse its half, so the sign for unknown stands in. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json
  // Escapes are taken one by one, so that an escaped backslash before the letters `ud` is not mistaken for one.
  return json.replace(/\\(ud[89a-f][\da-f]{2}|.)/g, (whole, code) => (code.length > 1 ? '\\ufffd' : whole))
}

/** An answer longer than this is none: it would only fill the memory. Characters. */
const answerLimit = 128 * 1024 * 1024
