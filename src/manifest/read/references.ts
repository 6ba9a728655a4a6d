import type { WrittenEntries } from '../../catalog/read-list.ts'
import type { Problem } from '../check/problem.ts'
import type { Extensions, Provider } from '../provider.ts'
import type { VariantNeed } from '../types.ts'
import { type AuthFile, resolveAuth, secretMember, wrongAddress, wrongHeader } from './auth.ts'
import type { Dialect } from './dialect.ts'
import { brokenReferenceMessage, type Environment, hasBrokenReference, resolveText } from './environment.ts'
import type { Layer } from './layer.ts'
import { merge } from './merge.ts'
import type { Path } from './position.ts'
import type { Source } from './source.ts'

/** Settings by which the operator overrides a manifest, under the manifest's own names; `${NAME}` not yet resolved. */
export type ProviderSettings = {
  enabled?: boolean
  base_url?: string
  secret?: string
  headers?: { [name: string]: string }
  timeouts?: TimeoutsFile
  limits?: { concurrent: number; queue?: number }
  unknown_models?: UnknownModelsFile
  refuse_retired?: boolean
  models?: WrittenEntries
}

/** Handling of models that no catalog lists, as files write it: refused, passed on, or passed on at a price in USD per token. */
export type UnknownModelsFile = 'refuse' | 'pass' | { pass: boolean; price?: { input: number; output?: number } }

/** Limits as files write them. */
export type TimeoutsFile = {
  connect?: string
  first_event?: string
  between_events?: string
  whole?: string
  total?: string
}

/** An address that follows the one of another provider: its base URL, with a path behind it. */
export type DerivedAddress = { of: string; path?: string }

/** A manifest after its schema has accepted it. */
export type ManifestFile = Omit<ProviderSettings, 'enabled' | 'secret' | 'base_url'> & {
  slug: string
  name: string
  base_url: string | DerivedAddress
  account_of?: string
  auth: AuthFile
  dialect?: string
  signer?: string
  models_of?: string
  model_ids?: ModelIdsFile
  reports?: ('model' | 'cost')[]
  idempotency?: string
  traits_of?: string
  variants?: VariantFile[]
}

/** Rules for comparing a provider's ids of models, as files write them. */
export type ModelIdsFile = { ignore?: ('case' | 'blanks')[]; forms?: string[] }

/** Part of a manifest for some models or requests; with a dialect of its own it does not inherit endpoints and traits. */
export type VariantFile = {
  match?: string
  when?: VariantNeed | VariantNeed[]
  dialect?: string
  base_url?: string
  signer?: string
  traits_of?: string
}

/** Values that are found by their names. */
export type Names<Value> = Pick<ReadonlyMap<string, Value>, 'get' | 'has' | 'keys'>

/** Context in which a manifest is read; `blame` reports a problem of the settings at its place in their own file. */
export type Surroundings = {
  dialects: Names<Dialect | 'unusable'>
  env: Environment
  /** All manifests by slug, for those that share models or traits; without it what they share is not known. */
  manifests?: Names<Source>
  settings?: { value: ProviderSettings; problemAt(path: Path, message: string): Problem }
  /** Handling of models that no catalog lists, for providers that do not define it. */
  unknownModels?: UnknownModelsFile
  /** Additions of plugins. */
  extensions?: Extensions
}

/** Returns the members of a manifest that name other providers. Its schema may not have accepted it. */
export function relatedOf(manifest: Source | undefined): Partial<Pick<ManifestFile, 'account_of' | 'base_url'>> {
  return (manifest?.value ?? {}) as Partial<ManifestFile>
}

/** Returns an address with the path of one that follows it. */
export function addressBehind(address: string, { path = '' }: DerivedAddress): string {
  return `${address.replace(/\/+$/, '')}${path}`
}

/** Returns the text of a base URL; undefined where it follows an address that is not known. */
function addressText(written: ManifestFile['base_url'], manifests: Names<Source> | undefined): string | undefined {
  if (typeof written === 'string') return written
  const { base_url: followed } = relatedOf(manifests?.get(written.of))
  return typeof followed === 'string' ? addressBehind(followed, written) : undefined
}

/** Result of resolving a manifest's references. */
export type Resolution = { values: Pick<Provider, 'baseUrl' | 'auth' | 'headers' | 'missing'>; problems: Problem[] }

/** Replaces references by the environment's values; settings take precedence over the manifest. */
export function resolveReferences(
  source: Source,
  file: ManifestFile,
  layers: Layer[],
  around: Surroundings,
): Resolution {
  const problems: Problem[] = []
  const missing = new Set<string>()
  const { value: over = {}, problemAt: blameSettings } = around.settings ?? {}
  const blameFile = (path: Path, message: string) => source.problem(path, message)
  const blamer = (isOver: boolean) => (isOver && blameSettings ? blameSettings : blameFile)

  const resolve = (written: string, path: Path, isOver: boolean, wrong?: (text: string) => string | undefined) => {
    const { text, missing: unset } = resolveText(written, around.env)
    const message = hasBrokenReference(written) ? brokenReferenceMessage : unset.length === 0 && wrong?.(text.trim())
    if (message) problems.push(blamer(isOver)(path, message))
    return { text: text.trim(), missing: unset }
  }
  const read = (...given: Parameters<typeof resolve>): string => {
    const { text, missing: unset } = resolve(...given)
    for (const name of unset) missing.add(name)
    return text
  }

  const wrongBase = (text: string) => wrongAddress('base_url', text)
  // An address that is not known has already been reported.
  const address = over.base_url ?? addressText(file.base_url, around.manifests)
  const baseUrl = address === undefined ? '' : read(address, ['base_url'], over.base_url !== undefined, wrongBase)
  const replaced = over.secret === undefined ? undefined : secretMember(file.auth)
  if (over.secret !== undefined && replaced === undefined) {
    problems.push(
      blamer(true)(['secret'], `${file.slug} takes no secret: the scheme of its \`auth\` is ${file.auth.scheme}`),
    )
  }
  const written = replaced === undefined ? file.auth : { ...file.auth, [replaced]: over.secret as string }
  const { auth, missing: unset } = resolveAuth(
    written,
    (member, wrong) => {
      const isOver = member === replaced
      return resolve(written[member] as string, isOver ? ['secret'] : ['auth', member], isOver, wrong)
    },
    around.extensions?.schemes,
  )
  for (const name of unset) missing.add(name)
  const headers: Provider['headers'] = {}
  for (const [name, value] of Object.entries({ ...merge(layers).headers, ...over.headers })) {
    const isOver = over.headers?.[name] !== undefined
    headers[name] = read(value, ['headers', name], isOver, (text) => wrongHeader(name, text))
  }
  const values = { baseUrl: baseUrl.replace(/\/+$/, ''), auth, headers, missing: [...missing] }
  return { values, problems }
}
