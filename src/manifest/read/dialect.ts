import { basename } from 'node:path'
import type { Operation } from '../../core/operation.ts'
import type { OwnFunctions } from '../../mapping/library.ts'
import { hasErrors, type Problem } from '../check/problem.ts'
import { checkSchema } from '../check/schema.ts'
import type { Provider } from '../provider.ts'
import { type Layer, readLayer } from './layer.ts'
import { chatOf, defaultTimeouts, hasAny, operationsOf } from './merge.ts'
import type { Source } from './source.ts'

/** A wire format that manifests build on. */
export type Dialect = { name: string; layer: Layer }

/** The dialects that manifests may name; one that cannot be used is marked, and its problems are reported elsewhere. */
export type Dialects = ReadonlyMap<string, Dialect | 'unusable'>

/** Reads a dialect file, with the functions of plugins. The dialect is missing when there are problems. */
export function loadDialect(source: Source, functions?: OwnFunctions): { dialect?: Dialect; problems: Problem[] } {
  if (source.problems.length > 0) return { problems: source.problems }
  const form = checkSchema(source, 'dialect')
  if (form.length > 0) return { problems: [...source.warnings, ...form] }
  const { dialect: name } = source.value as { dialect: string }
  const { layer, problems } = readLayer(source, { functions })
  problems.push(...source.warnings)
  const file = basename(source.file, '.yaml')
  if (name !== file) {
    problems.push(source.problem(['dialect'], `the dialect \`${name}\` must be in ${name}.yaml, not ${file}.yaml`))
  }
  problems.push(...chatOf([offeringAll(layer)], source).problems)
  return hasErrors(problems) ? { problems } : { dialect: { name, layer }, problems }
}

/** Returns a provider that is nothing but its dialect, to run the dialect's examples on. Its signer is called `maker`. */
export function bareProvider({ name, layer }: Dialect): Provider {
  const all = offeringAll(layer)
  const { chat } = chatOf([all], layer.source)
  const { endpoints } = operationsOf([all], layer.source)
  return {
    slug: name,
    name,
    signer: 'maker',
    baseUrl: '',
    auth: { scheme: 'none' },
    headers: {},
    timeouts: defaultTimeouts,
    ...(layer.sameAs && { sameAs: layer.sameAs }),
    ...(chat && { chat }),
    ...(hasAny(endpoints) && { operations: endpoints }),
    ...(layer.failure && { failure: layer.failure }),
    errors: layer.errors,
    rejections: layer.rejections,
    errorHeaders: layer.errorHeaders,
    rateLimits: layer.rateLimits,
    traits: layer.traits,
    unknownModels: 'pass',
    models: {},
    missing: [],
    dialect: name,
  }
}

/** The layer as if a provider had all that it describes: a dialect may describe other endpoints than that for chat alone. */
function offeringAll(layer: Layer): Layer {
  return { ...layer, offers: Object.keys(layer.operations) as Operation[] }
}
