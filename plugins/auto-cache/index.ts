import { definePlugin, type PluginCall, type PluginRequest } from 'inference-router/plugin'
import { blocksOf, type Chat, hasHints, withHints } from './blocks.ts'
import { chosenBlocks } from './choose.ts'

type Options = {
  models: string[]
  min_characters: number
  max_breakpoints: number
  ttl?: '5m' | '1h'
  by_default: boolean
}

export default definePlugin<Options>({
  description: 'Asks providers to cache the parts of a prompt that stay the same from call to call',
  options: {
    properties: {
      models: { type: 'array', items: { type: 'string', minLength: 1 }, default: ['*claude*'] },
      min_characters: { type: 'integer', minimum: 1, default: 5_000 },
      max_breakpoints: { type: 'integer', minimum: 1, maximum: 4, default: 4 },
      ttl: { enum: ['5m', '1h'] },
      by_default: { type: 'boolean', default: true },
    },
  },
  renamedOptions: { most: 'max_breakpoints', unasked: 'by_default' },
  setup({ models, min_characters, max_breakpoints, ttl, by_default }) {
    const patterns = models.map(patternOf)
    const hint = ttl === undefined ? {} : { ttl }
    return {
      request(request: PluginRequest, { body, operation }: PluginCall) {
        if (!('chat' in request) || operation !== 'chat') return undefined
        const { chat } = request
        const asked = autoCacheIn(body)
        if (!(asked ?? by_default) || hasOwn(chat, body) || !patterns.some((pattern) => pattern.test(chat.model)))
          return undefined
        // For requests with auto_cache the router has the whole prompt cached: that is one more breakpoint.
        const left = max_breakpoints - (asked === true ? 1 : 0)
        const chosen = chosenBlocks(blocksOf(chat), { least: min_characters, most: left })
        return chosen.length === 0 ? undefined : { request: { ...request, chat: withHints(chat, chosen, hint) } }
      },
    }
  },
})

/** Compiles a pattern in which `*` is any text. */
function patternOf(text: string): RegExp {
  const parts = text.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 'i')
}

/** Reads `requesty.auto_cache`. */
function autoCacheIn({ requesty }: PluginCall['body']): boolean | undefined {
  const value = (requesty as { auto_cache?: unknown } | null | undefined)?.auto_cache
  return typeof value === 'boolean' ? value : undefined
}

/** Checks whether the client itself sets what is cached, or its body has fields that would be lost if it were written anew. */
function hasOwn(chat: Chat, { cache_control, prompt_cache_options }: PluginCall['body']): boolean {
  return (cache_control ?? prompt_cache_options ?? chat.unread) !== undefined || hasHints(chat)
}
