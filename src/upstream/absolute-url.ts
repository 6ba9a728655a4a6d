import { RouterError } from '../core/errors.ts'
import type { Provider } from '../manifest/provider.ts'

/**
 * An address that a provider named, where the next request goes with its credentials: of its own origin, or HTTPS on one of these hosts,
 * of which `*.acme.com` is any below `acme.com`. Throws RouterError.
 */
export function absoluteUrl(
  { slug, baseUrl }: Pick<Provider, 'slug' | 'baseUrl'>,
  text: string,
  hosts: readonly string[],
): string {
  const [own, url] = [URL.parse(baseUrl), URL.parse(text)]
  if (!own || !url || url.username || url.password || !(url.origin === own.origin || isOneOf(hosts, url))) {
    throw new RouterError('provider_unreadable', 'The provider named an address that is not its own.', {
      provider: slug,
      forLog: `${slug} named the address ${url ? url.origin : text.slice(0, 200)}, which is neither of ${baseUrl} nor among the \`hosts\` of its job`,
    })
  }
  url.hash = ''
  return url.href
}

function isOneOf(hosts: readonly string[], { protocol, port, hostname }: URL): boolean {
  if (protocol !== 'https:' || port !== '') return false
  return hosts.some((host) => (host.startsWith('*.') ? hostname.endsWith(host.slice(1)) : hostname === host))
}
