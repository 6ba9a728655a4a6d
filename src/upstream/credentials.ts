import type { Provider } from '../manifest/provider.ts'

/** The address of a provider's path for a model, with the credential when it belongs there. */
export function addressOf(provider: Provider, path: string, model: string): string {
  const address = provider.baseUrl.replace(/\/+$/, '') + path.replace('{model}', encodeURIComponent(model))
  if (provider.auth.scheme !== 'query') return address
  const { parameter, secret } = provider.auth
  return `${address}${address.includes('?') ? '&' : '?'}${encodeURIComponent(parameter)}=${encodeURIComponent(secret)}`
}

/** The headers that name us to a provider. */
export function credentialHeaders({ auth }: Provider): Record<string, string> {
  if (auth.scheme === 'bearer') return auth.secret ? { authorization: `Bearer ${auth.secret}` } : {}
  if (auth.scheme === 'header') return { [auth.header]: auth.secret }
  return {}
}
