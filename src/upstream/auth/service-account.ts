import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { RouterError } from '../../core/errors.ts'
import { isObject, type Json } from '../../core/json.ts'
import type { GoogleServiceAccount } from '../../manifest/provider.ts'
import type { HttpClient } from '../http/types.ts'
import { requestToken, type Token } from './tokens.ts'

/** The parts of a service account's key file that are used. */
export type AccountKey = { email: string; keyId?: string; key: KeyObject; tokenUrl: string }

const defaultScope = 'https://www.googleapis.com/auth/cloud-platform'
const defaultTokenUrl = 'https://oauth2.googleapis.com/token'

/** The longest lifetime that Google accepts. Seconds. */
const assertionLifetime = 3_600

/** Requests a token for a service account (RFC 7523, section 2.1). Throws RouterError. */
export async function serviceAccountToken(
  { credentials, scope = defaultScope }: GoogleServiceAccount,
  provider: string,
  httpClient: HttpClient,
  now: () => number,
): Promise<Token> {
  const account = await readAccount(credentials, provider)
  const assertion = signAssertion(account, scope, Math.floor(now() / 1_000))
  const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }
  return await requestToken({ url: account.tokenUrl, form, secrets: [assertion], provider }, httpClient, now)
}

/** Returns the JWT with which a service account requests a token, valid for an hour from `issuedAt`, in seconds since 1970. */
export function signAssertion({ email, keyId, key, tokenUrl }: AccountKey, scope: string, issuedAt: number): string {
  const header = { alg: 'RS256', typ: 'JWT', ...(keyId !== undefined && { kid: keyId }) }
  const claims = { iss: email, scope, aud: tokenUrl, exp: issuedAt + assertionLifetime, iat: issuedAt }
  return signRs256(`${encode(header)}.${encode(claims)}`, key)
}

/** Returns a JWS of an encoded header and payload: `header.payload.signature` (RFC 7515, appendix A.2). */
export function signRs256(input: string, key: KeyObject): string {
  return `${input}.${sign('RSA-SHA256', Buffer.from(input), key).toString('base64url')}`
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

/** Reads the account at every refresh, so that a file can be replaced while the router runs. */
async function readAccount(credentials: string, provider: string): Promise<AccountKey> {
  const text = credentials.startsWith('{') ? credentials : await readKeyFile(credentials, provider)
  const file = parse(text)
  if (!isObject(file)) throw unusable(provider, 'is not JSON')
  const { client_email: email, private_key: pem, private_key_id: keyId, token_uri: tokenUrl = defaultTokenUrl } = file
  if (typeof email !== 'string' || typeof pem !== 'string') {
    throw unusable(provider, 'is not the key file of a service account: it needs `client_email` and `private_key`')
  }
  if (typeof tokenUrl !== 'string' || !URL.canParse(tokenUrl))
    throw unusable(provider, 'has a `token_uri` that is not a URL')
  let key: KeyObject
  try {
    // Environment variables often contain line breaks as the two characters \n.
    key = createPrivateKey(pem.replaceAll('\\n', '\n'))
  } catch {
    throw unusable(provider, 'has a `private_key` that is not a PEM key')
  }
  if (key.asymmetricKeyType !== 'rsa') throw unusable(provider, 'has a `private_key` that is not an RSA key')
  return { email, key, tokenUrl, ...(typeof keyId === 'string' && { keyId }) }
}

async function readKeyFile(path: string, provider: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw unusable(provider, `names a file that cannot be read (${code ?? 'unknown reason'})`, error)
  }
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unusable(provider: string, what: string, cause?: unknown): RouterError {
  const message = `The router got no token for ${provider}: its \`auth.credentials\` ${what}.`
  return new RouterError('provider_refused', message, { provider, ...(cause !== undefined && { cause }) })
}
