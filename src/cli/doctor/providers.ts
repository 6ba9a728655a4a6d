import type { Provider } from '../../manifest/provider.ts'
import type { Snapshot } from '../../snapshot/snapshot.ts'
import type { HttpClient } from '../../upstream/http/types.ts'
import { type LiveCall, liveCall } from '../live/live-call.ts'
import { cheapestModel } from '../live/live-model.ts'
import { expectedProviders, isRemote } from './environment.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Findings of the calls, and by how far the clock is ahead of each provider that answered. Milliseconds. */
export type CalledProviders = { findings: Finding[]; skews: number[] }

/** Calls at once: providers do not share limits. */
const atOnce = 8

/**
 * Calls each provider that is configured, with the model that costs least and a limit of a few tokens. Servers without a credential are
 * called only where the configuration or the command names them.
 */
export async function callProviders(
  snapshot: Pick<Snapshot, 'config' | 'providers' | 'catalog'>,
  { named, client }: { named: readonly string[]; client: HttpClient },
): Promise<CalledProviders> {
  const called = providersToCall(snapshot, named)
  const findings: Finding[] = []
  const skews: number[] = []
  const results = new Map<Provider, LiveCall>()
  const pending = [...called]
  const work = async () => {
    for (let provider = pending.shift(); provider; provider = pending.shift()) {
      const call = await callOne(provider, snapshot, client)
      if (call) results.set(provider, call)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, called.length) }, work))
  for (const provider of called) {
    const call = results.get(provider)
    findings.push(call ? findingOf(provider, call) : uncalled(provider))
    if (call?.skewMs !== undefined) skews.push(call.skewMs)
  }
  const cost = [...results.values()].reduce((sum, { reply }) => sum + (reply?.usd ?? 0), 0)
  findings.push(...unsetProblems(snapshot, named))
  if (called.length === 0)
    findings.push(warning('providers', 'no provider is configured that could be called', 'set the secret of one'))
  else findings.push(ok('providers', `${results.size} calls cost $${cost.toFixed(6)}`))
  return { findings, skews }
}

/** Returns a problem for each provider that is named although its variables are not set. */
function unsetProblems({ providers }: Pick<Snapshot, 'providers'>, named: readonly string[]): Finding[] {
  return named.flatMap((slug) => {
    const names = providers.get(slug)?.missing.join(', ') ?? ''
    return names === '' ? [] : [problem('providers', `${slug} was not called: ${names} is not set`, `set ${names}`)]
  })
}

/** Returns the providers of the snapshot that are to be called. */
function providersToCall(
  { config, providers }: Pick<Snapshot, 'config' | 'providers'>,
  named: readonly string[],
): Provider[] {
  const expected = expectedProviders({ config })
  return [...providers.values()].filter((provider) => {
    const { slug, missing } = provider
    if (missing.length > 0) return false
    return named.length > 0 ? named.includes(slug) : isRemote(provider) || expected.has(slug)
  })
}

async function callOne(
  provider: Provider,
  { catalog }: Pick<Snapshot, 'catalog'>,
  client: HttpClient,
): Promise<LiveCall | undefined> {
  const models = catalog
    .list()
    .flatMap(({ provider: slug, model, entry }) => (slug === provider.slug ? [[model, entry] as const] : []))
  const chosen = cheapestModel(provider, models)
  return chosen && (await liveCall({ provider, ...chosen }, { stream: false, client }))
}

function uncalled({ slug }: Provider): Finding {
  const fix = `call one of its models through the router${slug === '' ? '' : `; \`inference-router models ${slug}\` lists them`}`
  return warning('providers', `${slug} was not called: the catalog has no model of it for conversations`, fix)
}

function findingOf(provider: Provider, { model, ms, error, reply }: LiveCall): Finding {
  const seconds = `${(ms / 1_000).toFixed(2)} s`
  if (!error) return ok('providers', `${model} answered in ${seconds}: finish reason ${reply?.finish}`)
  return problem(
    'providers',
    `${model} failed after ${seconds}: ${error.code}: ${error.message}`,
    fixFor(error.code, provider),
  )
}

/** Returns what to do about a failure. */
function fixFor(code: string, { slug }: Provider): string {
  const known: { readonly [code: string]: string } = {
    provider_refused: `check the secret of ${slug} (\`inference-router providers\` names its variables) and what it may do`,
    quota_exhausted: `add credit to your account at ${slug}, or raise its limit there`,
    rate_limited: 'try again later: other programs may use the same account',
    model_not_found: `check that your account at ${slug} has this model, and \`inference-router discover ${slug}\``,
    provider_unreachable: `check base_url of ${slug}, name resolution, firewall and certificates of this machine`,
    provider_timeout: `check the network and the status page of ${slug}`,
    provider_overloaded: `see the status page of ${slug}`,
    provider_failed: `see the status page of ${slug}`,
    provider_unreadable: `try \`inference-router check --call\` with its manifest: it shows what the answer has`,
  }
  return known[code] ?? 'see the message; `inference-router try` shows what is sent'
}
