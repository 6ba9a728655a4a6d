import type { ModelEntry } from '../../core/models/model.ts'
import { type Api, isProviderTool, type NeutralRequest, type ProviderTool } from '../../core/request.ts'
import type { ChatEndpoint, Provider } from '../provider.ts'
import type { VariantNeed } from '../types.ts'
import { lackedFields } from './abilities.ts'
import { usesField } from './unsupported.ts'

/** A request, as far as it decides how a model is asked; `entry` is that of the model. */
export type RequestFacts = { request: NeutralRequest; entry?: ModelEntry | undefined }

/** Checks whether a request needs something that the model has and the endpoint of this provider is not known to lack. */
export function servesNeed(need: VariantNeed, { request, entry }: RequestFacts, provider: Provider): boolean {
  const { tools = [] } = request
  if (need === 'provider_tools') return tools.some((tool) => isProviderTool(tool) && !lacksTool(provider, tool))
  const { field, isNeeded } = needOf(need, request)
  return isNeeded && !lacksField(provider, field, request.origin.api) && !(entry && modelLacks(entry, field))
}

/** The field that a need is about, and whether a request has it. */
function needOf(
  need: Exclude<VariantNeed, 'provider_tools'>,
  request: NeutralRequest,
): { field: string; isNeeded: boolean } {
  const { tools = [], reasoning } = request
  const hasFunctions = tools.some((tool) => !isProviderTool(tool))
  const isOff = reasoning?.effort === 'none' || reasoning?.budget === 0
  if (need === 'tools') return { field: need, isNeeded: hasFunctions }
  if (need === 'functions_with_effort')
    return { field: 'tools', isNeeded: hasFunctions && reasoning !== undefined && !isOff }
  if (need === 'functions_unless_effort_none') return { field: 'tools', isNeeded: hasFunctions && !isOff }
  return { field: need, isNeeded: usesField(need, request) }
}

function modelLacks(entry: ModelEntry, need: string): boolean {
  return lackedFields(entry).includes(need === 'tools' ? functions : need)
}

/** Checks whether a field of an API's requests is always dropped at an endpoint: `web_search`, `parts.image`, `parts.file_id`. */
export function lacksField({ chat, sameAs }: Pick<Provider, 'chat' | 'sameAs'>, field: string, api: Api): boolean {
  if (!chat) return false
  if (isDeclared(chat, field)) return true
  if (sameAs === api) return false
  const { support } = chat.request
  if (field === 'parts.file_id') return !support.named('file_id')
  return field.startsWith('parts.') ? !support.part(field.slice('parts.'.length)) : !support.has(field)
}

/** Checks whether an endpoint has no tool of this kind. */
export function lacksTool({ chat, sameAs }: Pick<Provider, 'chat' | 'sameAs'>, tool: ProviderTool): boolean {
  if (!chat) return false
  return isDeclared(chat, `tools.${tool.kind}`) || (sameAs !== tool.by && !chat.request.support.tool(tool))
}

function isDeclared({ unsupported }: ChatEndpoint, field: string): boolean {
  return unsupported.some(
    (loss) => !loss.when && (loss.field === field || (field === 'tools' && loss.field === functions)),
  )
}

const functions = 'tools.function'
