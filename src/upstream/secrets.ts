import type { Auth, Provider } from '../manifest/provider.ts'

/** Replaces every secret of a provider's authentication in a text. */
export function redact({ auth, headers }: Pick<Provider, 'auth' | 'headers'>, text: string): string {
  const inHeaders = Object.entries(headers).flatMap(([name, value]) => (holdsSecret.test(name) ? value : []))
  const secrets = [...secretsOf(auth), ...(issued.get(auth) ?? []), ...inHeaders]
  const forms = secrets.filter(Boolean).flatMap((secret) => [secret, encodeURIComponent(secret)])
  // Longest first, because one may contain another.
  forms.sort((a, b) => b.length - a.length)
  return forms.reduce((left, secret) => left.replaceAll(secret, '[secret]'), text)
}

/** Remembers a token issued for a credential: `redact` must know it too. */
export function rememberIssued(auth: Auth, token: string): void {
  const known = issued.get(auth) ?? []
  if (known.at(-1) !== token) issued.set(auth, [...known.slice(-2), token])
}

/** Names of headers that may contain a secret. */
const holdsSecret = /auth|key|token|secret|password|credential|cookie/i

const issued = new WeakMap<Auth, readonly string[]>()

function secretsOf(auth: Auth): string[] {
  switch (auth.scheme) {
    case 'none':
      return []
    case 'bearer':
    case 'header':
    case 'query':
      return [auth.secret]
    case 'aws-sigv4':
      return [auth.accessKey, auth.secretKey, auth.sessionToken ?? '', auth.bearer ?? '']
    case 'google-service-account':
      return [auth.credentials]
    case 'oauth-client-credentials':
      return [auth.clientSecret]
  }
}
