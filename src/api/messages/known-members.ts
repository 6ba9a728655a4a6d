import type { Json, JsonObject } from '../../core/json.ts'
import { isWebSearch } from '../tools.ts'
import { cacheControl, type Known, type KnownMembers, requesty, typeOf, userLocation } from '../unread-members.ts'

const type = 'all'
const cache_control = cacheControl

/** Calls by the model itself are the default. */
const allowed_callers: Known = { texts: new Set(['direct']) }

/** Citations of a document are asked for; those of a text are part of a reply. */
const citations: Known = { members: { enabled: 'off' } }

const source: KnownMembers = { type, data: 'all', media_type: 'all', url: 'all', file_id: 'all' }

const documentSource: Known = {
  members: {
    ...source,
    get content() {
      return content
    },
  },
}

const content: Known = {
  kindOf: typeOf,
  kinds: {
    text: { members: { type, text: 'all', citations: 'all', cache_control } },
    image: { members: { type, source: { members: source }, cache_control } },
    document: {
      members: { type, source: documentSource, title: 'all', context: 'all', citations, cache_control },
    },
    search_result: {
      members: {
        type,
        source: 'all',
        title: 'all',
        content: { members: { type, text: 'all', citations: 'all' } },
        citations,
        cache_control,
      },
    },
    tool_reference: { members: { type, tool_name: 'all', cache_control } },
    browser_state: { members: { type, tabs: 'all', state_changes: 'all', cache_control } },
    tool_use: {
      members: { type, id: 'all', name: 'all', toolset_name: 'all', input: 'all', caller: 'all', cache_control },
    },
    tool_result: {
      members: {
        type,
        tool_use_id: 'all',
        get content() {
          return content
        },
        is_error: 'all',
        cache_control,
      },
    },
    thinking: { members: { type, thinking: 'all', signature: 'all' } },
    redacted_thinking: { members: { type, data: 'all' } },
    server_tool_use: { members: { type, id: 'all', name: 'all', input: 'all', caller: 'all' } },
    web_search_tool_result: { members: { type, tool_use_id: 'all', content: 'all', caller: 'all' } },
  },
}

const tools: Known = {
  kindOf: kindOfTool,
  kinds: {
    custom: {
      members: {
        type,
        name: 'all',
        description: 'all',
        input_schema: 'all',
        strict: 'all',
        cache_control,
        defer_loading: 'off',
        allowed_callers,
        eager_input_streaming: 'off',
      },
    },
    web_search: {
      as: 'web_search',
      members: {
        type,
        name: 'all',
        max_uses: 'all',
        allowed_domains: 'all',
        blocked_domains: 'all',
        user_location: userLocation,
        defer_loading: 'off',
        allowed_callers,
      },
    },
  },
}

function kindOfTool({ type: given }: JsonObject): Json {
  return isWebSearch(given) ? 'web_search' : (given ?? 'custom')
}

const format: Known = { members: { type, schema: 'all' } }

/** The members below the top level that `readRequest` understands. */
export const knownMembers: KnownMembers = {
  system: content,
  messages: { members: { role: 'all', content } },
  tools,
  tool_choice: {
    kindOf: typeOf,
    kinds: {
      auto: { members: { type, disable_parallel_tool_use: 'all' } },
      any: { members: { type, disable_parallel_tool_use: 'all' } },
      none: { members: { type, disable_parallel_tool_use: 'all' } },
      tool: { members: { type, name: 'all', disable_parallel_tool_use: 'all' } },
    },
  },
  thinking: { members: { type, budget_tokens: 'all', display: 'all' } },
  // Its other members are extensions.
  output_config: { members: { format }, open: true },
  output_format: format,
  metadata: { members: { user_id: 'all' } },
  requesty,
}
