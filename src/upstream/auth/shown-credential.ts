import type { Auth } from '../../manifest/provider.ts'

/** How a provider is authenticated to, with a word in place of what is secret: nothing is signed, and no token is asked for. */
export function shownCredential(auth: Auth): Auth {
  switch (auth.scheme) {
    case 'none':
      return auth
    case 'bearer':
    case 'header':
    case 'query':
      return { ...auth, secret: auth.secret === '' ? '' : '[secret]' }
    case 'aws-sigv4':
      return auth.bearer ? { scheme: 'bearer', secret: '[secret]' } : header('AWS4-HMAC-SHA256 [signature]')
    case 'google-service-account':
    case 'oauth-client-credentials':
      return { scheme: 'bearer', secret: '[token]' }
    case 'plugin':
      return header(`[made by the scheme ${auth.name}]`)
  }
}

function header(secret: string): Auth {
  return { scheme: 'header', header: 'authorization', secret }
}
