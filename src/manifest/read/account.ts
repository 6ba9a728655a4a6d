import type { Problem } from '../check/problem.ts'
import { noManifest } from './base-layers.ts'
import { type ManifestFile, type Names, relatedOf, type Surroundings } from './references.ts'
import type { Source } from './source.ts'

/** Finds accounts and addresses of providers that do not exist, or that have no account or address of their own. */
export function accountProblems(source: Source, file: ManifestFile, { manifests }: Surroundings): Problem[] {
  if (!manifests) return []
  const { account_of, base_url } = file
  const account = account_of === undefined ? undefined : accountProblem(file.slug, account_of, manifests)
  const address = typeof base_url === 'string' ? undefined : addressProblem(file.slug, base_url.of, manifests)
  return [
    ...(account === undefined ? [] : [source.problem(['account_of'], account)]),
    ...(address === undefined ? [] : [source.problem(['base_url', 'of'], address)]),
  ]
}

function accountProblem(own: string, slug: string, manifests: Names<Source>): string | undefined {
  if (slug === own) return '`account_of` names the provider itself: leave it out'
  if (!manifests.has(slug)) return noManifest(slug, manifests.keys())
  const further = relatedOf(manifests.get(slug)).account_of
  return further === undefined ? undefined : `\`${slug}\` uses the account of \`${further}\`: name that one`
}

function addressProblem(own: string, slug: string, manifests: Names<Source>): string | undefined {
  if (slug === own) return '`base_url` names the provider itself: write its address'
  if (!manifests.has(slug)) return noManifest(slug, manifests.keys())
  const further = relatedOf(manifests.get(slug)).base_url
  if (typeof further === 'string') return undefined
  return further
    ? `the address of \`${slug}\` is that of \`${further.of}\`: name that one`
    : `\`${slug}\` has no \`base_url\``
}
