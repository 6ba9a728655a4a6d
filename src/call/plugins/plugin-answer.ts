import { randomUUID } from 'node:crypto'
import type { LimitReservation } from '../../access/limits.ts'
import type { ReplyFacts } from '../../api/client-api.ts'
import type { CallRecord } from '../../core/call.ts'
import { RouterError } from '../../core/errors.ts'
import { Fold } from '../../core/fold.ts'
import type { Reply } from '../../core/reply.ts'
import { eventsOf } from '../../core/reply-events.ts'
import { withLoans } from '../../lending/with-loans.ts'
import { targetId } from '../../manifest/target.ts'
import { estimatePromptTokens } from '../../money/meter.ts'
import type { AskedPlugins, CallPlugins } from '../../plugin/call-plugins.ts'
import type { PluginReply, StreamedEvent } from '../../plugin/contract.ts'
import { forChat } from '../../routing/resolve.ts'
import { routeForRequest } from '../../routing/route-for-request.ts'
import { admitUncharged } from '../admission/admission.ts'
import type { CallStart } from '../admission/settlement.ts'
import { neutralStream } from '../attempt/other-format.ts'
import type { OpenedCall, Services } from '../handle-call.ts'
import type { CallResponse } from '../types.ts'

type Answer = NonNullable<AskedPlugins['answer']>
type Answered = OpenedCall & { plugins: CallPlugins }

/**
 * The response to a conversation that a plugin answers: it costs nothing, counts against the limits, and has its row. Who may not ask
 * the model that was asked for is refused all the same. Throws RouterError.
 */
export async function answerOfPlugin(
  { plugin, reply, headers }: Answer,
  call: Answered,
  services: Services,
): Promise<CallResponse> {
  const limits = await withLoans((isRetry) => admit(isRetry ? services.revalidate(call.authenticated) : call.key))
  Object.assign(call.plugins.headers, headers)
  call.explanation?.begin(call.start.monotonicMs)
  call.explanation?.answeredByPlugin(plugin)
  const serving = new PluginServing(plugin, call, { services, limits })
  const chat = freshReply(reply)
  const body = call.request.stream ? serving.events(chat) : await serving.whole(chat)
  return { headers: { ...limits.headers, ...answerHeaders(plugin) }, body }

  function admit(key: OpenedCall['key']): LimitReservation {
    const { request, routing, start, inEurope } = call
    const rules = services.rulesOf(key.organization)
    const scope = { rules, accessList: key.accessList }
    const promptTokens = () => estimatePromptTokens(request)
    const purpose = { ...forChat(request), ...(inEurope && { inEurope }) }
    const { directory } = services
    routeForRequest(request.model, routing, { directory, scope, purpose, at: start.at, promptTokens })
    return admitUncharged({ key, rules }, services.admission)
  }
}

/** What the client is told of a plugin that answered. */
export function answerHeaders(plugin: string): CallResponse['headers'] {
  return { 'x-router-model': targetId(answering(plugin)), 'x-router-attempts': '0' }
}

/** The row of a call that a plugin answered. */
export function rowOfAnswer(
  { monotonicMs, ...start }: CallStart,
  plugin: string,
  end: Pick<CallRecord, 'outcome' | 'status'> & Partial<Pick<CallRecord, 'error'>>,
): CallRecord {
  return {
    ...start,
    provider: 'plugin',
    model: plugin,
    ...end,
    usage: {},
    cost: { nanoUsd: 0, parts: {}, priceVersion: '' },
    dropped: [],
    attempts: 0,
    durationMs: Math.round(performance.now() - monotonicMs),
  }
}

/** A plugin, where others name a target. */
function answering(plugin: string) {
  return { provider: { slug: 'plugin' }, model: plugin }
}

function freshReply(reply: PluginReply): Reply {
  if (!('chat' in reply)) throw new Error('the reply to a conversation is one')
  return { ...reply.chat, usage: reply.chat.usage ?? {}, id: randomUUID(), created: now() }
}

function now(): number {
  return Math.floor(Date.now() / 1_000)
}

class PluginServing {
  readonly #plugin: string
  readonly #call: Answered
  readonly #services: Pick<Services, 'ledger'>
  readonly #limits: LimitReservation
  #isSettled = false

  constructor(plugin: string, call: Answered, own: { services: Pick<Services, 'ledger'>; limits: LimitReservation }) {
    this.#plugin = plugin
    this.#call = call
    this.#services = own.services
    this.#limits = own.limits
  }

  async whole(chat: Reply): Promise<string> {
    const { plugins, call, turn } = this.#call
    try {
      const shown = await plugins.reply({ operation: 'chat', chat })
      const reply = 'chat' in shown ? shown.chat : chat
      const { router, ...facts } = this.#facts(chat)
      const written = call.clientApi.writeReply({ ...reply, id: chat.id, created: chat.created }, facts)
      const own = JSON.stringify(written)
      await this.#settle({ outcome: 'complete', status: 200 }, turn.responseToStore(written, own, this.#author))
      return router ? JSON.stringify({ ...written, router }) : own
    } finally {
      this.#limits.settle(0)
    }
  }

  async *events(chat: Reply): AsyncGenerator<string, void> {
    const { plugins, call, request, turn } = this.#call
    const stream = neutralStream({ call, request }, targetId(answering(this.#plugin)))
    const facts = { maker: 'plugin', newId: () => chat.id, now: () => chat.created }
    const [said, shown] = [new Fold(facts), new Fold(facts)]
    const hooks = plugins.events()
    const text = (events: readonly StreamedEvent[]) => stream.translate({ events: events as never }, shown)
    try {
      for (const event of eventsOf(chat)) {
        const seen = hooks ? hooks.take([[event]], said) : [[event]]
        said.take(event)
        const written = seen.map(text).join('')
        if (written) yield written
      }
      const rest = hooks ? text(hooks.end(said)) : ''
      if (!shown.complete) shown.take({ finish: chat.finish })
      const last = rest + stream.close(shown)
      const { router: _, ...own } = this.#facts(chat)
      const whole = turn.stores ? stream.reply?.(own) : undefined
      const stored = whole && turn.responseToStore(whole, JSON.stringify(whole), this.#author)
      await this.#settle({ outcome: 'complete', status: 200 }, stored)
      plugins.streamed((plugin) => ({ operation: 'chat', chat: hooks?.arrivedAt(plugin) ?? said.reply() }))
      yield last + stream.end(this.#facts(chat))
    } catch (thrown) {
      const error = thrown instanceof RouterError ? thrown : new RouterError('internal', String(thrown))
      await this.#settle({ outcome: 'partial', status: error.status, error: error.code }).catch(() => {})
      yield stream.fail(error)
    } finally {
      this.#limits.settle(0)
      await this.#settle({ outcome: 'partial', status: 499, error: 'client_gone' })
    }
  }

  get #author() {
    return { target: answering(this.#plugin), sameFormat: false, storesItself: false }
  }

  #facts({ usage, model = targetId(answering(this.#plugin)) }: Reply): ReplyFacts {
    const { call, request } = this.#call
    const { explanation } = this.#call
    return { model, usage, costUsd: 0, request, id: call.id, ...(explanation && { router: explanation.facts() }) }
  }

  async #settle(end: Parameters<typeof rowOfAnswer>[2], response?: Parameters<Services['ledger']['settle']>[1]) {
    if (this.#isSettled) return
    this.#isSettled = true
    const { start, plugins, explanation } = this.#call
    const row = rowOfAnswer(start, this.#plugin, end)
    await this.#services.ledger.settle(explanation ? { ...row, explanation: explanation.told() } : row, response)
    plugins.record(row)
  }
}
