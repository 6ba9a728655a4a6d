import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { isWebSearch } from '../tools.ts'
import { cacheControl, type Known, type KnownMembers, requesty, typeOf, userLocation } from '../unread-members.ts'

const hints: KnownMembers = { cache_control: cacheControl, prompt_cache_breakpoint: 'all' }
const file: KnownMembers = { file_data: 'all', file_url: 'all', file_id: 'all', filename: 'all' }
const address: Known = { members: { url: 'all' } }

const content: Known = {
  kindOf: typeOf,
  kinds: {
    text: { members: { type: 'all', text: 'all', ...hints } },
    image_url: {
      members: { type: 'all', image_url: { members: { url: 'all', detail: 'all' } }, detail: 'all', ...hints },
    },
    input_audio: { members: { type: 'all', input_audio: { members: { data: 'all', format: 'all' } }, ...hints } },
    file: { members: { type: 'all', file: { members: file }, ...hints } },
    input_file: { members: { type: 'all', ...file, ...hints } },
    file_input: { members: { type: 'all', ...file, ...hints } },
    video_url: { members: { type: 'all', video_url: address, ...hints } },
    document_url: { members: { type: 'all', document_url: address, ...hints } },
    refusal: { members: { type: 'all', refusal: 'all' } },
    // `closed` repeats that the reasoning has ended.
    thinking: { members: { type: 'all', thinking: 'all', signature: 'all', closed: 'all' } },
  },
}

/** The name and arguments of a call; the SDKs keep the parsed arguments beside their text. */
const functionCall: Known = { members: { name: 'all', arguments: 'all', parsed_arguments: 'all' } }

const toolCalls: Known = {
  members: {
    id: 'all',
    type: 'all',
    index: 'all',
    function: functionCall,
    custom: { members: { name: 'all', input: 'all' } },
    extra_content: 'all',
    ...hints,
  },
}

const instructions: Known = { members: { role: 'all', content, ...hints } }

const messages: Known = {
  kindOf: ({ role }: JsonObject) => role,
  kinds: {
    system: instructions,
    developer: instructions,
    user: { members: { role: 'all', content, name: 'all', ...hints } },
    assistant: {
      members: {
        role: 'all',
        content,
        name: 'all',
        refusal: 'all',
        audio: 'all',
        images: 'all',
        tool_calls: toolCalls,
        function_call: functionCall,
        reasoning_details: 'all',
        replay_parts: 'all',
        reasoning_content: 'all',
        reasoning: 'all',
        // Members of a reply besides its content mean nothing for the next request.
        annotations: 'all',
        parsed: 'all',
        prefix: 'off',
        ...hints,
      },
    },
    // A result belongs to its call by the id, and has the call's name.
    tool: { members: { role: 'all', content, tool_call_id: 'all', name: 'all', ...hints } },
    function: { members: { role: 'all', content, name: 'all' } },
  },
}

const functionDefinition: Known = {
  members: { name: 'all', description: 'all', parameters: 'all', strict: 'all' },
}

const searchOptions: KnownMembers = { search_context_size: 'all', user_location: userLocation }
const searchMembers: KnownMembers = {
  ...searchOptions,
  max_uses: 'all',
  allowed_domains: 'all',
  blocked_domains: 'all',
  excluded_domains: 'all',
  filters: { members: { allowed_domains: 'all', blocked_domains: 'all' } },
}

const tools: Known = {
  kindOf: kindOfTool,
  kinds: {
    function: { members: { type: 'all', function: functionDefinition, ...hints } },
    custom: {
      members: {
        type: 'all',
        custom: { members: { name: 'all', description: 'all', format: 'all' } },
        ...hints,
      },
    },
    web_search: {
      as: 'web_search',
      members: { type: 'all', name: 'all', ...searchMembers, parameters: { members: searchMembers } },
    },
  },
}

function kindOfTool({ type, function: called }: JsonObject): Json | undefined {
  if (isWebSearch(type)) return 'web_search'
  return type ?? (isObject(called) ? 'function' : undefined)
}

const named: Known = { members: { name: 'all' } }
const pointer: Known = { members: { type: 'all', name: 'all', function: named, custom: named } }

/** The members below the top level that `readRequest` understands. */
export const knownMembers: KnownMembers = {
  messages,
  tools,
  functions: functionDefinition,
  web_search_options: { members: searchOptions },
  tool_choice: {
    kindOf: typeOf,
    kinds: {
      function: pointer,
      custom: pointer,
      allowed_tools: {
        members: { type: 'all', allowed_tools: { members: { mode: 'all', tools: pointer } } },
      },
    },
  },
  function_call: named,
  response_format: {
    kindOf: typeOf,
    kinds: {
      text: { members: { type: 'all' } },
      json_object: { members: { type: 'all' } },
      json_schema: {
        members: {
          type: 'all',
          json_schema: { members: { name: 'all', description: 'all', schema: 'all', strict: 'all' } },
        },
      },
    },
  },
  thinking: { members: { type: 'all', budget_tokens: 'all' } },
  stream_options: { members: { include_usage: 'all', include_obfuscation: 'all' } },
  usage: { members: { include: 'all' } },
  requesty,
}
