import type { CatalogedModel } from '../../catalog/catalog.ts'
import { NameIndex } from './name-index.ts'

/**
 * The models of all providers by the names that they have without a provider. Where several providers offer a model, those of `preferred`
 * come first, in that order; then the provider that has the name of the model's lab, then all others by their slugs.
 */
export class ModelNames {
  readonly #preferred: readonly string[]
  readonly #list: () => readonly CatalogedModel[]
  #made: Made | undefined

  /** The index is made when a name is looked up for the first time: most processes never need it. */
  constructor(list: () => readonly CatalogedModel[], preferred: readonly string[] = []) {
    this.#list = list
    this.#preferred = preferred
  }

  /** Returns the ids of the models that their providers know by exactly this name, or by this alias. */
  called(name: string): readonly string[] {
    return this.#index().exact.get(name) ?? []
  }

  /** Returns the ids of the models that may be meant by a name: the one that has it in whatever case, also as the end of a longer one. */
  meant(name: string): readonly string[] {
    return this.#index().loose.get(name.toLowerCase()) ?? []
  }

  /** Returns names similar to a name, in lower case, the most similar first. */
  similar(name: string): string[] {
    const index = this.#index()
    index.names ??= new NameIndex(index.loose.keys())
    return index.names.similar(name)
  }

  #index(): Made {
    this.#made ??= indexOf(this.#list(), this.#preferred)
    return this.#made
  }
}

type Made = {
  exact: ReadonlyMap<string, readonly string[]>
  loose: ReadonlyMap<string, readonly string[]>
  names?: NameIndex
}

function indexOf(models: readonly CatalogedModel[], preferred: readonly string[]): Made {
  const exact = new Map<string, string[]>()
  const loose = new Map<string, string[]>()
  const placeOf = ({ provider, entry: { model_lab } }: CatalogedModel) => {
    const place = preferred.indexOf(provider)
    if (place >= 0) return place
    return provider === model_lab ? preferred.length : preferred.length + 1
  }
  const ordered = models
    .map((model) => ({ ...model, place: placeOf(model) }))
    .sort((one, other) => one.place - other.place || (one.provider < other.provider ? -1 : 1))
  for (const { provider, model, entry } of ordered) {
    for (const name of [model, ...(entry.aliases ?? [])]) add(exact, name, `${provider}/${name}`)
    const id = `${provider}/${model}`
    for (const name of [model, ...(entry.aliases ?? [])]) {
      const lower = name.toLowerCase()
      for (const form of new Set([lower, lower.slice(lower.lastIndexOf('/') + 1)]))
        if (form !== '') add(loose, form, id)
    }
  }
  return { exact, loose }
}

function add(index: Map<string, string[]>, name: string, id: string): void {
  const ids = index.get(name)
  if (!ids) index.set(name, [id])
  else if (!ids.includes(id)) ids.push(id)
}
