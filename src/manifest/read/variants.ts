import { maxNameLength } from '../../core/names.ts'
import { hasErrors, type Problem } from '../check/problem.ts'
import { unreadMembers } from '../check/unread-members.ts'
import type { Provider, Variant } from '../provider.ts'
import { exportsOf, foundation } from './base-layers.ts'
import { type Layer, readLayer, type VariantLayers } from './layer.ts'
import type { GivenDefinitions } from './mapping-reader.ts'
import { besideChat, chatOf, hasAny, merge, operationsOf } from './merge.ts'
import { readPattern } from './pattern.ts'
import { type ManifestFile, resolveReferences, type Surroundings, type VariantFile } from './references.ts'
import { memberOf, type Source } from './source.ts'

/** A manifest that has been read but for its variants. */
export type Manifest = {
  source: Source
  file: ManifestFile
  around: Surroundings
  provider: Provider
  layers: readonly Layer[]
}

/** Builds the variants of a manifest, each as a provider of its own, with the layers it is made of. */
export function loadVariants(manifest: Manifest): {
  variants: Variant[]
  layers: VariantLayers[]
  problems: Problem[]
} {
  const built = (manifest.file.variants ?? []).map((variant, index) =>
    loadVariant(manifest, variant, memberOf(manifest.source, ['variants', index])),
  )
  return {
    variants: built.flatMap(({ variant }) => variant ?? []),
    layers: built.flatMap(({ layers }) => layers ?? []),
    problems: built.flatMap(({ problems }) => problems),
  }
}

function loadVariant(manifest: Manifest, said: VariantFile, source: Source) {
  const { provider: base, around, file } = manifest
  const { layer, problems } = readLayer(source, {
    given: definitionsAround(manifest, said),
    functions: around.extensions?.functions,
  })
  if (said.match === undefined && said.when === undefined) {
    return { problems: [source.problem([], 'a variant needs `match` or `when`, to say what is different')] }
  }
  const match = said.match && readPattern({ source, problems }, ['match'], said.match, { maxLength: maxNameLength })
  const below = foundation(source, said, around)
  problems.push(...below.problems)
  const layers = [...under(said, manifest.layers, below.layers), layer]
  const { chat, problems: gaps } = below.problems.length > 0 ? { problems: [] } : chatOf(layers, source)
  const operations = operationsOf(layers, source)
  problems.push(...gaps, ...operations.problems)
  const endpoints = { chat, operations: operations.endpoints }
  problems.push(...unreadMembers(layer, endpoints, { isForRequests: said.when !== undefined }))
  const resolved = resolveReferences(source, { ...file, ...addressOf(said) }, layers, around)
  problems.push(...resolved.problems)
  const isLost = !chat && base.chat && !hasAny(operations.endpoints)
  if (hasErrors(problems) || isLost) return { problems }
  const sameAs = layers.findLast((one) => one.sameAs)?.sameAs
  const {
    sameAs: _sameAs,
    count: _count,
    compact: _compact,
    chat: _chat,
    operations: _operations,
    rejections: _rejections,
    errorHeaders: _errorHeaders,
    rateLimits: _rateLimits,
    failure: _failure,
    ...rest
  } = base
  const provider: Provider = {
    ...rest,
    ...resolved.values,
    // The same credential object: state that belongs to its identity, such as a token, is shared.
    auth: base.auth,
    signer: said.signer ?? base.signer,
    ...mergedTables(layers),
    ...(sameAs && { sameAs }),
    ...besideChat(layers),
    ...(chat && { chat }),
    ...(hasAny(operations.endpoints) && { operations: operations.endpoints }),
    ...(said.dialect !== undefined && { dialect: said.dialect }),
  }
  const variant = { ...(match && { match }), ...(said.when && { when: [said.when].flat() }), provider }
  return { variant, layers: { layers }, problems }
}

/** Returns the definitions that a variant's mappings see: those of the manifest, of its dialect, and of a dialect of its own. */
function definitionsAround({ source, file, around }: Manifest, { dialect }: VariantFile): GivenDefinitions[] {
  return [...exportsOf(file.dialect, around), { source, path: ['define'] }, ...exportsOf(dialect, around)]
}

/** Returns the layers below a variant: the whole manifest, or another dialect with what does not depend on the format. */
function under({ dialect }: VariantFile, inherited: readonly Layer[], below: readonly Layer[]): Layer[] {
  const alone = inherited.map((layer) => ({ ...layer, variants: [] }))
  if (dialect === undefined) return [...alone, ...below]
  return [...below, ...alone.slice(-1).map(withoutFormat)]
}

/** Returns a layer without the members that describe its own format: they mean nothing in another one. */
function withoutFormat({
  chat: _chat,
  count: _count,
  compact: _compact,
  listing: _listing,
  sameAs: _sameAs,
  finish: _finish,
  usage: _usage,
  failure: _failure,
  operations: _operations,
  offers: _offers,
  withholds: _withholds,
  ...layer
}: Layer): Layer {
  return { ...layer, operations: {}, offers: [], withholds: [], traits: [] }
}

function addressOf({ base_url }: VariantFile): Pick<VariantFile, 'base_url'> {
  return base_url === undefined ? {} : { base_url }
}

function mergedTables(layers: readonly Layer[]) {
  const { headers: _headers, restricted, ...tables } = merge(layers)
  return { ...tables, ...(restricted.length > 0 && { restricted }) }
}
