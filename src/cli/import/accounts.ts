import { parseDocument, stringify } from 'yaml'
import type { WrittenEntry } from '../../catalog/read-list.ts'
import { type Environment, isReference, resolveText } from '../../manifest/read/environment.ts'
import type { ImportPlan } from './plan.ts'
import type { ShippedProvider, ShippedProviders } from './shipped.ts'

/** A model as another gateway reaches it. */
export type Deployment = {
  /** The provider by the other gateway's name. */
  provider: string
  model: string
  /** The kind of model, as the catalog has it. */
  api: string
  /** An address, or a reference to a variable. */
  baseUrl?: string | undefined
  /** A reference to the variable with the secret; undefined for the provider's usual one. */
  secret?: string | undefined
  /** True for any server with OpenAI's format: at another address it is a provider of its own. */
  isOpenAiFormat?: boolean
  /** The name of such a provider; without it, it is that of the address. */
  named?: string
  /** The model that a deployment is, where it has a name of its own. */
  is?: string | undefined
  /** Price in USD per token, where the file has one. */
  price?: { input: number; output: number } | undefined
  limits?: { context_window?: number; max_output_tokens?: number }
}

/** The target of a deployment: `<provider>/<model>`, or why there is none. */
export type Placed = { target: string; note?: string } | { problem: string }

type Account = {
  slug: string
  models: { [model: string]: WrittenEntry }
  shipped?: ShippedProvider
  apis: Set<string>
} & Place
type Place = { baseUrl: string | undefined; secret: string | undefined }

/** The accounts at providers that deployments use. The first one of a provider gets its slug, others a manifest of their own. */
export class Accounts {
  readonly #shipped: ShippedProviders
  readonly #env: Environment
  readonly #known = new Map<string, Account>()

  constructor(shipped: ShippedProviders, env: Environment) {
    this.#shipped = shipped
    this.#env = env
  }

  /** Returns the target of a deployment, in the account that has its address and its secret. */
  place(deployment: Deployment): Placed {
    const { provider, model, secret } = deployment
    const slug = this.#shipped.slugOf(provider)
    const shipped = slug === undefined ? undefined : this.#shipped.get(slug)
    const address = this.#address(deployment.baseUrl, shipped)
    if (address !== undefined && (!shipped || (deployment.isOpenAiFormat && isElsewhere(address, shipped)))) {
      const account = this.#account({ baseUrl: address, secret }, undefined, deployment.named)
      account.models[model] ??= entryAt(deployment)
      account.apis.add(deployment.api)
      const free = deployment.price ? undefined : 'it has no price in the file and is charged $0, as before'
      return placed(`${account.slug}/${model}`, this.#addressNote(deployment) ?? free)
    }
    if (!shipped) return { problem: `there is no provider '${provider}' here, and the entry has no address` }
    const own = secret === `\${${this.#shipped.variableOf(shipped.slug)}}` ? undefined : secret
    const entry = this.#entryFor(deployment, shipped)
    if ('problem' in entry) return entry
    const account = this.#account({ baseUrl: address, secret: own }, shipped)
    if (entry.entry) account.models[model] ??= entry.entry
    return placed(`${account.slug}/${model}`, this.#addressNote(deployment))
  }

  /** Returns a note about an address that cannot be completed, because the variable that has it is not set here. */
  #addressNote({ baseUrl = '' }: Deployment): string | undefined {
    const { missing } = resolveText(baseUrl, this.#env)
    if (missing.length === 0) return undefined
    return `${missing.join(', ')} is not set here, so its address is taken as it is: set it before you import, or check base_url`
  }

  /** Returns the entry that a model needs beside the catalog. */
  #entryFor(
    { model, api, is, price, limits }: Deployment,
    { slug }: ShippedProvider,
  ): { entry?: WrittenEntry } | { problem: string } {
    const pricing = price && { pricing: price }
    if (this.#shipped.offers(slug, model)) return pricing ? { entry: pricing } : {}
    if (is !== undefined && this.#shipped.offers(slug, is)) return { entry: { is, ...pricing } }
    if (pricing) return { entry: { api, ...limits, ...pricing } }
    return {
      problem: `the catalog has no model '${model}' of ${slug}, and the file no price: name it under providers.${slug}.models of config.yaml, then import again`,
    }
  }

  /** Returns an address as a manifest has it: `https://x.openai.azure.com` gets the path that the provider's own address has. */
  #address(written: string | undefined, shipped: ShippedProvider | undefined): string | undefined {
    if (written === undefined) return undefined
    const { text, missing } = resolveText(written, this.#env)
    const url = missing.length === 0 ? URL.parse(text) : null
    if (!url) return written
    const usual = shipped ? pathOf(shipped) : ''
    const path = url.pathname
      .replace(/\/+$/, '')
      .replace(/\/(?:chat\/completions|completions|embeddings|messages)$/, '')
    const isPart = path === '' || (usual !== '' && path.split('/')[1] === usual.split('/')[1])
    const whole = `${url.origin}${isPart ? usual : path}`
    return shipped && whole === shipped.provider.baseUrl ? undefined : whole
  }

  /** Opens the account of a provider for all of its models. Returns its slug; undefined for a provider that is not shipped. */
  open({ provider, baseUrl, secret }: Pick<Deployment, 'provider' | 'baseUrl' | 'secret'>): string | undefined {
    const shipped = this.#shipped.get(this.#shipped.slugOf(provider) ?? '')
    if (!shipped) return undefined
    const own = secret === `\${${this.#shipped.variableOf(shipped.slug)}}` ? undefined : secret
    return this.#account({ baseUrl: this.#address(baseUrl, shipped), secret: own }, shipped).slug
  }

  #account(place: Place, shipped: ShippedProvider | undefined, named?: string): Account {
    const id = JSON.stringify([shipped?.slug, place.baseUrl, place.secret])
    const known = this.#known.get(id)
    if (known) return known
    const wanted = shipped?.slug ?? (named === undefined ? slugFrom(place.baseUrl ?? '') : plainSlug(named))
    const slug = this.#freeSlug(wanted, shipped !== undefined)
    const account: Account = { slug, models: {}, apis: new Set(), ...place, ...(shipped && { shipped }) }
    this.#known.set(id, account)
    return account
  }

  #freeSlug(wanted: string, mayBeShipped: boolean): string {
    const taken = new Set([...this.#known.values()].map(({ slug }) => slug))
    const isFree = (slug: string) =>
      !taken.has(slug) && (mayBeShipped && slug === wanted ? true : !this.#shipped.get(slug))
    for (let count = 1; ; count++) {
      const slug = count === 1 ? wanted : `${wanted}-${count}`
      if (isFree(slug)) return slug
    }
  }

  /** Adds the settings and manifests of all accounts to a plan. */
  addTo(plan: ImportPlan): void {
    for (const { slug, shipped, baseUrl, secret, models, apis } of this.#known.values()) {
      if (!shipped) {
        plan.manifests[slug] = openAiManifest({ slug, baseUrl: baseUrl ?? '', secret, models, apis }, plan.from)
        continue
      }
      const withModels = Object.keys(models).length > 0 && { models }
      if (slug === shipped.slug) {
        plan.providers[slug] = {
          ...(baseUrl !== undefined && { base_url: baseUrl }),
          ...(secret !== undefined && { secret }),
          ...withModels,
        }
      } else {
        plan.manifests[slug] = copiedManifest(shipped, { slug, baseUrl, secret }, plan.from)
        plan.providers[slug] = { ...withModels }
      }
    }
  }
}

function placed(target: string, note: string | undefined): Placed {
  return { target, ...(note !== undefined && { note }) }
}

/** Returns the path of a provider's usual address. */
function pathOf({ file: { base_url }, provider }: ShippedProvider): string {
  const written = typeof base_url === 'string' ? base_url.replace(/\$\{[^}]*\}/g, 'x') : provider.baseUrl
  return (URL.parse(written)?.pathname ?? '').replace(/\/+$/, '')
}

/** Checks whether an address belongs to somebody else than the provider. */
function isElsewhere(address: string, { provider: { baseUrl } }: ShippedProvider): boolean {
  const domain = (url: string) => URL.parse(url)?.hostname.split('.').slice(-2).join('.')
  return domain(address) !== domain(baseUrl)
}

function slugFrom(address: string): string {
  const { hostname = 'server', port = '' } = URL.parse(address) ?? {}
  const isNumber = /^[\d.]+$|^\[/.test(hostname)
  const labels = hostname.split('.').filter((label) => !/^(?:api|www)$/.test(label))
  return plainSlug(isNumber ? `server-${hostname}${port && `-${port}`}` : (labels[0] ?? ''))
}

function plainSlug(name: string): string {
  const plain = name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return plain.replace(/^-|-$/g, '') || 'server'
}

function entryAt({ api, price = { input: 0, output: 0 }, limits }: Deployment): WrittenEntry {
  return { api, ...limits, pricing: price }
}

/** Endpoints by the kind of model, where a manifest must name them. */
const endpoints: { readonly [api: string]: string } = {
  completion: 'complete',
  embedding: 'embed',
  rerank: 'rerank',
  image: 'image',
  speech: 'speech',
  transcription: 'transcribe',
  moderation: 'moderate',
}

type NewManifest = {
  slug: string
  baseUrl: string
  secret: string | undefined
  models: object
  apis: ReadonlySet<string>
}

/** Returns the manifest of a server that has OpenAI's format. */
function openAiManifest({ slug, baseUrl, secret, models, apis }: NewManifest, from: string): string {
  const auth = secret === undefined ? { scheme: 'none' } : { scheme: 'bearer', secret }
  const named = [...apis].flatMap((api) => endpoints[api] ?? [])
  const withEndpoints = named.length > 0 && { endpoints: Object.fromEntries(named.map((name) => [name, {}])) }
  const file = { slug, name: slug, base_url: baseUrl, auth, dialect: 'openai-chat', ...withEndpoints, models }
  return `# Imported from ${from}: a server with OpenAI's format.\n${stringify(file)}`
}

/** Returns a copy of a shipped manifest for another account of the same provider. */
function copiedManifest(
  { slug: original, file, text }: ShippedProvider,
  { slug, baseUrl, secret }: Place & { slug: string },
  from: string,
): string {
  const document = parseDocument(text)
  document.commentBefore = null
  document.set('slug', slug)
  document.set('name', `${file.name} (${slug})`)
  if (baseUrl !== undefined) document.set('base_url', baseUrl)
  if (secret !== undefined && isReference(secret)) document.setIn(['auth', 'secret'], secret)
  if (file.models_of === undefined && file.models === undefined) document.set('models_of', original)
  document.delete('account_of')
  document.delete('examples')
  return `# Imported from ${from}: another account of ${original}, a copy of its shipped manifest.\n${document.toString({ lineWidth: 0 })}`
}
