import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Provider } from '../../manifest/provider.ts'
import { referencesIn } from '../../manifest/read/environment.ts'
import { readYaml } from '../../manifest/read/read-yaml.ts'
import type { ManifestFile } from '../../manifest/read/references.ts'
import { ModelNames } from '../../routing/names/model-names.ts'
import { nameOf, shippedFolder } from '../../snapshot/folders.ts'
import type { Snapshot } from '../../snapshot/snapshot.ts'

/** A shipped provider: its manifest as it is written, and as it was read. */
export type ShippedProvider = { slug: string; file: ManifestFile; text: string; provider: Provider }

/** The shipped providers, by the names that other gateways have for them. */
export class ShippedProviders {
  readonly #snapshot: Snapshot
  readonly #listedAs: ReadonlyMap<string, string>
  readonly #bare: ModelNames

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot
    this.#listedAs = listedNames()
    this.#bare = new ModelNames(snapshot.catalog.list)
  }

  /** Returns a provider by its slug. */
  get(slug: string): ShippedProvider | undefined {
    const provider = this.#snapshot.providers.get(slug)
    const source = this.#snapshot.files.provider.find((one) => nameOf(one) === slug)
    if (!provider || !source) return undefined
    // Its schema has accepted it.
    return { slug, file: source.value as ManifestFile, text: source.text, provider }
  }

  /** Returns the slug of a provider by the name that another gateway has for it. */
  slugOf(name: string): string | undefined {
    const lower = name.toLowerCase()
    const forms = [lower, ...variantsOf(lower)]
    const listed = forms.map((form) => this.#listedAs.get(form)).find((slug) => slug !== undefined)
    const isOwn = this.#snapshot.providers.has(lower)
    return isOwn ? lower : (listed ?? forms.find((form) => this.#snapshot.providers.has(form)))
  }

  /** Checks whether a provider offers a model by name, not only because it takes any name. */
  offers(slug: string, model: string): boolean {
    return this.#snapshot.catalog.find(slug, model) !== undefined
  }

  /** Returns the provider and model of a name without a provider: the first provider that offers it, its own lab before others. */
  named(model: string): { slug: string; model: string } | undefined {
    const [id] = this.#bare.called(model)
    const slash = id?.indexOf('/') ?? -1
    return id === undefined || slash < 0 ? undefined : { slug: id.slice(0, slash), model: id.slice(slash + 1) }
  }

  /** Returns the variable from which a provider has its secret. */
  variableOf(slug: string): string | undefined {
    const { file } = this.get(slug) ?? {}
    return file && referencesIn(JSON.stringify(file.auth))[0]
  }
}

/** Returns spellings of a name: `together_ai`, `hosted_vllm`, `ollama_chat`, `azure-openai`. */
function variantsOf(name: string): string[] {
  const dashed = name.replaceAll('_', '-')
  const bare = dashed.replace(/^(?:hosted|custom)-/, '').replace(/-(?:ai|chat|nim|openai|inference|beta|platform)$/, '')
  return [dashed, bare, bare.replaceAll('-', ''), dashed.replaceAll('-', '')]
}

/** Reads the names that public lists have for providers, from the catalog. */
function listedNames(): Map<string, string> {
  const folder = shippedFolder('catalog')
  if (!existsSync(folder)) return new Map()
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
  return new Map(
    files.flatMap((name) => {
      // The names stand above the models: most of a file need not be parsed.
      const [head = ''] = readFileSync(join(folder, name), 'utf8').split(/^(?:defaults|models|by_api):/m)
      const { provider, listed_as: listed } = (readYaml(head)?.value ?? {}) as { provider?: string; listed_as?: object }
      const names = Object.values(listed ?? {}).flat() as string[]
      return provider === undefined ? [] : names.map((one) => [one, provider] as const)
    }),
  )
}
