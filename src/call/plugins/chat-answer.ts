import { randomUUID } from 'node:crypto'
import type { ClientApi, ReplyFacts } from '../../api/client-api.ts'
import { asRouterError } from '../../core/errors.ts'
import { Fold } from '../../core/fold.ts'
import type { Reply } from '../../core/reply.ts'
import { eventsOf } from '../../core/reply-events.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { targetId } from '../../manifest/target.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise, PluginReply, StreamedEvent } from '../../plugin/contract.ts'
import type { Explanation } from '../../routing/explanation.ts'
import { clientText } from '../attempt/client-text.ts'
import { neutralStream } from '../attempt/other-format.ts'
import type { AnswerEnd, PluginAnswer } from '../call-kind.ts'
import { begunStream, StreamStart } from '../reply/begun-stream.ts'
import type { Call, CallResponse, Turn } from '../types.ts'
import { pluginAsTarget } from './with-plugins.ts'

/** A conversation that a plugin answers. */
type AnsweredChat = {
  call: Pick<Call, 'id' | 'requestId' | 'keepAlive' | 'headers'> & { clientApi: ClientApi }
  request: NeutralRequest
  turn: Turn
  plugins: CallPlugins
  explanation: Explanation | undefined
}

/** Returns the response to a conversation that a plugin answers. Throws RouterError. */
export async function chatAnswerOfPlugin(
  { plugin, reply }: PluginAnswer,
  answered: AnsweredChat,
  end: AnswerEnd,
): Promise<CallResponse> {
  const chat = freshReply(reply)
  const serving = new ChatAnswer(plugin, answered, end)
  return { headers: {}, body: await (answered.request.stream ? serving.stream(chat) : serving.whole(chat)) }
}

function freshReply(reply: PluginReply): Reply {
  if (!('chat' in reply)) throw new Error('the reply to a conversation must be one')
  const created = Math.floor(Date.now() / 1_000)
  return { ...reply.chat, usage: reply.chat.usage ?? {}, id: randomUUID(), created }
}

class ChatAnswer {
  readonly #plugin: string
  readonly #answered: AnsweredChat
  readonly #end: AnswerEnd

  constructor(plugin: string, answered: AnsweredChat, end: AnswerEnd) {
    this.#plugin = plugin
    this.#answered = answered
    this.#end = end
  }

  async whole(chat: Reply): Promise<string> {
    const { plugins, call, turn } = this.#answered
    const shown = await plugins.reply({ operation: 'chat', chat })
    const reply = 'chat' in shown ? shown.chat : chat
    const { router, ...facts } = this.#facts(chat)
    const written = call.clientApi.writeReply({ ...reply, id: chat.id, created: chat.created }, facts)
    const own = await clientText(written)
    await this.#end({ outcome: 'complete', status: 200 }, await turn.responseToStore(written, own, this.#author))
    return router ? await clientText({ ...written, router }) : own
  }

  stream(chat: Reply): MaybePromise<AsyncGenerator<string, void>> {
    const { plugins, call } = this.#answered
    const start = new StreamStart(!plugins.maySeeStream)
    const events = this.#events(chat, start)
    return plugins.maySeeStream ? begunStream(events, start, call.keepAlive.afterMs) : events
  }

  async *#events(chat: Reply, start: StreamStart): AsyncGenerator<string, void> {
    const { plugins, call, request, turn } = this.#answered
    const stream = neutralStream({ call, request }, targetId(pluginAsTarget(this.#plugin)))
    const facts = { signer: 'plugin', newId: () => chat.id, now: () => chat.created }
    const [arrived, shown] = [new Fold(facts), new Fold(facts)]
    const hooks = plugins.events()
    const text = (events: readonly StreamedEvent[]) => stream.translate({ events: events as never }, shown)
    let isRefused = false
    try {
      for (const event of eventsOf(chat)) {
        const seen = hooks ? await hooks.take([[event]], arrived) : [[event]]
        arrived.take(event)
        const written = seen.map(text).join('')
        if (written) yield start.sent(written)
      }
      const rest = hooks ? text(await hooks.end(arrived)) : ''
      await plugins.streamed((plugin) => ({ operation: 'chat', chat: hooks?.arrivedAt(plugin) ?? arrived.reply() }))
      if (!shown.complete) shown.take({ finish: chat.finish })
      const last = rest + stream.close(shown)
      const { router: _, ...own } = this.#facts(chat)
      const whole = turn.stores ? stream.reply?.(own) : undefined
      const stored = whole && (await turn.responseToStore(whole, await clientText(whole), this.#author))
      await this.#end({ outcome: 'complete', status: 200 }, stored)
      yield last + stream.end(this.#facts(chat))
    } catch (thrown) {
      const error = asRouterError(thrown)
      isRefused = start.takesStatus(error)
      if (isRefused) throw error
      await this.#end({ outcome: 'partial', status: error.status, error: error.code }).catch(() => {})
      yield stream.fail(error)
    } finally {
      if (!isRefused) await this.#end({ outcome: 'partial', status: 499, error: 'client_gone' })
    }
  }

  get #author() {
    return { target: pluginAsTarget(this.#plugin), sameFormat: false, storesItself: false }
  }

  #facts({ usage, model = targetId(pluginAsTarget(this.#plugin)) }: Reply): ReplyFacts {
    const { call, request, explanation } = this.#answered
    return { model, usage, costUsd: 0, request, id: call.id, ...(explanation && { router: explanation.facts() }) }
  }
}
