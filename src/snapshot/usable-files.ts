import { basename } from 'node:path'
import { type FileProblem, hasErrors, type Problem } from '../manifest/check/problem.ts'
import { dialectsIn } from '../manifest/read/base-layers.ts'
import type { Layer } from '../manifest/read/layer.ts'
import type { Source } from '../manifest/read/source.ts'
import { nameOf, shippedDialects } from './folders.ts'
import type { Files, LeftOutNames, SourceKind, Sources, SourcesByKind } from './load-files.ts'
import type { Unavailable } from './unavailable.ts'

/** The files before a change, and the providers that served by them. */
export type Before = { files: SourcesByKind; providers: ReadonlyMap<string, unknown> }

/** Files that are all without errors, what they make, and the problems of those that are not among them; `refused` concern no single file. */
export type UsableFiles = {
  files: Files
  byKind: SourcesByKind
  unavailable: Unavailable['providers']
  problems: FileProblem[]
  refused: Problem[]
}

/** Ways of loading files, and of running their examples; `isOff` names the providers that are switched off. */
type Loading = {
  load(files: SourcesByKind, leftOut: LeftOutNames): Promise<Files>
  prove?(files: Files): Promise<Problem[]>
  isOff(slug: string, files: SourcesByKind): boolean
  before: Before | undefined
}

/**
 * Loads each file on its own: one with errors stays as it was before, or is left out together with what is built on it, until the others
 * have no errors. Each round holds back one file or more, so that there is a last one.
 */
export async function usableFiles(read: Sources, { load, prove, isOff, before }: Loading): Promise<UsableFiles> {
  const selection = new Selection(read, before, isOff)
  const layers = new Map<unknown, Layer[]>()
  for (;;) {
    const leftOut = selection.leftOut()
    const files = await load(selection.files, leftOut.names)
    if (selection.holdBack(files.problems.filter((one) => hasErrors([one])))) continue
    // Those that were loaded in an earlier round have no layers any more.
    for (const one of files.providers) if (one.layers) layers.set(one.provider, one.layers)
    const providers = files.providers.map((one) => ({ ...one, ...layersOf(layers.get(one.provider)) }))
    const failed = prove && !hasErrors(files.problems) ? await prove({ ...files, providers }) : []
    if (selection.holdBack(failed)) continue
    const { unavailable } = leftOut
    const all = [...files.problems, ...failed]
    const refused = hasErrors(all) ? all : []
    return { files, byKind: selection.files, unavailable, problems: selection.problems(unavailable), refused }
  }
}

function layersOf(layers: Layer[] | undefined): { layers?: Layer[] } {
  return layers ? { layers } : {}
}

/** Kinds in the order in which errors of one kind may be consequences of those of another. */
const kinds: readonly SourceKind[] = ['dialect', 'catalog', 'provider']

/** A file that is held back: its errors, and the consequence where that is not that names are unavailable. */
type Held = { kind: SourceKind; problems: Problem[]; effect?: string | undefined }

/** The files that are in use, while one after the other is held back. */
class Selection {
  files: Record<SourceKind | 'shadowed', readonly Source[]>
  readonly #before: Before | undefined
  readonly #isOff: Loading['isOff']
  readonly #folders: FileProblem[]
  readonly #held: Held[] = []
  /** Names of files that are left out, with the error of each. */
  readonly #broken: Record<SourceKind, Map<string, Problem>> = {
    dialect: new Map(),
    catalog: new Map(),
    provider: new Map(),
  }

  constructor({ files, problems }: Sources, before: Before | undefined, isOff: Loading['isOff']) {
    this.files = { ...files }
    this.#before = before
    this.#isOff = isOff
    const effect = 'the previous files stay in use'
    this.#folders = problems.filter(isOfFolder).map((problem) => ({ ...problem, kind: 'folder', effect }))
    for (const { kind, ...problem } of problems.filter((one) => !isOfFolder(one)))
      if (!this.#named(kind, nameOf(problem))) this.#hold(kind, problem, [problem])
      else this.#held.push({ kind, problems: [problem], effect: unused })
  }

  /** Holds back files with errors, those first whose errors can be the reason for others. Returns whether it did. */
  holdBack(errors: readonly Problem[]): boolean {
    const byFile = Map.groupBy(errors, ({ file, breaks }) => breaks ?? file)
    for (const kind of kinds) {
      const broken = this.files[kind].filter(({ file }) => byFile.has(file))
      if (broken.length === 0) continue
      const names = new Set(broken.map(nameOf))
      const first = broken.filter((source) => !manifestsUnder(kind, source).some((name) => names.has(name)))
      for (const source of first.length > 0 ? first : broken)
        this.#hold(kind, source, byFile.get(source.file) as Problem[])
      return true
    }
    return false
  }

  /** Returns the names that are not loaded, and for providers among them the error that is the reason. */
  leftOut(): { names: LeftOutNames; unavailable: Map<string, Problem> } {
    const { dialect, provider, catalog } = this.#broken
    const unavailable = new Map(provider)
    for (const [slug, problem] of catalog) if (this.#named('provider', slug)) unavailable.set(slug, problem)
    for (const source of this.files.provider) {
      const { traits, models } = sharedBy(source)
      const reason =
        [...dialectsIn(source.value)].map((name) => dialect.get(String(name))).find(Boolean) ??
        [...traits, ...models].map((slug) => provider.get(slug)).find(Boolean) ??
        models.map((slug) => catalog.get(slug)).find(Boolean)
      if (reason && !unavailable.has(nameOf(source))) unavailable.set(nameOf(source), reason)
    }
    return { names: { dialects: new Set(dialect.keys()), providers: new Set(unavailable.keys()) }, unavailable }
  }

  /** Returns the problems of all files that were held back, each with its consequence. */
  problems(unavailable: ReadonlyMap<string, Problem>): FileProblem[] {
    const ofFiles = this.#held.flatMap(({ kind, problems, effect }) => {
      const reasons = [...unavailable].filter(([slug]) => !this.#isOff(slug, this.files))
      const slugs = reasons.flatMap(([slug, reason]) => (problems.includes(reason) ? [slug] : []))
      const consequence = effect ?? (slugs.length > 0 ? `unavailable: ${slugs.sort().join(', ')}` : unused)
      return problems.map((problem): FileProblem => ({ ...problem, kind, effect: consequence }))
    })
    return [...this.#folders, ...ofFiles]
  }

  #hold(kind: SourceKind, source: Pick<Source, 'file'> & Partial<Source>, problems: Problem[]): void {
    const name = nameOf(source)
    const isChanged = this.#goBack(kind, name)
    const isOld = this.#before?.files[kind].some(({ file, text }) => file === source.file && text === source.text)
    const under = isChanged || !isOld ? [] : filesUnder(kind, source)
    const changed = under.filter(([of, other]) => this.#goBack(of, other, true))
    if (isChanged || changed.length > 0) {
      const of = changed.map(([of, other]) => `${folderNames[of]}/${other}.yaml`)
      const what = of.length > 0 ? `the previous version of ${of.join(', ')}` : 'the previous version'
      this.#held.push({ kind, problems, effect: `${what} stays in use` })
      return
    }
    this.files[kind] = this.files[kind].filter(({ file }) => file !== source.file)
    const served = kind === 'catalog' && this.#before?.providers.has(name)
    this.#held.push({ kind, problems, ...(served && { effect: unused }) })
    if (!served) for (const one of this.#namesOf(kind, source)) this.#broken[kind].set(one, problems[0] as Problem)
  }

  /** Returns the name of a file, and that which the file gives itself where no other file has it. */
  #namesOf(kind: SourceKind, source: Pick<Source, 'file'> & Partial<Source>): string[] {
    const { slug, provider } = (source.value ?? {}) as { slug?: unknown; provider?: unknown }
    const own = kind === 'provider' ? slug : kind === 'catalog' ? provider : undefined
    return [nameOf(source), ...(typeof own === 'string' && !this.#named(kind, own) ? [own] : [])]
  }

  #named(kind: SourceKind, name: string): boolean {
    return this.files[kind].some((one) => nameOf(one) === name)
  }

  /** Returns the files of a name to what they were before, which may be none where `mayGo`. Returns false where they are the same. */
  #goBack(kind: SourceKind, name: string, mayGo = false): boolean {
    if (!this.#before) return false
    const isIt = (source: Source) => nameOf(source) === name
    const [now, then] = [this.files[kind].filter(isIt), this.#before.files[kind].filter(isIt)]
    const isSame = now.length === then.length && now.every((one) => then.includes(one))
    if (isSame || (then.length === 0 && !mayGo)) return false
    this.files[kind] = [...this.files[kind].filter((one) => !isIt(one)), ...then].sort(inOrder)
    return true
  }
}

const unused = 'the file is not used'
const folderNames = { dialect: 'dialects', provider: 'providers', catalog: 'catalog' } as const

function isOfFolder({ file }: Problem): boolean {
  return !file.endsWith('.yml')
}

/** Orders files as folders are read: by name, and the shipped dialects before others of their names. */
function inOrder(one: Source, other: Source): number {
  const placeOf = ({ file }: Source) => `${file.startsWith(shippedDialects) ? 0 : 1} ${basename(file)}`
  return placeOf(one) < placeOf(other) ? -1 : 1
}

/** Returns the slugs whose traits, account or address and whose models a manifest uses, as it was read. */
function sharedBy({ value }: Partial<Source>): { traits: string[]; models: string[] } {
  const { traits_of, models_of, account_of, base_url, variants } = (value ?? {}) as Record<string, unknown>
  const all = [
    traits_of,
    account_of,
    (base_url as { of?: unknown } | undefined)?.of,
    ...(Array.isArray(variants) ? variants.map((variant) => variant?.traits_of) : []),
  ]
  const isText = (name: unknown): name is string => typeof name === 'string'
  return { traits: all.filter(isText), models: [models_of].filter(isText) }
}

function manifestsUnder(kind: SourceKind, source: Source): string[] {
  const { traits, models } = sharedBy(source)
  return kind === 'provider' ? [...traits, ...models].filter((name) => name !== nameOf(source)) : []
}

/** Returns the files that decide, besides its own, whether a file has errors. */
function filesUnder(kind: SourceKind, source: Pick<Source, 'file'> & Partial<Source>): [SourceKind, string][] {
  if (kind !== 'provider') return []
  const { traits, models } = sharedBy(source)
  const named = (of: SourceKind, names: Iterable<unknown>) =>
    [...new Set(names)].flatMap((name): [SourceKind, string][] => (typeof name === 'string' ? [[of, name]] : []))
  return [
    ...named('dialect', dialectsIn(source.value)),
    ...named('provider', [...traits, ...models]),
    ...named('catalog', [nameOf(source), ...models]),
  ]
}
