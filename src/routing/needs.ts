import type { ModelEntry } from '../core/models/model.ts'
import { type Api, isProviderTool, type NeutralRequest, type ProviderTool } from '../core/request.ts'
import { withTextFiles } from '../core/text-files.ts'
import { withFunctions } from '../manifest/run/client-functions.ts'
import { excessOf } from '../manifest/run/fit-request.ts'
import { inferredUnsupported, supportFor } from '../manifest/run/inferred-support.ts'
import { withTextsFor } from '../manifest/run/translate.ts'
import { demanding, distinctNames, stillUsed, usesField } from '../manifest/run/unsupported.ts'
import { lacksField, lacksTool } from '../manifest/run/variant-needs.ts'
import { familyRules, type Target } from '../manifest/target.ts'

/** Ability that a target must have for a request. */
export type Need = {
  /** The neutral field that needs it. */
  field: string
  /** The flag of catalog entries that says it. */
  flag?: Flag
  /** Description of what a target that cannot do it lacks: `takes no images`. */
  lack: string
  /** True where the answer would be about something else; otherwise a target is asked anyway where none can do it. */
  isCertain: boolean
  /** Checks whether a target is known to be unable. */
  isLacked(target: Target): boolean
}

type Flag = keyof ModelEntry & `supports_${string}`

/** Lists the needs that a conversation has of its targets. */
export function needsOf(request: NeutralRequest): Need[] {
  const { tools = [], web_search, response_format: format, reasoning } = request
  const { api } = request.origin
  const needs = [...mediaNeeds(request), countNeed(request)]
  if (tools.some((tool) => !isProviderTool(tool))) {
    needs.push(flagged('tools', 'supports_tool_calling', { lack: 'does not support tools', api }))
  }
  for (const tool of tools.filter(isProviderTool)) needs.push(providerToolNeed(tool))
  if (web_search) {
    // Agents offer it with every call.
    needs.push({
      ...flagged('web_search', 'supports_web_search', { lack: 'does not support web search', api }),
      isCertain: false,
    })
  }
  if (format && format.type !== 'text') needs.push(formatNeed(format.type, api))
  if (reasoning && demanding(['reasoning'], request).length > 0) {
    // Without it the answer is a shorter one, which is reported.
    const flag = 'supports_reasoning'
    needs.push({
      field: 'reasoning',
      flag,
      lack: 'does not support reasoning',
      isCertain: false,
      isLacked: () => false,
    })
  }
  return needs
}

function mediaNeeds(request: NeutralRequest): Need[] {
  const { api } = request.origin
  const needs: Need[] = []
  for (const [type, lack] of mediaTypes) {
    const field = `parts.${type}`
    // Files of text are text where no files are taken.
    if (!usesField(field, type === 'file' ? withTextFiles(request, 'all') : request)) continue
    const flag = type === 'image' ? { flag: 'supports_vision' as const } : {}
    const isLacked = ({ provider, entry }: Target) =>
      (flag.flag !== undefined && entry?.[flag.flag] === false) || lacksField(provider, field, api)
    needs.push({ field, ...flag, lack, isCertain: true, isLacked })
  }
  if (needs.length > 0 && usesField('parts.file_id', request)) {
    const isLacked = ({ provider }: Target) => lacksField(provider, 'parts.file_id', api)
    needs.push({ field: 'parts.file_id', lack: 'does not support files by id', isCertain: true, isLacked })
  }
  return needs
}

const mediaTypes = [
  ['image', 'does not support images'],
  ['audio', 'does not support audio'],
  ['file', 'does not support files'],
  ['video', 'does not support videos'],
] as const

function flagged(field: keyof NeutralRequest, flag: Flag, { lack, api }: { lack: string; api: Api }): Need {
  const isLacked = ({ provider, entry }: Target) => entry?.[flag] === false || lacksField(provider, field, api)
  return { field, flag, lack, isCertain: true, isLacked }
}

function providerToolNeed(tool: ProviderTool): Need {
  const { kind } = tool
  const field = `tools.${kind}`
  const flag = kind.startsWith('computer') ? { flag: 'supports_computer_use' as const } : {}
  const isLacked = ({ provider, entry }: Target) =>
    (flag.flag !== undefined && entry?.[flag.flag] === false) ||
    (lacksTool(provider, tool) && (!tool.functions || lacksField(provider, 'tools', tool.by)))
  return {
    field,
    ...flag,
    lack: `does not support the tool '${kind.slice(0, maxKindLength)}'`,
    isCertain: false,
    isLacked,
  }
}

/** Characters. */
const maxKindLength = 100

function formatNeed(type: 'json' | 'json_schema', api: Api): Need {
  const flag = type === 'json' ? 'supports_output_json_object' : 'supports_output_json_schema'
  const lack = type === 'json' ? 'is not known to support JSON output' : 'is not known to support JSON schemas'
  return { ...flagged('response_format', flag, { lack, api }), isCertain: false }
}

/** Returns a prompt of about so many tokens. */
export function contextNeed(tokens: number): Need {
  return {
    field: 'messages',
    lack: `has too small a context window for about ${tokens} tokens`,
    isCertain: false,
    isLacked: ({ entry }) => entry?.context_window !== undefined && entry.context_window < tokens,
  }
}

/** Returns the need that nothing is dropped, as far as that is known before a body is made. */
export function nothingDroppedNeed(request: NeutralRequest): Need {
  return {
    field: '',
    lack: 'does not support all fields of the request',
    isCertain: false,
    isLacked: (target) => {
      const { chat, sameAs } = target.provider
      if (!chat) return false
      const texts = withTextsFor(target, request)
      const declared = chat.unsupported.filter(({ field, when }) => !when && usesField(field, texts))
      const names = declared.map(({ field }) => field)
      const support = supportFor(chat.request.support, names, sameAs)
      const offered = withFunctions(texts, support)
      const inferred = sameAs === request.origin.api ? [] : inferredUnsupported(offered, support)
      return demanding(distinctNames([...stillUsed(names, offered), ...inferred]), offered).length > 0
    },
  }
}

/** Returns the need that a target takes as many tools and images as a request has. */
export function countNeed(request: NeutralRequest): Need {
  const excess = (target: Target) => excessOf(request, familyRules(target.provider, target).limits)
  return {
    field: request.tools && request.tools.length > 1 ? 'tools' : 'messages',
    lack: 'takes fewer tools or images',
    isCertain: true,
    isLacked: (target) => excess(target) !== undefined,
  }
}

/** Checks whether the catalog states that a target can do all of this, and nothing else states that it cannot. */
export function declaresAll(target: Target, needs: readonly Need[]): boolean {
  return needs.every(
    (need) => !need.isLacked(target) && (need.flag === undefined || target.entry?.[need.flag] === true),
  )
}
