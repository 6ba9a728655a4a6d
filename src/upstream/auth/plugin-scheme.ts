import { RouterError } from '../../core/errors.ts'
import { wrongHeader } from '../../manifest/check/addresses.ts'
import type { PluginScheme } from '../../manifest/provider.ts'
import { unlessAborted } from '../http/unless-aborted.ts'
import { rememberIssued } from './secrets.ts'

/** A request before authentication; of bodies that are no text a plugin gets nothing. */
type Request = { method: string; url: string; headers: Readonly<Record<string, string>>; body?: unknown }

/** The headers that a plugin's scheme adds to a request. Rejects with RouterError for what is none, and what takes too long. */
export async function pluginHeaders(
  scheme: PluginScheme,
  { method, url, headers, body }: Request,
  { signal, provider }: { signal: AbortSignal; provider: string },
): Promise<Record<string, string>> {
  const request = { method, url, headers, body: typeof body === 'string' ? body : undefined }
  const refuse = (what: string, cause?: unknown) => {
    const message = `The request to ${provider} cannot be authenticated: the scheme ${scheme.name} ${what}.`
    return new RouterError('provider_refused', message, { provider, ...(cause !== undefined && { cause }) })
  }
  const time = AbortSignal.timeout(mostMs)
  let made: unknown
  try {
    const making = (async () => await scheme.headersOf(Object.freeze(request), scheme.values))()
    made = await unlessAborted(making, AbortSignal.any([signal, time]))
  } catch (thrown) {
    if (signal.aborted) throw signal.reason
    throw refuse(time.aborted ? `took longer than ${mostMs} ms` : 'failed', thrown)
  }
  const wrong = wrongHeaders(made)
  if (wrong !== undefined) throw refuse(wrong)
  const added = Object.entries(made as Record<string, string>).map(([name, value]) => [name.toLowerCase(), value])
  for (const [name = '', value = ''] of added) if (name === 'authorization') rememberIssued(scheme, value)
  return Object.fromEntries(added)
}

const mostMs = 10_000

/** What only the connection itself can say. */
const ofConnection: ReadonlySet<string> = new Set(
  'host content-length transfer-encoding connection keep-alive te trailer upgrade expect'.split(' '),
)

function wrongHeaders(made: unknown): string | undefined {
  if (typeof made !== 'object' || made === null || Array.isArray(made)) return 'returned no headers'
  for (const [name, value] of Object.entries(made)) {
    const isWrong = typeof value !== 'string' || wrongHeader(name, value) !== undefined
    if (isWrong || ofConnection.has(name.toLowerCase())) return 'returned a header that no request may have'
  }
  return undefined
}
