import type { Problem } from '../manifest/check/problem.ts'
import type { Provider } from '../manifest/provider.ts'
import { type AuthFile, secretMember } from '../manifest/read/auth.ts'
import { type Environment, referencesIn, resolveText } from '../manifest/read/environment.ts'
import type { Path } from '../manifest/read/position.ts'
import {
  addressBehind,
  type ManifestFile,
  type Names,
  type ProviderSettings,
  relatedOf,
  type Surroundings,
} from '../manifest/read/references.ts'
import type { Source } from '../manifest/read/source.ts'
import type { Config } from './config.ts'
import { isShippedIn, nameOf } from './folders.ts'

/**
 * Places of settings: the configuration and its file, all manifests by slug, those that others of the same name replace, the environment.
 */
export type SettingsAround = {
  config: Pick<Config, 'providers' | 'folders'>
  source: Pick<Source, 'problem'>
  manifests: Names<Source>
  shadowed: Names<Source>
  env: Environment
}

/** The settings that hold for a provider, its own and those of its account; or why it is switched off. */
export type ProviderState = {
  settings?: NonNullable<Surroundings['settings']>
  off?: SwitchedOff
}

/** A provider that serves no calls. `message` is for clients, where its own settings do not explain it; `problem` is for the operator. */
export type SwitchedOff = { message?: string; problem?: Problem }

/** Returns the settings of all providers, those that are switched off, by slug, and what an operator should know of them. */
export function statesOf(around: Omit<SettingsAround, 'manifests'> & { manifests: ReadonlyMap<string, Source> }): {
  settingsOf(slug: string): Pick<ProviderState, 'settings'>
  off: Map<string, SwitchedOff>
  problems: Problem[]
} {
  const states = new Map([...around.manifests].map(([slug, manifest]) => [slug, stateOf(manifest, around)]))
  return {
    settingsOf(slug) {
      const { settings } = states.get(slug) ?? {}
      return settings ? { settings } : {}
    },
    off: new Map([...states].flatMap(([slug, { off }]) => (off ? [[slug, off] as const] : []))),
    problems: [
      ...[...states.values()].flatMap(({ off }) => off?.problem ?? []),
      ...[...around.manifests].flatMap(([slug, manifest]) => undeclaredProblem(slug, manifest, around) ?? []),
    ],
  }
}

/**
 * Warns of a manifest that offers the models of a provider with its secret and does not say that it is of its account: it is not moved
 * when the address of that provider is set.
 */
function undeclaredProblem(slug: string, manifest: Source, { config, manifests }: SettingsAround): Problem | undefined {
  const { account_of, models_of: models, base_url, auth } = (manifest.value ?? {}) as Partial<ManifestFile>
  const [own, other] = [config.providers[slug], typeof models === 'string' ? config.providers[models] : undefined]
  if (account_of !== undefined || typeof base_url !== 'string' || other?.base_url === undefined) return undefined
  if (own?.base_url !== undefined || own?.enabled === false) return undefined
  const others = variablesOf((manifests.get(models as string)?.value as Partial<ManifestFile> | undefined)?.auth)
  if (!variablesOf(auth).some((name) => others.includes(name))) return undefined
  const message = `requests of \`${slug}\` go to this address although the base_url of \`${models}\`, whose secret it has, is set: write \`account_of: ${models}\` here, or set \`providers.${slug}.base_url\``
  return { ...manifest.problem(['base_url'], message), severity: 'warning' }
}

function variablesOf(auth: unknown): string[] {
  return referencesIn(JSON.stringify(auth ?? ''))
}

/** Returns the state of a provider. A provider takes part in the settings of the account that its manifest names. */
export function stateOf(manifest: Source, around: SettingsAround): ProviderState {
  const slug = nameOf(manifest)
  const { config, source } = around
  const own = config.providers[slug]
  const account = accountOf(manifest, slug, around)
  const inherited = inheritedSettings(manifest, account, around)
  const value = { ...inherited, ...own }
  const owner = (member: Path[number]) =>
    own?.[member as keyof ProviderSettings] === undefined && Object.hasOwn(inherited, member) ? account : slug
  const problemAt = (path: Path, message: string) =>
    source.problem(['providers', owner(path[0] ?? '') as string, ...path], message)
  const off = switchedOff(manifest, { slug, own, account, value, around })
  return { ...((own || Object.keys(inherited).length > 0) && { settings: { value, problemAt } }), ...(off && { off }) }
}

/** Returns the provider whose account a manifest names, where there is one. */
function accountOf(manifest: Source, slug: string, { manifests }: SettingsAround): string | undefined {
  const { account_of: account } = relatedOf(manifest)
  return typeof account === 'string' && account !== slug && manifests.has(account) ? account : undefined
}

/** Returns the settings of other providers that hold for this one: secret and switch of its account, and the address that it follows. */
function inheritedSettings(
  manifest: Source,
  account: string | undefined,
  { config: { providers }, manifests }: SettingsAround,
): ProviderSettings {
  const { enabled, secret, base_url } = (account !== undefined && providers[account]) || {}
  const own = providers[nameOf(manifest)]
  // A provider with an address or a secret of its own is meant to serve.
  const isPlaced = own?.base_url !== undefined || own?.secret !== undefined
  const { base_url: written, auth } = relatedOf(manifest) as Partial<ManifestFile>
  const address = isDerived(written) ? providers[written.of]?.base_url : undefined
  const isEqual = account !== undefined && written === relatedOf(manifests.get(account)).base_url
  return {
    ...(enabled !== undefined && !isPlaced && { enabled }),
    ...(secret !== undefined && takesSecret(auth) && { secret }),
    ...(isEqual && base_url !== undefined && { base_url }),
    ...(isDerived(written) && address !== undefined && { base_url: addressBehind(address, written) }),
  }
}

type Related = ReturnType<typeof relatedOf>

function isDerived(written: Related['base_url']): written is Exclude<ManifestFile['base_url'], string> {
  return typeof written === 'object' && written !== null
}

function takesSecret(auth: AuthFile | undefined): boolean {
  return typeof auth === 'object' && auth !== null && secretMember(auth) !== undefined
}

type Judged = {
  slug: string
  own: ProviderSettings | undefined
  account: string | undefined
  value: ProviderSettings
  around: SettingsAround
}

function switchedOff(manifest: Source, judged: Judged): SwitchedOff | undefined {
  const { slug, own, account, value, around } = judged
  if (own?.enabled === false) return {}
  if (value.enabled === false) {
    return { message: clientMessage(slug, `\`${account}\` is`, `\`providers.${slug}.enabled: true\``) }
  }
  if (isUnnamed(manifest, judged)) {
    return { message: clientMessage(slug, 'the configuration does not name it', `\`providers: { ${slug}: {} }\``) }
  }
  const reason = account === undefined ? undefined : strandedBy(manifest, account, judged)
  if (reason === undefined) return undefined
  const remedy = `set \`providers.${slug}.base_url\`, or \`providers.${slug}.enabled: false\``
  const at = around.config.providers[account as string]?.base_url === undefined ? [] : [account as string, 'base_url']
  const message = `\`${slug}\` is switched off: ${reason}; ${remedy}`
  return {
    message: clientMessage(slug, reason, `\`providers.${slug}.base_url\``),
    problem: { ...around.source.problem(['providers', ...at], message), severity: 'warning' },
  }
}

function clientMessage(slug: string, reason: string, setting: string): string {
  return `The provider '${slug}' is switched off, because ${reason}. An operator switches it on with ${setting} in the configuration.`
}

/**
 * Warns of shipped providers that serve beside those of an own folder, where the configuration asks for neither: it names no folders.
 */
export function addedProblems(
  providers: readonly { provider: Provider; source: Source }[],
  { config, source }: Pick<SettingsAround, 'config'> & { source: Source },
): Problem[] {
  const isNamed = ((source.value ?? {}) as { folders?: unknown }).folders !== undefined
  const isShipped = isShippedIn(config.folders.providers)
  if (isNamed || providers.every((one) => isShipped(one.source))) return []
  const added = providers.filter(
    ({ source: manifest, provider: { slug, missing } }) =>
      isShipped(manifest) && needsSecret(manifest) && missing.length === 0 && !config.providers[slug],
  )
  if (added.length === 0) return []
  const slugs = added.map(({ provider }) => provider.slug).sort()
  const message = `shipped providers serve beside your own, because their variables are set: \`${slugs.join('`, `')}\`; write \`folders: { providers: [./providers, shipped], catalog: [./catalog, shipped] }\` if you want them, else \`folders: { providers: ./providers, catalog: ./catalog }\``
  return [{ ...source.problem([], message), severity: 'warning' }]
}

/** Checks whether a shipped provider works without a secret, as local servers do, and the configuration names neither it nor its account. */
function isUnnamed(manifest: Source, { own, account, around }: Judged): boolean {
  const { config } = around
  if (own || (account !== undefined && config.providers[account]) || !isShippedIn(config.folders.providers)(manifest))
    return false
  return !needsSecret(manifest)
}

/** Checks whether the credential of a manifest refers to variables. */
function needsSecret(manifest: Source): boolean {
  const { auth } = (manifest.value ?? {}) as Partial<ManifestFile>
  return resolveText(JSON.stringify(auth ?? ''), {}).missing.length > 0
}

/**
 * Returns why a provider must not serve: its account has moved to another address and it would still send requests to the usual one.
 * Undefined where that cannot happen.
 */
function strandedBy(manifest: Source, account: string, { slug, value, around }: Judged): string | undefined {
  const { config, manifests, shadowed, env } = around
  const [written, ofAccount] = [relatedOf(manifest).base_url, relatedOf(manifests.get(account)).base_url]
  if (value.base_url !== undefined || typeof written !== 'string' || written === ofAccount) return undefined
  if (config.providers[account]?.base_url !== undefined)
    return `the base_url of \`${account}\` is set, and that of \`${slug}\` does not follow it`
  const shipped = shadowed.get(account)
  if (shipped && isShippedIn(config.folders.providers)(manifest) && relatedOf(shipped).base_url !== ofAccount)
    return `the base_url of \`${account}\` is not the shipped one, and that of \`${slug}\` does not follow it`
  const [own, others] = [referencesIn(written), typeof ofAccount === 'string' ? referencesIn(ofAccount) : []]
  const moving = others.find((name) => env[name] && !own.includes(name))
  const isMoved = own.some((name) => env[name] && !others.includes(name))
  return moving === undefined || isMoved ? undefined : `${moving} moves \`${account}\` and not \`${slug}\``
}
