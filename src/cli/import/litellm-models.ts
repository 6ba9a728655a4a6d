import type { Deployment } from './accounts.ts'
import { type ForeignFile, type MemberPath, textsIn } from './foreign-file.ts'
import { type ImportPlan, remarker } from './plan.ts'
import { secretReference } from './secrets.ts'
import type { ShippedProviders } from './shipped.ts'

/** A deployment of `model_list` that was placed: the name of its group, and its target. */
export type PlacedDeployment = {
  name: string
  target: string
  path: MemberPath
  /** Relative share of calls, and the place where deployments have an order. */
  weight: number | undefined
  order: number | undefined
  accessGroups: readonly string[]
}

/** The way in which LiteLLM names a variable. */
export const variable = /^os\.environ\/(\w+)$/

/** Prefixes of models that say how LiteLLM calls them, not who has them. */
const routes = /^(?:converse|invoke|converse_like|responses|chat)\//

const apis: { readonly [mode: string]: string } = {
  embedding: 'embedding',
  completion: 'completion',
  rerank: 'rerank',
  image_generation: 'image',
  audio_speech: 'speech',
  audio_transcription: 'transcription',
  moderation: 'moderation',
}

type ReadDeployment = { deployment: Deployment; group: Omit<PlacedDeployment, 'target' | 'path'> }

/** Reads one entry of `model_list`; undefined for one that is no single model here, with a remark. */
export function readDeployment(
  file: ForeignFile,
  path: MemberPath,
  plan: ImportPlan,
  shipped: ShippedProviders,
): ReadDeployment | undefined {
  const remark = remarker(plan)
  const params = (name: string): MemberPath => [...path, 'litellm_params', name]
  const info = (name: string): MemberPath => [...path, 'model_info', name]
  const name = file.text([...path, 'model_name'])
  const written = file.text(params('model'))
  if (name === undefined || written === undefined) {
    remark('manual', path, 'an entry without model_name and litellm_params.model')
    return undefined
  }
  const named = modelOf(written, file.text(params('custom_llm_provider')), shipped)
  if (written.includes('*') || name.includes('*')) {
    file.take(params('api_key'))
    const slug = named && shipped.slugOf(named.provider)
    remark('near', path, wildcardNote(name, slug))
    if (slug !== undefined) plan.providers[slug] ??= {}
    return undefined
  }
  if (!named) {
    remark('manual', path, `no provider here offers '${written}': write it as provider/model, then import again`)
    return undefined
  }
  const address = file.text(params('api_base')) ?? file.text(params('base_url'))
  const key = file.text(params('api_key'))
  const hint = named.provider
  const [perMinute, tokens] = [file.number(params('rpm')), file.number(params('tpm'))]
  if (perMinute !== undefined || tokens !== undefined)
    remark(
      'near',
      params(perMinute === undefined ? 'tpm' : 'rpm'),
      'is used as a share of the calls only, not as a limit',
    )
  if (file.text(params('api_version'))) remark('near', params('api_version'), 'the address needs no version')
  for (const ignored of ['id', 'db_model', 'description', 'created_at', 'updated_at']) file.take(info(ignored))
  const weight = file.number(params('weight'))
  return {
    group: {
      name,
      weight: weight ?? perMinute ?? tokens,
      order: file.number(params('order')),
      accessGroups: textsIn(file.take(info('access_groups'))),
    },
    deployment: {
      ...named,
      api: apis[file.text(info('mode')) ?? ''] ?? 'chat',
      baseUrl: address?.replace(variable, (_, named: string) => `\${${named}}`),
      secret: key === undefined ? undefined : secretReference(plan, key, { variable, hint }),
      isOpenAiFormat: /^(?:openai|custom_openai|openai_like|text-completion-openai|litellm_proxy)$/.test(
        named.provider,
      ),
      is: file.text(info('base_model'))?.replace(/^.*\//, ''),
      price: priceIn(file, [params, info]),
      limits: limitsIn(file, info),
    },
  }
}

function wildcardNote(name: string, slug: string | undefined): string {
  const own = slug === undefined ? 'provider/model' : `${slug}/<model>`
  return name === `${slug}/*`
    ? `models are called as ${own} here as well`
    : `'${name}' has no equivalent: models are called as ${own}, or without a provider with unprefixed_models: first`
}

/** Returns the provider and the model that LiteLLM calls; undefined where nobody offers a bare name. */
function modelOf(
  written: string,
  custom: string | undefined,
  shipped: ShippedProviders,
): { provider: string; model: string } | undefined {
  const [first = '', ...rest] = written.split('/')
  const isNamed = rest.length > 0 && (first === custom || custom === undefined) && isProvider(first, shipped)
  if (isNamed) return { provider: first, model: rest.join('/').replace(routes, '') }
  if (custom !== undefined) return { provider: custom, model: written }
  const found = shipped.named(written)
  return found && { provider: found.slug, model: found.model }
}

function isProvider(name: string, shipped: ShippedProviders): boolean {
  return shipped.slugOf(name) !== undefined || /^(?:custom_openai|openai_like|litellm_proxy)$/.test(name)
}

function priceIn(file: ForeignFile, places: readonly ((name: string) => MemberPath)[]): Deployment['price'] {
  const read = (name: string) => places.map((place) => file.number(place(name))).find((price) => price !== undefined)
  const [input, output] = [read('input_cost_per_token'), read('output_cost_per_token')]
  return input === undefined && output === undefined ? undefined : { input: input ?? 0, output: output ?? 0 }
}

function limitsIn(file: ForeignFile, info: (name: string) => MemberPath): NonNullable<Deployment['limits']> {
  const [input, output, total] = [
    file.number(info('max_input_tokens')),
    file.number(info('max_output_tokens')),
    file.number(info('max_tokens')),
  ]
  const most = output ?? (input === undefined ? undefined : total)
  const window = input ?? total
  return {
    ...(window !== undefined && { context_window: window }),
    ...(most !== undefined && { max_output_tokens: most }),
  }
}
