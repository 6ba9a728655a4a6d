import { definePlugin, type PluginCall, type PluginRequest, Refusal, type RequestResult } from 'inference-router/plugin'
import { ChangedCompletion } from '../lib/changed-completion.ts'
import { changedReply, type TextChanges } from '../lib/changed-reply.ts'
import { ChangedStream } from '../lib/changed-stream.ts'
import { loadScanner } from '../lib/secret-rules.ts'
import { mapRequest, paramOf, unreadIn } from '../lib/texts.ts'
import { type Find, finder, type Kind, kinds } from './find.ts'
import { MaskedTexts } from './masked-texts.ts'
import type { OwnPattern } from './own-patterns.ts'
import { Restorer } from './restore.ts'

type Options = { kinds: Kind[]; patterns: OwnPattern[]; one_way: boolean; unreadable: 'pass' | 'refuse' }

/** State of a call. */
type State = { restorers?: TextChanges; stream?: ChangedStream; completion?: ChangedCompletion }

export default definePlugin<Options>({
  description: 'Replaces personal data with placeholders for providers, and restores it in their answers',
  // Rather no answer than data that goes out as it is.
  onError: 'closed',
  options: {
    properties: {
      kinds: { type: 'array', items: { enum: [...kinds] }, uniqueItems: true, default: [...kinds] },
      patterns: {
        type: 'array',
        default: [],
        items: {
          type: 'object',
          additionalProperties: false,
          required: ['name', 'pattern'],
          properties: {
            name: { type: 'string', pattern: '^[A-Z][A-Z0-9_]{0,30}$' },
            pattern: { type: 'string', minLength: 1, maxLength: 1000 },
            ignore_case: { type: 'boolean' },
          },
        },
      },
      one_way: { type: 'boolean', default: false },
      unreadable: { enum: ['pass', 'refuse'], default: 'pass' },
    },
  },
  async setup({ kinds, patterns, one_way, unreadable }, kit) {
    const find = finder(kinds, patterns, await loadScanner())
    return {
      request(request, call) {
        const unread = unreadIn(request)
        if (unread.length > 0 && unreadable === 'refuse')
          throw new Refusal(400, refusalOf(unread), { param: paramOf(request) })
        if (unread.length > 0) kit.log.info({ call: call.id, unread }, 'sends parts that were not read')
        return masked(request, call, { find, isOneWay: one_way })
      },
      ...(!one_way && {
        event(event, { state, operation }: PluginCall & { state: State }) {
          if (!state.restorers) return undefined
          if (operation !== 'chat') {
            state.completion ??= new ChangedCompletion(state.restorers.text)
            return state.completion.take(event)
          }
          state.stream ??= new ChangedStream(state.restorers)
          return 'json' in event ? undefined : state.stream.take(event)
        },
        reply: (reply, { state, stream }: PluginCall & { state: State }) =>
          state.restorers && !stream ? changedReply(reply, state.restorers) : undefined,
      }),
    }
  },
})

function refusalOf(unread: readonly string[]): string {
  return `The request has parts in which personal data cannot be found (${unread.join(', ')}). Send them as text.`
}

/** Returns the request with placeholders; nothing where it has no such data, so that it is asked as the client wrote it. */
function masked(
  request: PluginRequest,
  { state }: PluginCall & { state: State },
  { find, isOneWay }: { find: Find; isOneWay: boolean },
): RequestResult | undefined {
  const texts = new MaskedTexts(find)
  mapRequest(request, (text) => {
    texts.reserve(text)
    return text
  })
  const asked = mapRequest(request, (text) => texts.mask(text))
  if (texts.values.size === 0) return undefined
  if (!isOneWay) {
    state.restorers = { text: new Restorer(texts.values), json: new Restorer(texts.values, { inJson: true }) }
  }
  return { request: asked }
}
