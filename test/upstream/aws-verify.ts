import { createHash, createHmac } from 'node:crypto'

/** A request as a server sees it; names of headers are in small letters. */
export type Seen = { method: string; target: string; headers: Record<string, string>; body: string }

/**
 * The `authorization` header that AWS expects of a request it received, from the steps in its documentation ("Create a
 * signed AWS API request") and by no library: credential and signed headers are those that the request names.
 */
export function expectedAuthorization({ method, target, headers, body }: Seen, secretKey: string): string {
  const [, credential = '', names = ''] =
    /Credential=([^,]+), SignedHeaders=([^,]+),/.exec(headers.authorization ?? '') ?? []
  const [, date = '', region = '', service = ''] = credential.split('/')
  const [path = '', query = ''] = target.split('?')
  const canonical = [
    method,
    // Every service but S3 wants the escaped path escaped once more.
    path.split('/').map(escaped).join('/'),
    query.split('&').sort().join('&'),
    ...names.split(';').map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    names,
    createHash('sha256').update(body).digest('hex'),
  ].join('\n')
  const scope = [date, region, service, 'aws4_request']
  const hash = createHash('sha256').update(canonical).digest('hex')
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope.join('/'), hash].join('\n')
  const key = scope.reduce<string | Buffer>((left, right) => hmac(left, right), `AWS4${secretKey}`)
  const signature = hmac(key, text).toString('hex')
  return `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** RFC 3986: all but the unreserved characters. */
function escaped(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}
