import { createHash } from 'node:crypto'
import { RouterError } from '../../core/errors.ts'
import type { AwsSigV4 } from '../../manifest/provider.ts'
import { yieldBetween } from '../../runtime/event-loop.ts'

/** A request to be sent. All of its headers are signed, and the host. */
export type Signable = {
  method: string
  url: string
  headers: Record<string, string>
  body: string | Uint8Array | readonly Uint8Array[]
}

/**
 * Returns the headers that sign a request (AWS Signature Version 4): `authorization`, `x-amz-date`, and the session token.
 * `now` is in milliseconds since 1970.
 */
export async function signAws(
  auth: AwsSigV4,
  { body, ...request }: Signable,
  now: number,
): Promise<Record<string, string>> {
  const AwsV4Signer = await loadSigner()
  const isWhole = typeof body === 'string' || body instanceof Uint8Array
  const signer = new AwsV4Signer({
    ...request,
    body: isWhole ? body : '',
    accessKeyId: auth.accessKey,
    secretAccessKey: auth.secretKey,
    ...(auth.sessionToken !== undefined && { sessionToken: auth.sessionToken }),
    service: auth.service,
    region: auth.region,
    // 20150830T123600Z
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    cache: signingKeys(),
    allHeaders: true,
  })
  if (!isWhole) signer.hexBodyHash = () => hashInSteps(body)
  const { headers } = await signer.sign()
  const names = ['authorization', 'x-amz-date', 'x-amz-security-token']
  return Object.fromEntries(names.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) as string]] : [])))
}

/** Returns the SHA-256 of the bytes of pieces, computed in steps between which other calls run. */
async function hashInSteps(pieces: readonly Uint8Array[]): Promise<string> {
  const yieldToOthers = yieldBetween()
  const hash = createHash('sha256')
  for (const piece of pieces) {
    hash.update(piece)
    await yieldToOthers()
  }
  return hash.digest('hex')
}

/** Returns the cache of signing keys, which are derived per day and credential: it is cleared when it has grown. */
function signingKeys(): Map<string, ArrayBuffer> {
  if (derived.size > 100) derived.clear()
  return derived
}

const derived = new Map<string, ArrayBuffer>()

/** Imports the signer with the first request that needs it. */
async function loadSigner(): Promise<typeof import('aws4fetch').AwsV4Signer> {
  try {
    return (await import('aws4fetch')).AwsV4Signer
  } catch (cause) {
    const message = 'The scheme aws-sigv4 needs the optional package aws4fetch: install it beside the router.'
    throw new RouterError('provider_unreachable', message, { cause })
  }
}
