import { RouterError } from '../../core/errors.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import { isProviderTool, type NeutralRequest, type Tool, type ToolChoice } from '../../core/request.ts'
import { nearestEffort } from '../../mapping/functions/reasoning-effort.ts'
import type { ChoiceForm, FamilyRules, Limits, NumberLimit, TextLimit } from '../limits.ts'
import { areAlike, isPaired } from './compare-history.ts'
import { type ClientNames, digest, fits, shortName, withShortNames } from './fit-names.ts'
import { canBeStrict, fitSchema, type Headroom, maxInlined, type SchemaLimit } from './fit-schema.ts'
import { type Excess, mediaExcess } from './media-limits.ts'
import { repairHistory } from './repair-history.ts'

/** A field of the neutral request. */
export type Field = keyof NeutralRequest

/**
 * A request within the limits of a provider: the fields that were changed for that, the neutral names of what was lost by it, and the
 * client's names of the tools that have others at the provider.
 */
export type Fitting = {
  request: NeutralRequest
  changed: ReadonlySet<Field>
  lost: readonly string[]
  names: ClientNames
}

/** Rules that a request is fitted to; `edited` where the client's own JSON is sent, with the changed fields alone written anew. */
export type FitTo = { rules: FamilyRules; traits: { [name: string]: Json }; edited: boolean }

/** Fits a request to the limits of a provider, the same ones for edited and translated bodies. Throws RouterError. */
export function fitRequest(request: NeutralRequest, { rules, traits, edited }: FitTo): Fitting {
  const { limits } = rules
  refuseExcess(request, limits)
  const fit = new Fit(request)
  fitTools(fit, limits)
  fitDescriptions(fit, limits)
  fitTexts(fit, limits)
  fitLists(fit, limits)
  fitNumbers(fit, limits)
  fitChoice(fit, limits)
  fitReasoning(fit, traits, edited)
  if (edited && request.origin.api === 'messages') fitFamily(fit, traits)
  const names = fitNames(fit, limits)
  fitHistory(fit, rules, { traits, edited })
  return { request: fit.request, changed: fit.changed, lost: fit.lost, names }
}

const noNames: ClientNames = new Map()

/** A request on the way to its limits. The client's own is never changed. */
class Fit {
  request: NeutralRequest
  readonly changed = new Set<Field>()
  readonly lost: string[] = []

  constructor(request: NeutralRequest) {
    this.request = request
  }

  /** Replaces a field, or removes it; `lost` are the names to report. */
  put<Name extends Field>(name: Name, value: NeutralRequest[Name] | undefined, ...lost: string[]): void {
    const { [name]: _before, ...others } = this.request
    this.request = (value === undefined ? others : { ...others, [name]: value }) as NeutralRequest
    this.changed.add(name)
    this.lost.push(...lost)
  }
}

/** Returns what a request has more of than a provider takes; undefined where there is nothing. */
export function excessOf(request: NeutralRequest, limits: Limits): Excess | undefined {
  const { tools } = limits
  const count = request.tools?.length ?? 0
  if (tools && count > tools.count)
    return { field: 'tools', reason: `takes at most ${tools.count} tools, not ${count}` }
  return mediaExcess(request, limits)
}

function refuseExcess(request: NeutralRequest, limits: Limits): void {
  const excess = excessOf(request, limits)
  if (!excess) return
  const { field, reason, isKind } = excess
  const message = `The provider of '${request.model}' ${reason}.`
  if (field === 'tools') throw new RouterError('invalid_request', message, { param: 'tools' })
  const kind = field === 'parts.file' ? 'document' : 'image'
  throw new RouterError('invalid_request', message, { param: 'messages', rejected: isKind ? kind : 'media_size' })
}

const plainTexts = ['user', 'safety_identifier'] as const

function fitTexts(fit: Fit, limits: Limits): void {
  const { cache, response_format } = fit.request
  for (const name of plainTexts) {
    const { [name]: text } = fit.request
    const limit = limits[name]
    if (text === undefined || !limit || fits(text, limit)) continue
    if (limit.drop) fit.put(name, undefined, name)
    else fit.put(name, digest(text, limit))
  }
  const { cache_key, schema_name } = limits
  if (cache_key && cache?.key !== undefined && !fits(cache.key, cache_key)) fit.put('cache', withKey(cache, cache_key))
  if (schema_name && response_format?.type === 'json_schema' && !fits(response_format.name, schema_name))
    fit.put('response_format', { ...response_format, name: shortName(response_format.name, schema_name) })
}

function withKey({ key = '', ...others }: NonNullable<NeutralRequest['cache']>, limit: TextLimit) {
  return limit.drop ? others : { ...others, key: digest(key, limit) }
}

function fitLists(fit: Fit, { stop, metadata }: Limits): void {
  const { stop: texts, metadata: entries } = fit.request
  if (stop && texts) {
    const { count = texts.length, max = Number.POSITIVE_INFINITY } = stop
    const left = texts.filter((text) => text.length <= max).slice(0, count)
    if (left.length < texts.length) fit.put('stop', left.length > 0 ? left : undefined, 'stop')
  }
  if (metadata && entries) {
    const { count = Infinity, key = Infinity, value: most = Infinity } = metadata
    const isTaken = ([name, value]: [string, Json | undefined]) => name.length <= key && String(value).length <= most
    const left = Object.entries(entries).filter(isTaken).slice(0, count)
    if (left.length < Object.keys(entries).length) fit.put('metadata', Object.fromEntries(left), 'metadata')
  }
}

const plainNumbers = [
  ...(['temperature', 'top_p', 'top_k', 'frequency_penalty', 'presence_penalty', 'seed', 'n'] as const),
  'max_output_tokens',
] as const

function fitNumbers(fit: Fit, limits: Limits): void {
  const { request } = fit
  for (const name of plainNumbers) {
    const number = request[name]
    const limit = limits[name]
    if (number === undefined || !limit) continue
    const nearest = within(number, limit)
    if (nearest !== number) fit.put(name, nearest, name)
  }
  const { reasoning, logprobs } = request
  if (limits.reasoning_budget && reasoning?.budget !== undefined && reasoning.budget > 0) {
    const budget = within(reasoning.budget, limits.reasoning_budget)
    if (budget !== reasoning.budget) fit.put('reasoning', withBudget(reasoning, budget), 'reasoning.budget')
  }
  if (limits.top_logprobs && logprobs?.top !== undefined) {
    const most = within(logprobs.top, limits.top_logprobs)
    if (most !== logprobs.top) fit.put('logprobs', most === undefined ? {} : { top: most }, 'logprobs.top')
  }
}

function withBudget(reasoning: NonNullable<NeutralRequest['reasoning']>, budget: number | undefined) {
  const { budget: _before, ...others } = reasoning
  return budget === undefined ? others : { ...others, budget }
}

/** The nearest number that is taken; none where one outside is dropped. */
function within(number: number, { min = -Infinity, max = Infinity, drop }: NumberLimit): number | undefined {
  if (number >= min && number <= max) return number
  return drop ? undefined : Math.min(Math.max(number, min), max)
}

function fitChoice(fit: Fit, { tool_choice: taken, tool_choice_thinking }: Limits): void {
  const { tool_choice: choice, tools = [] } = fit.request
  if (choice === undefined || choice === 'auto') return
  const forms = thinks(fit.request) && tool_choice_thinking ? tool_choice_thinking : taken
  if (!forms) return
  const form = formOf(choice)
  if (form === undefined || forms.includes(form)) return
  // One tool that must be called is any tool that must be called.
  const isOnly = form === 'named' && tools.length === 1 && forms.includes('required')
  fit.put(
    'tool_choice',
    isOnly ? 'required' : forms.includes('auto') ? 'auto' : undefined,
    ...(isOnly ? [] : ['tool_choice']),
  )
}

function formOf(choice: ToolChoice): ChoiceForm | undefined {
  if (typeof choice === 'string') return choice
  if ('definition' in choice) return undefined
  return 'name' in choice ? 'named' : choice.mode
}

function fitTools(fit: Fit, { tool_schema, answer_schema, strict_tools }: Limits): void {
  const { tools, response_format: format } = fit.request
  const headroom = { left: maxInlined }
  const areTooStrict = strict_tools && tools && tools.filter(isStrict).length > strict_tools.count
  if (tools && (tool_schema || areTooStrict)) {
    const limit = areTooStrict ? { ...tool_schema, strict: false as const } : (tool_schema ?? {})
    const each = tools.map((tool) => fittedTool(tool, limit, headroom))
    const fitted = uniform(each, limit)
    if (fitted.some(({ tool }, index) => tool !== tools[index])) {
      const lost = new Set(fitted.flatMap((one) => one.lost))
      fit.put(
        'tools',
        fitted.map(({ tool }) => tool),
        ...lost,
      )
    }
  }
  if (answer_schema && format?.type === 'json_schema' && format.schema) {
    const { schema, lost } = fitSchema(format.schema, answer_schema, headroom)
    const isLoose = format.strict === true && !canBeStrict(schema, answer_schema)
    if (schema === format.schema && !isLoose) return
    const names = [...(lost ? ['response_format.schema'] : []), ...(isLoose ? ['response_format.strict'] : [])]
    fit.put('response_format', { ...format, schema, ...(isLoose && { strict: false }) }, ...names)
  }
}

/** Cuts descriptions of tools that are too long. */
function fitDescriptions(fit: Fit, { tool_description: limit }: Limits): void {
  const { tools } = fit.request
  const { max = Infinity } = limit ?? {}
  const cut = (tool: Tool): Tool => {
    const { description = '' } = isProviderTool(tool) ? {} : tool
    return description.length > max ? ({ ...tool, description: shortText(description, max) } as Tool) : tool
  }
  const fitted = tools?.map(cut)
  if (fitted?.some((tool, index) => tool !== tools?.[index])) fit.put('tools', fitted, 'tools.description')
}

/** Returns the beginning of a text, which does not end within a character. */
function shortText(text: string, length: number): string {
  return `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

type FittedTool = { tool: Tool; lost: string[] }

const noParameters: JsonObject = { type: 'object', properties: {} }

function fittedTool(tool: Tool, limit: SchemaLimit, headroom: Headroom): FittedTool {
  if (isProviderTool(tool) || tool.kind !== 'function') return { tool, lost: [] }
  if (!tool.parameters) return { tool: limit.always ? { ...tool, parameters: noParameters } : tool, lost: [] }
  const { schema, lost } = fitSchema(tool.parameters as JsonObject, limit, headroom)
  const isLoose = tool.strict === true && !canBeStrict(schema, limit)
  if (schema === tool.parameters && !isLoose) return { tool, lost: [] }
  const names = [...(lost ? ['tools.parameters'] : []), ...(isLoose ? ['tools.strict'] : [])]
  return { tool: { ...tool, parameters: schema, ...(isLoose && { strict: false }) }, lost: names }
}

/** Tools that are all strict or all loose, where a provider takes no others. */
function uniform(fitted: FittedTool[], { strict }: SchemaLimit): FittedTool[] {
  const mustAgree = typeof strict === 'object' && strict.uniform === true
  if (!mustAgree) return fitted
  const strictOnes = fitted.filter(({ tool }) => isStrict(tool)).length
  if (strictOnes === 0 || strictOnes === fitted.length) return fitted
  return fitted.map((one) => {
    if (!isStrict(one.tool)) return one
    return { tool: { ...one.tool, strict: false } as Tool, lost: [...one.lost, 'tools.strict'] }
  })
}

function isStrict(tool: Tool): boolean {
  return !isProviderTool(tool) && tool.strict === true
}

/** The effort becomes the nearest one that the model takes; an edited body says it in the form that the family takes. */
function fitReasoning(fit: Fit, traits: FitTo['traits'], edited: boolean): void {
  const { reasoning } = fit.request
  if (!reasoning) return
  const { effort } = reasoning
  const levels = Array.isArray(traits.efforts) ? traits.efforts : []
  // Without reasoning nothing is asked for; the Messages API has a switch for it besides the effort.
  const isSwitch = effort === 'none' && (!edited || fit.request.origin.api === 'messages')
  if (effort !== undefined && levels.length > 0 && !isSwitch) {
    const nearest = nearestEffort(effort, levels) as typeof effort
    if (nearest !== effort) {
      // `default` is any effort where a model knows no levels.
      const isSame = effort === 'none' || String(nearest) === 'default'
      const lost = isSame ? [] : ['reasoning.effort']
      fit.put('reasoning', { ...reasoning, effort: nearest }, ...lost)
      return
    }
  }
  const isForced = thinks(fit.request) && traits.thinking === 'budget' && isDemanded(fit.request.tool_choice)
  if (edited && (isForced || !isInForm(reasoning, traits))) fit.put('reasoning', { ...reasoning })
}

function thinks({ reasoning }: NeutralRequest): boolean {
  return reasoning !== undefined && reasoning.effort !== 'none' && reasoning.budget !== 0
}

function isDemanded(choice: ToolChoice | undefined): boolean {
  const form = choice === undefined ? 'auto' : formOf(choice)
  return form === 'required' || form === 'named'
}

/** The smallest share of the probability that Claude takes while it thinks. */
const leastWhileThinking = 0.95

/**
 * Removes sampling settings and forced tool choices that a Claude family refuses from edited Messages bodies; translated ones get this
 * from their mapping. 1 is the default of `temperature` and `top_p`.
 */
function fitFamily(fit: Fit, { sampling, forced_tools }: FitTo['traits']): void {
  const { temperature, top_p, top_k, tool_choice } = fit.request
  if (forced_tools === false && isDemanded(tool_choice)) fit.put('tool_choice', 'auto', 'tool_choice')
  if (sampling === undefined) return
  const isOff = sampling === 'none'
  const isFixed = isOff || thinks(fit.request)
  if (temperature !== undefined && temperature !== 1 && isFixed) fit.put('temperature', undefined, 'temperature')
  if (top_k !== undefined && isFixed) fit.put('top_k', undefined, 'top_k')
  const isSecond = sampling === 'one' && fit.request.temperature !== undefined
  const least = isOff ? 1 : isFixed ? leastWhileThinking : 0
  if (top_p !== undefined && top_p !== 1 && (isSecond || top_p < least)) fit.put('top_p', undefined, 'top_p')
}

/** Checks whether a model takes the form in which reasoning is asked for. Families without traits take any. */
function isInForm(
  { effort, budget }: NonNullable<NeutralRequest['reasoning']>,
  { thinking, thinking_off, efforts }: FitTo['traits'],
): boolean {
  if (thinking === undefined) return true
  const isOff = effort === 'none' || budget === 0
  if (isOff) return thinking_off === undefined || thinking_off === 'disabled'
  if (thinking === 'none') return false
  if (thinking === 'adaptive') return budget === undefined
  return budget !== undefined && (effort === undefined || (Array.isArray(efforts) && efforts.length > 0))
}

function fitNames(fit: Fit, { tool_name }: Limits): ClientNames {
  const renamed = tool_name && withShortNames(fit.request, tool_name)
  if (!renamed) return noNames
  const { request, names } = renamed
  for (const field of ['messages', 'tools', 'tool_choice'] as const)
    if (request[field] !== fit.request[field]) fit.put(field, request[field])
  return names
}

function fitHistory(fit: Fit, { history, editedHistory }: FamilyRules, { traits, edited }: Omit<FitTo, 'rules'>): void {
  const { request } = fit
  if (!edited) {
    fit.request = repairHistory(request, history)
    return
  }
  // What an earlier response holds is not in the body: calls and results need not pair in it.
  const continues = (request.origin.body.previous_response_id ?? request.origin.body.conversation ?? null) !== null
  const hasPairs = continues || isPaired(request.messages)
  const rules = hasPairs ? { ...editedHistory, pair_tools: false, results_first: false } : editedHistory
  const { messages, system, tools } = repairHistory(request, rules)
  if (tools !== request.tools) fit.put('tools', tools)
  const isMerged = rules.alternate === true && messages.length !== request.messages.length
  if (isMerged || !areAlike(request.messages, messages)) fit.put('messages', messages)
  const isSplit = rules.mid_system === 'head' && (request.system?.length ?? 0) > 1
  if (system !== request.system || isSplit) fit.put('system', system)
  if (traits.prefill === false && messages.at(-1)?.role === 'assistant') fit.put('messages', messages)
}
