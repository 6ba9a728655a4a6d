import type { Provider } from '../manifest/provider.ts'
import { referencesIn, resolveText } from '../manifest/read/environment.ts'
import { addressBehind, relatedOf } from '../manifest/read/references.ts'
import { redact } from '../upstream/auth/secrets.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * The address of a provider as it is in use, without credentials and query. `usual` is that of its manifest where that is another one, and
 * `overriddenBy` what says otherwise: its own settings, those of the provider whose address it follows, or the environment.
 */
export type ProviderAddress = {
  baseUrl: string
  usual?: string
  overriddenBy?: 'config' | 'environment'
  /** Variables of the environment that the address refers to. */
  variables: string[]
}

/** Returns the address of a provider that is in use, from the manifest in `file`. */
export function addressInUse(
  provider: Provider,
  file: string,
  { config, sources, files }: Pick<Snapshot, 'config' | 'sources' | 'files'>,
): ProviderAddress {
  const { slug } = provider
  const written = relatedOf(sources.get(file)).base_url
  const followed = typeof written === 'object' ? written.of : undefined
  const ofFollowed = files.provider.find(({ value }) => (value as { slug?: unknown } | null)?.slug === followed)
  const base = typeof written === 'object' ? relatedOf(ofFollowed).base_url : written
  const text = typeof base !== 'string' ? '' : typeof written === 'object' ? addressBehind(base, written) : base
  const { text: resolved, missing } = resolveText(text, {})
  const usual = text !== '' && missing.length === 0 ? resolved.trim() : undefined
  const isSet = [slug, followed].some((one) => one !== undefined && config.providers[one]?.base_url !== undefined)
  const isOther = usual !== undefined && withoutSlash(usual) !== withoutSlash(provider.baseUrl)
  const overriddenBy = isSet ? 'config' : isOther ? 'environment' : undefined
  return {
    baseUrl: shownAddress(provider, provider.baseUrl),
    ...(isOther && { usual: shownAddress(provider, usual) }),
    ...((isOther || isSet) && overriddenBy && { overriddenBy }),
    variables: isSet ? [] : referencesIn(text),
  }
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '')
}

/** Returns an address without credentials, query and secrets of its provider. */
function shownAddress(provider: Provider, address: string): string {
  const url = URL.parse(address)
  if (!url) return '(not a URL)'
  return redact(provider, withoutSlash(`${url.protocol}//${url.host}${url.pathname}`))
}
