import type { Json, JsonObject } from '../../core/json.ts'
import { isWebSearch } from '../tools.ts'
import { type Known, type KnownMembers, requesty, typeOf, userLocation } from '../unread-members.ts'

const type = 'all'
const prompt_cache_breakpoint = 'all'

const inputText: Known = { members: { type, text: 'all', prompt_cache_breakpoint } }
const refusal: Known = { members: { type, refusal: 'all', text: 'all' } }

const content: Known = {
  kindOf: typeOf,
  kinds: {
    input_text: inputText,
    text: inputText,
    summary_text: inputText,
    reasoning_text: inputText,
    // The SDKs keep the parsed text beside it.
    output_text: { members: { type, text: 'all', annotations: 'all', logprobs: 'all', parsed: 'all' } },
    refusal,
    output_refusal: refusal,
    input_image: { members: { type, detail: 'all', file_id: 'all', image_url: 'all', prompt_cache_breakpoint } },
    input_file: {
      members: {
        type,
        detail: 'all',
        filename: 'all',
        file_data: 'all',
        file_url: 'all',
        file_id: 'all',
        prompt_cache_breakpoint,
      },
    },
    input_audio: { members: { type, input_audio: { members: { data: 'all', format: 'all' } } } },
  },
}

/** The members of every item. Members of a reply besides its content mean nothing for the next request. */
const item: KnownMembers = { type, id: 'all', status: 'all', phase: 'all', caller: 'all' }

/** Calls by the model itself are the default. */
const allowed_callers: Known = { texts: new Set(['direct']) }
const output: Known = { members: { ...item, call_id: 'all', name: 'all', namespace: 'all', output: content } }

const input: Known = {
  kindOf: ({ type: given }: JsonObject) => given ?? 'message',
  kinds: {
    message: { members: { ...item, role: 'all', content } },
    function_call: {
      members: { ...item, call_id: 'all', name: 'all', namespace: 'all', arguments: 'all', parsed_arguments: 'all' },
    },
    custom_tool_call: { members: { ...item, call_id: 'all', name: 'all', namespace: 'all', input: 'all' } },
    function_call_output: output,
    custom_tool_call_output: output,
    reasoning: { members: { ...item, summary: 'all', content: 'all', encrypted_content: 'all' } },
    web_search_call: { members: { ...item, action: 'all' } },
  },
}

const tools: Known = {
  kindOf: ({ type: given }: JsonObject): Json | undefined => (isWebSearch(given) ? 'web_search' : given),
  kinds: {
    function: {
      members: {
        type,
        name: 'all',
        description: 'all',
        parameters: 'all',
        strict: 'all',
        format: 'all',
        defer_loading: 'off',
        allowed_callers,
      },
    },
    custom: {
      members: { type, name: 'all', description: 'all', format: 'all', defer_loading: 'off', allowed_callers },
    },
    web_search: {
      as: 'web_search',
      members: {
        type,
        filters: { members: { allowed_domains: 'all', blocked_domains: 'all' } },
        user_location: userLocation,
        search_context_size: 'all',
      },
    },
  },
}

const named: Known = { members: { type, name: 'all', namespace: 'all' } }

/** The members below the top level that `readRequest` understands. */
export const knownMembers: KnownMembers = {
  input,
  tools,
  tool_choice: {
    kindOf: typeOf,
    kinds: { function: named, custom: named, allowed_tools: { members: { type, mode: 'all', tools: 'all' } } },
  },
  text: {
    members: {
      verbosity: 'all',
      format: {
        kindOf: typeOf,
        kinds: {
          text: { members: { type } },
          json_object: { members: { type } },
          json_schema: { members: { type, name: 'all', description: 'all', schema: 'all', strict: 'all' } },
        },
      },
    },
  },
  reasoning: { members: { effort: 'all', summary: 'all', generate_summary: 'all' } },
  stream_options: { members: { include_obfuscation: 'all' } },
  // The router itself adds the sources of searches and the encrypted reasoning to a reply.
  include: {
    texts: new Set(['message.output_text.logprobs', 'reasoning.encrypted_content', 'web_search_call.action.sources']),
  },
  requesty,
}
