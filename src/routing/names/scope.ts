import type { ErrorCode } from '../../core/errors.ts'
import type { ModelEntry } from '../../core/models/model.ts'
import { hasModel, hasName, policyPrefix, splitModel } from '../../core/names.ts'
import type { OrganizationRules } from '../../store/rules.ts'

/** The rules of the organization and the access list of the key for which names are resolved. */
export type Scope = {
  rules: Pick<OrganizationRules, 'approvedModels' | 'dataRules' | 'aliases' | 'policies'>
  accessList: readonly string[] | null
}

/** A model to be checked: its whole id, its catalog entry, and a way to find the models of other ids. */
export type Candidate = {
  id: string
  entry?: ModelEntry | undefined
  identify(provider: string, model: string): { name: string } | undefined
}

/** Reason why a model may not be used, as one sentence. */
export type Exclusion = {
  code: Extract<ErrorCode, 'model_not_found' | 'model_unavailable' | 'forbidden' | 'invalid_request'>
  message: string
}

/**
 * Returns why a model may not be used in a scope; undefined when it may. `through` are the names of the alias and the policy that
 * led to it: a key that may use one of them may use all its models.
 */
export function exclusionOf(
  candidate: Candidate,
  scope: Scope | undefined,
  through: readonly string[] = [],
): Exclusion | undefined {
  if (!scope) return undefined
  const { approvedModels, dataRules } = scope.rules
  if (approvedModels && canonical(candidate.id, candidate.identify) === undefined) {
    return notFound(`The model '${candidate.id}' is in no catalog, and this organization may use approved models only.`)
  }
  if (approvedModels && !lists(approvedModels, candidate)) {
    return notFound(`The model '${candidate.id}' is not approved for this organization.`)
  }
  const broken = brokenRule(candidate, dataRules)
  if (broken !== undefined) return notFound(broken)
  if (!scope.accessList || isNamed(scope.accessList, through) || lists(scope.accessList, candidate)) return undefined
  return notListed(candidate.id)
}

/** Returns why a key may not use a model of which only the id is known; undefined where it may. */
export function exclusionByList(
  id: string,
  scope: Scope | undefined,
  through: readonly string[],
): Exclusion | undefined {
  const list = scope?.accessList
  return !list || isNamed(list, through) || hasModel(list, id) ? undefined : notListed(id)
}

function notListed(id: string): Exclusion {
  return { code: 'forbidden', message: `The model '${id}' is not in the access list of this API key.` }
}

/** Returns why a model is not available to ids that end in `@eu`; undefined when it is. */
export function exclusionForEu({ id, entry }: Candidate): Exclusion | undefined {
  if (entry?.geolocation === 'eu') return undefined
  return notFound(`${hosted(id, entry)}, and an id that ends in '@eu' is served in the EU only.`)
}

/** Returns why a model cannot be called at an endpoint for models of this API; models that the catalog does not know may be of any API. */
export function exclusionByApi(
  { id, entry }: Pick<Candidate, 'id' | 'entry'>,
  apis: readonly string[] | undefined,
): Exclusion | undefined {
  if (apis === undefined || entry === undefined) return undefined
  if ([entry.api, ...(entry.also ?? [])].some((api) => apis.includes(api))) return undefined
  const endpoint = endpoints[entry.api]
  const at = endpoint === undefined ? '' : ` Models of this kind are called at POST ${endpoint}.`
  const message = `The model '${id}' has the API \`${entry.api}\`, and this endpoint is for models with the API ${apis.map((api) => `\`${api}\``).join(' or ')}.${at}`
  return { code: 'invalid_request', message }
}

/** Endpoints at which models are called, by their API. */
const endpoints: { readonly [api: string]: string } = {
  chat: '/v1/chat/completions',
  embedding: '/v1/embeddings',
  image: '/v1/images/generations',
  speech: '/v1/audio/speech',
  transcription: '/v1/audio/transcriptions',
  decision: '/v1/decisions',
  completion: '/v1/completions',
  rerank: '/v1/rerank',
  moderation: '/v1/moderations',
}

function lists(list: readonly string[], { id, identify }: Candidate): boolean {
  if (hasModel(list, id)) return true
  // A list that contains one name of a model allows all its names.
  const name = canonical(id, identify)
  return name !== undefined && canonicalNames(list, identify).has(name)
}

type Identify = Candidate['identify']

/** Returns a model's id with the name by which the catalog knows it; undefined for one that it does not know. */
function canonical(id: string, identify: Identify): string | undefined {
  const { provider = '', model = '' } = splitModel(id) ?? {}
  const name = identify(provider, model)?.name
  return name === undefined ? undefined : `${provider}/${name}`
}

/** Returns the canonical ids of a list. Lists never change and have up to thousands of names: each is analyzed once per catalog. */
function canonicalNames(list: readonly string[], identify: Identify): ReadonlySet<string> {
  const cached = known.get(list)
  if (cached?.identify === identify) return cached.names
  const names = new Set(list.flatMap((id) => canonical(id, identify) ?? []))
  known.set(list, { identify, names })
  return names
}

const known = new WeakMap<readonly string[], { identify: Identify; names: ReadonlySet<string> }>()

function isNamed(list: readonly string[], through: readonly string[]): boolean {
  return through.some((name) => hasName(list, name) || hasName(list, `${policyPrefix}${name}`))
}

/** Returns the rule that a model breaks. Unknown facts break a rule, because it is a promise to the organization. */
function brokenRule({ id, entry }: Candidate, rules: Scope['rules']['dataRules']): string | undefined {
  const { geolocation, data_retention, data_used_for_training } = rules
  if (geolocation && !geolocation.includes(entry?.geolocation ?? '')) {
    const allowed = geolocation.join(', ') || 'nothing'
    return `${hosted(id, entry)}, and this organization's rule geolocation allows ${allowed}.`
  }
  if (data_retention === false && entry?.data_retention !== false) {
    const does = entry?.data_retention ? 'is retained' : 'may be retained (its retention is unknown)'
    return `Data sent to '${id}' ${does}, which this organization's rule data_retention: false forbids.`
  }
  if (data_used_for_training === false && entry?.data_used_for_training !== false) {
    const does = entry?.data_used_for_training ? 'is used for training' : 'may be used for training (this is unknown)'
    return `Data sent to '${id}' ${does}, which this organization's rule data_used_for_training: false forbids.`
  }
  return undefined
}

function hosted(id: string, entry: ModelEntry | undefined): string {
  const where = entry?.geolocation
  return where === undefined
    ? `The location of the model '${id}' is unknown`
    : `The model '${id}' is hosted in '${where}'`
}

function notFound(message: string): Exclusion {
  return { code: 'model_not_found', message }
}
