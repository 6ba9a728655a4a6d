import { RouterError } from '../../core/errors.ts'
import { isObject } from '../../core/json.ts'
import type { Provider } from '../../manifest/provider.ts'
import { type Environment, referencesIn, resolveText } from '../../manifest/read/environment.ts'
import { relatedOf } from '../../manifest/read/references.ts'
import type { Source } from '../../manifest/read/source.ts'
import { nameOf } from '../../snapshot/folders.ts'
import type { Snapshot } from '../../snapshot/snapshot.ts'
import type { HttpClient } from '../../upstream/http/types.ts'
import { isRemote } from '../doctor/environment.ts'

/** Reason for which a provider is part of a new configuration. */
type Reason = 'environment' | 'server' | 'named'

/** A provider of a new configuration. */
export type FoundProvider = {
  slug: string
  reason: Reason
  /** Variables of its manifest that are set, and those that it needs and that are not. */
  set: readonly string[]
  missing: readonly string[]
  /** True where the configuration must name it: shipped providers that need no secret are off otherwise. */
  mustBeNamed: boolean
  /** Address of a server on this machine, and the models that it lists. */
  address?: string
  models?: readonly string[]
}

/** Lists the models of a server on this machine. Rejects where none answers. */
export type Probe = (provider: Provider, client: HttpClient, signal: AbortSignal) => Promise<string[]>

/** Maximum time for a server on this machine to list its models. Milliseconds. */
const probeMs = 1_500

/**
 * Finds the providers that can be used here: those whose variables are set, the servers that answer at their usual addresses on this machine,
 * and those that are `named`. Prefixes of the same account are left out: they need nothing of their own.
 */
export async function findProviders(
  snapshot: Pick<Snapshot, 'providers' | 'files'>,
  { env, named, client, probe }: { env: Environment; named: readonly string[]; client: HttpClient; probe: Probe },
): Promise<FoundProvider[]> {
  const known = snapshot.files.provider.flatMap((source) => {
    const provider = snapshot.providers.get(nameOf(source))
    const isOwnAccount = relatedOf(source).account_of === undefined
    return provider && (isOwnAccount || named.includes(provider.slug)) ? [{ source, provider }] : []
  })
  const found = await Promise.all(
    known.map(async ({ source, provider }): Promise<FoundProvider[]> => {
      const facts = { ...variablesOf(source, provider, env), mustBeNamed: needsNothing(source) }
      const { slug } = provider
      if (isLocalServer(provider)) {
        const models = await modelsAt(provider, client, probe)
        if (models) return [{ slug, reason: 'server', ...facts, address: provider.baseUrl, models }]
      } else if (provider.missing.length === 0 && facts.set.length > 0) {
        return [{ slug, reason: 'environment', ...facts }]
      }
      return named.includes(slug) ? [{ slug, reason: 'named', ...facts }] : []
    }),
  )
  return found.flat().sort((one, other) => (one.slug < other.slug ? -1 : 1))
}

function variablesOf(source: Source, { missing }: Provider, env: Environment): Pick<FoundProvider, 'set' | 'missing'> {
  const referenced = [...new Set(referencesIn(textsOf(source)))]
  return { set: referenced.filter((name) => Boolean(env[name])), missing }
}

/** Checks whether a manifest can be used without any variable. */
function needsNothing(source: Source): boolean {
  return resolveText(textsOf(source), {}).missing.length === 0
}

/** Returns the members of a manifest that may refer to variables. */
function textsOf({ value }: Source): string {
  const { base_url, auth, headers, variants } = (isObject(value) ? value : {}) as { [member: string]: unknown }
  return JSON.stringify([base_url, auth, headers, variants])
}

/** Checks whether a provider is a server of this machine. The built-in simulator has no credential at all. */
function isLocalServer(provider: Provider): boolean {
  return provider.auth.scheme !== 'none' && !isRemote(provider)
}

async function modelsAt(provider: Provider, client: HttpClient, probe: Probe): Promise<string[] | undefined> {
  try {
    return await probe(provider, client, AbortSignal.timeout(probeMs))
  } catch (thrown) {
    if (thrown instanceof RouterError || (thrown as Error).name === 'TimeoutError') return undefined
    throw thrown
  }
}
