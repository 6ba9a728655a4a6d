import type { Json, JsonObject } from './json.ts'
import type { CacheHint, CallForm, Part } from './parts.ts'

/** The client APIs by name. */
export type Api = 'chat' | 'responses' | 'messages'

/** One chat request in the neutral form between all client APIs and all provider formats. */
export type NeutralRequest = {
  /** The provider's own model id. */
  model: string
  /** Leading system and developer text, one part per message or block. */
  system?: Part[]
  messages: Message[]
  tools?: Tool[]
  tool_choice?: ToolChoice
  parallel_tool_calls?: boolean
  web_search?: WebSearch
  /** Upper bound of visible and reasoning tokens. */
  max_output_tokens?: number
  temperature?: number
  top_p?: number
  top_k?: number
  seed?: number
  stop?: string[]
  frequency_penalty?: number
  presence_penalty?: number
  logit_bias?: JsonObject
  /** Log probabilities of the chosen tokens, and of this many alternatives. */
  logprobs?: { top?: number }
  n?: number
  response_format?: ResponseFormat
  /** `visible`: the client wants to see it, in whatever form the provider shows it. */
  reasoning?: { effort?: Effort; budget?: number; summary?: string; visible?: true }
  modalities?: string[]
  audio?: JsonObject
  prediction?: JsonObject
  service_tier?: string
  verbosity?: string
  /** Prompt-cache settings for the whole request. */
  cache?: { key?: string; retention?: string; options?: JsonObject }
  user?: string
  safety_identifier?: string
  metadata?: JsonObject
  store?: boolean
  moderation?: JsonObject
  stream?: boolean
  /** Fields that the neutral form does not have, by their wire name. */
  extensions?: JsonObject
  /** Paths of members below the top level that the neutral form does not have: only an edited body keeps them. */
  unread?: readonly string[]
  origin: Origin
}

/** The client's own JSON, edited instead of rebuilt when the provider speaks the same format. */
type Origin = { api: Api; body: JsonObject }

/** One message. `system` is only for instructions in the middle of a conversation. */
export type Message = { role: 'user' | 'assistant' | 'system'; parts: Part[]; name?: string }

/** A tool that the model may use: one that the client runs, or one that a provider runs. */
export type Tool = ClientTool | ProviderTool

/** A tool the client runs. `parameters` is a JSON schema; `format` belongs to custom (free text) tools. */
export type ClientTool = {
  kind: 'function' | 'custom'
  name: string
  description?: string
  parameters?: JsonObject
  strict?: boolean
  format?: JsonObject
  /** The form in which the client gets its calls, where that is not a call of this name. */
  form?: CallForm
  cache?: CacheHint
}

/**
 * A tool that only one client API defines, such as `mcp` or `code_interpreter`. `kind` is its type in that API, `by` the
 * API, and `definition` the client's JSON, unchanged: only a provider of the same API understands it. One that the client
 * runs itself, such as `shell` or `namespace`, is offered to all other providers as `functions`.
 */
export type ProviderTool = {
  kind: string
  by: Api
  definition: JsonObject
  functions?: ClientTool[]
  cache?: CacheHint
}

/** Rule for which tool must, may or must not be called; `allowed` narrows to these names. */
export type ToolChoice =
  | 'auto'
  | 'none'
  | 'required'
  | { name: string }
  | { allowed: string[]; mode: 'auto' | 'required' }
  | ProviderToolChoice

/**
 * A choice that involves a provider tool: `kind` is the choice's type in the API `by`, `definition` the client's JSON. `functions` are
 * those that a choice among functions has in its place.
 */
export type ProviderToolChoice = {
  kind: string
  by: Api
  definition: JsonObject
  functions?: { allowed: string[]; mode: 'auto' | 'required' }
}

/** Checks whether this is a provider tool. `kind` is not enough: an API may name its types as it likes. */
export function isProviderTool(tool: Tool): tool is ProviderTool {
  return 'definition' in tool
}

/** A provider-run web search. */
export type WebSearch = {
  max_uses?: number
  allowed_domains?: string[]
  blocked_domains?: string[]
  user_location?: { city?: string; region?: string; country?: string; timezone?: string }
  context_size?: 'low' | 'medium' | 'high'
}

/** The format of the reply; `schema` is a JSON schema. */
export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json' }
  | { type: 'json_schema'; name: string; description?: string; schema?: JsonObject; strict?: boolean }

/** Reasoning efforts, from none to most. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

/** Forms in which reasoning may be summarized. */
export const summaries = ['auto', 'concise', 'detailed'] as const

/** Amount of reasoning, as a level; a budget gives it in tokens. */
export type Effort = (typeof efforts)[number]

/** Facts about the model that a request goes to; mappings read them as `target`. */
export type TargetFacts = {
  /** Signer whose signatures this provider accepts: `by` of signed parts. Its slug, unless the manifest shares another's. */
  signer: string
  /** The former name of `signer`, for mappings that still read it. */
  maker?: string
  max_output_tokens?: number
  context_window?: number
  /** Neutral fields that the model cannot take, by the flags of its entry. */
  lacks?: readonly string[]
  /** Facts about the model's family that the manifest declares by name pattern. */
  traits: { [name: string]: Json }
}

/**
 * Checks whether a request lets its provider act for the caller, or store something for it: then it is not sent twice where the first one
 * may have been received.
 */
export function letsProviderAct({ tools = [], origin: { body } }: NeutralRequest): boolean {
  if (body.store === true || body.background === true) return true
  if (Array.isArray(body.mcp_servers) && body.mcp_servers.length > 0) return true
  return tools.some((tool) => isProviderTool(tool) && acting.test(tool.kind))
}

/** Tools that a provider runs and that do more than read; those of the client's own machine do not run there. */
const acting = /^(mcp|code_interpreter|code_execution|shell$)/
