import { definePlugin, type PluginCall, type PluginRequest } from 'inference-router/plugin'
import { blocksOf, type Chat, hasHints, withHints } from './blocks.ts'
import { chosenBlocks } from './choose.ts'

type Options = { models: string[]; min_characters: number; most: number; ttl?: '5m' | '1h'; unasked: boolean }

export default definePlugin<Options>({
  description: 'Asks providers to cache the parts of a prompt that stay the same from call to call',
  options: {
    properties: {
      models: { type: 'array', items: { type: 'string', minLength: 1 }, default: ['*claude*'] },
      min_characters: { type: 'integer', minimum: 1, default: 5_000 },
      most: { type: 'integer', minimum: 1, maximum: 4, default: 4 },
      ttl: { enum: ['5m', '1h'] },
      unasked: { type: 'boolean', default: true },
    },
  },
  setup({ models, min_characters, most, ttl, unasked }) {
    const patterns = models.map(patternOf)
    const hint = ttl === undefined ? {} : { ttl }
    return {
      request(request: PluginRequest, { body, operation }: PluginCall) {
        if (!('chat' in request) || operation !== 'chat') return undefined
        const { chat } = request
        const wish = wishOf(body)
        if (!(wish ?? unasked) || hasOwn(chat, body) || !patterns.some((pattern) => pattern.test(chat.model)))
          return undefined
        // The router has the whole prompt cached for those who wish: that is one more.
        const left = most - (wish === true ? 1 : 0)
        const chosen = chosenBlocks(blocksOf(chat), { least: min_characters, most: left })
        return chosen.length === 0 ? undefined : { request: { ...request, chat: withHints(chat, chosen, hint) } }
      },
    }
  },
})

/** A pattern in which `*` is any text. */
function patternOf(text: string): RegExp {
  const parts = text.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 'i')
}

/** What `requesty.auto_cache` says. */
function wishOf({ requesty }: PluginCall['body']): boolean | undefined {
  const wish = (requesty as { auto_cache?: unknown } | null | undefined)?.auto_cache
  return typeof wish === 'boolean' ? wish : undefined
}

/** Whether the client says itself what is cached, or its body has what would be lost if it were written anew. */
function hasOwn(chat: Chat, { cache_control, prompt_cache_options }: PluginCall['body']): boolean {
  return (cache_control ?? prompt_cache_options ?? chat.unread) !== undefined || hasHints(chat)
}
