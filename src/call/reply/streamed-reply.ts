import type { ReplyFacts } from '../../api/client-api.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { ProviderEvent } from '../../core/events.ts'
import { Fold } from '../../core/fold.ts'
import { addUsage, completionTokens, mergeUsage, type Usage } from '../../core/usage.ts'
import { targetId } from '../../manifest/target.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import type { EventHooks, Events } from '../../plugin/event-hooks.ts'
import { yieldToEventLoop } from '../../runtime/event-loop.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import { foldFacts, type StreamedAnswer } from '../../upstream/provider-stream.ts'
import type { StreamFrame } from '../../upstream/stream-frames.ts'
import { requireBounded, requireWhole } from '../attempt/broken-stream.ts'
import { clientText } from '../attempt/client-text.ts'
import { keptBy, neutralStream } from '../attempt/other-format.ts'
import type { StreamTranslation } from '../attempt/types.ts'
import { OpenFrames, UnseenRest } from '../attempt/unseen-rest.ts'
import type { ReceivedReply, Settled } from '../types.ts'
import { type AnsweredAttempt, measured, replyFacts } from './answered-attempt.ts'
import { servedId } from './attempt-headers.ts'
import { begunStream, StreamStart, withDueBatches } from './begun-stream.ts'
import type { Recovery, Resumed } from './recovery.ts'

/** An attempt whose answer is being streamed. `own` folds its events alone, by which it is charged. */
type Serving = { answered: AnsweredAttempt; frames: OpenFrames; own: Fold; resumed?: Resumed }

/**
 * Returns the client's events of a streamed answer. The ledger row is on disk before the last one; a broken reply never gets it. Where
 * plugins may refuse the answer, it waits for the first event, `afterMs` at most. Rejects with the refusal of a plugin before that.
 */
export function streamedReply(
  answer: StreamedAnswer,
  answered: AnsweredAttempt,
  { recovery, afterMs = 0 }: { recovery?: Recovery | undefined; afterMs?: number } = {},
): MaybePromise<AsyncGenerator<string, void>> {
  const maySee = answered.prepared.plugins?.maySeeStream === true
  const start = new StreamStart(!maySee)
  const events = new StreamedReply(answer, answered, { recovery, start }).events()
  return maySee ? begunStream(events, start, afterMs) : events
}

class StreamedReply {
  /** Part of the reply that the client has received. */
  readonly #shown: Fold
  /** The same as the providers said it, of all attempts: without plugins, the same text that the client received. */
  readonly #said: Fold
  readonly #hooks: EventHooks | undefined
  readonly #stream: StreamTranslation
  readonly #recovery: Recovery | undefined
  readonly #start: StreamStart
  #serving: Serving
  #firstEventMs: number | undefined
  #isSettled = false
  /** Set where the attempt ends when the broken reply is settled. */
  #isBroken = false
  #isDamaged = false
  /** Usage of attempts that broke off. */
  #earlier: Settled[] = []

  constructor(
    answer: StreamedAnswer,
    answered: AnsweredAttempt,
    { recovery, start }: { recovery: Recovery | undefined; start: StreamStart },
  ) {
    const { target, translation, prepared } = answered
    this.#recovery = recovery
    this.#start = start
    this.#shown = new Fold(foldFacts(target.provider))
    // The frames of another target, and those of a document, have no payload that could be edited.
    this.#hooks = prepared.plugins?.events()
    const isNeutral = recovery !== undefined || answer.document === true || this.#hooks !== undefined
    const name = servedId(answered)
    const keep = keptBy(target, prepared.holds)
    this.#stream = isNeutral ? neutralStream(prepared, name, keep) : translation.stream(name)
    this.#said = this.#hooks ? new Fold(foldFacts(target.provider)) : this.#shown
    this.#serving = { answered, frames: new OpenFrames(answer.batches, answered.overtime), own: this.#said }
    if (recovery) this.#serving.own = new Fold(foldFacts(target.provider))
  }

  async *events(): AsyncGenerator<string, void> {
    const { settlement, prepared } = this.#serving.answered
    try {
      for (let isOver = false; !isOver; ) {
        const { frames, own, answered } = this.#serving
        try {
          for await (const batch of this.#due(frames)) {
            const writing = this.#write(batch)
            const text = writing instanceof Promise ? await writing : writing
            if (text) yield this.#start.sent(text)
            for (let more = this.#stream.more?.(); more; more = this.#stream.more?.()) {
              await yieldToEventLoop()
              yield more
            }
          }
          requireWhole(own, answered.target)
          isOver = true
        } catch (thrown) {
          if (!(await this.#resume(asRouterError(thrown)))) throw thrown
          yield this.#start.sent(`: ${targetId(this.#serving.answered.target)} continues\n\n`)
        }
      }
      const { answered, own } = this.#serving
      const received = this.#received(true)
      const last = (await this.#heldBack()) + this.#stream.close(this.#shown)
      await this.#showPlugins(received)
      answered.remember(own.reply())
      const settled = await settlement.complete(received, (known) => {
        const whole = prepared.turn.stores && this.#stream.reply?.(this.#facts(known))
        if (!whole) return undefined
        return andThen(clientText(whole), (text) => answered.translation.responseToStore(whole, text))
      })
      this.#isSettled = true
      answered.handle.produced?.(completionTokens(settled.usage), settled.cost.estimated === true)
      yield last + this.#stream.end(this.#explained(this.#facts(settled)))
    } catch (thrown) {
      const { target, handle } = this.#serving.answered
      const error = withoutSecretsOf(target.provider, asRouterError(thrown))
      this.#stream.keep?.()
      // An answer that no other target could continue has been counted.
      if (!this.#isSettled) {
        handle.failed(error)
        await this.#settleBroken(error)
      }
      this.#start.requireEvent(error)
      if (error.code !== 'client_gone') yield this.#stream.fail(prepared.explanation?.addedTo(error) ?? error)
    } finally {
      // A client that disconnects ends this generator at a yield: the part that was received is still paid.
      if (!this.#isSettled) {
        this.#stream.keep?.()
        await this.#settleBroken(new RouterError('client_gone', 'The client disconnected.'))
      } else if (!this.#isBroken) this.#serving.answered.handle.ended()
    }
  }

  /** Returns the frames of an answer, and none when plugins have kept something back for long enough. */
  #due(frames: OpenFrames): AsyncIterable<StreamFrame[]> {
    const hooks = this.#hooks
    return hooks ? withDueBatches(frames, () => hooks.dueMs) : frames
  }

  /** Returns one batch of frames as the client's text. */
  #write(batch: readonly StreamFrame[]): MaybePromise<string> {
    const { answered, own, resumed } = this.#serving
    this.#firstEventMs ??= answered.settlement.elapsed()
    let text = ''
    const said: StreamFrame[] | undefined = this.#hooks && []
    for (const frame of batch) {
      if (frame.damaged) this.#isDamaged = true
      if (own !== this.#said) for (const event of frame.events) own.take(event)
      const shown = resumed ? resumed.shown(frame) : frame
      if (!shown) continue
      if (said) said.push(shown)
      else text += this.#stream.translate(shown, this.#shown)
    }
    const written = said && this.#hooks ? this.#seen(said, this.#hooks) : text
    return andThen(written, (text) => {
      requireBounded(this.#said, answered.target, answered.prepared.answerBounds.bytes)
      return text
    })
  }

  /** Writes frames as plugins change them. */
  #seen(frames: readonly StreamFrame[], hooks: EventHooks): MaybePromise<string> {
    const given = frames.map(({ events }) => events)
    const write = (seen: readonly Events[]) => seen.map((events) => this.#translate(events)).join('')
    // It is charged whatever happens to it.
    const charge = () => {
      for (const events of given) for (const event of events) this.#said.take(event)
    }
    let isCharged = false
    try {
      const seeing = hooks.take(given, this.#said)
      if (!(seeing instanceof Promise)) return write(seeing)
      isCharged = true
      return seeing.finally(charge).then(write)
    } finally {
      if (!isCharged) charge()
    }
  }

  /** Returns the text that plugins have held back of an answer that arrived whole. */
  #heldBack(): MaybePromise<string> {
    if (!this.#hooks) return ''
    return andThen(this.#hooks.end(this.#said), (events) => {
      const text = this.#translate(events)
      // A plugin may have taken the end itself out.
      if (!this.#shown.complete) this.#shown.take({ finish: this.#said.reply().finish })
      return text
    })
  }

  #translate(events: Events): string {
    return events.length > 0 ? this.#stream.translate({ events: events as readonly ProviderEvent[] }, this.#shown) : ''
  }

  /** Shows plugins the whole answer before its end, with its usage. */
  #showPlugins(received: ReceivedReply): MaybePromise<unknown> {
    const { prepared, settlement } = this.#serving.answered
    if (!prepared.plugins?.have('reply')) return undefined
    const { usage } = settlement.costOf(received)
    return prepared.plugins.streamed((plugin) => {
      const reply = this.#hooks?.arrivedAt(plugin) ?? this.#said.reply()
      return { operation: 'chat', chat: { ...reply, usage } }
    })
  }

  /** Resumes the answer at another target, where the rules of the name allow it and one can. */
  async #resume(error: RouterError): Promise<boolean> {
    const { answered } = this.#serving
    const { handle, settlement } = answered
    const recovery = this.#recovery
    if (!recovery?.canFollow(answered, error, this.#said.reply())) return false
    handle.failed(error)
    const charged = await this.#chargeCut(error)
    this.#isSettled = true
    let attempts = answered.attempts
    try {
      const resumed = await recovery.resume(answered, this.#said.reply())
      if (resumed.answered) return this.#goOn(resumed, charged)
      attempts = resumed.attempts
    } finally {
      // However the others ended, this is the row of the call, and the end of its reservation.
      if (this.#isSettled) {
        const charging = settlement.charged({ ...answered, attempts }, error)
        if (settlement.isReadingOn) answered.prepared.call.outlive(charging)
        else await charging
      }
    }
    return false
  }

  /** Charges an attempt that is given up: at once, or, where its provider may still count it, when that has been read. */
  async #chargeCut(error: RouterError): Promise<Settled> {
    const cut = this.#serving
    const { handle, overtime, settlement, prepared, target } = cut.answered
    const received = this.#received(false, error.billed)
    overtime?.start(error)
    if (!overtime?.isOpen || !(await prepared.admission.keep(target))) {
      cut.frames.close()
      handle.ended()
      return settlement.cutAttempt(received, error)
    }
    const reading = this.#readRest(cut, error).finally(() => handle.ended())
    prepared.call.outlive(settlement.cutAttemptWhenRead(reading, error))
    return settlement.costOf(received)
  }

  #goOn(resumed: Resumed, charged: Settled): true {
    this.#isSettled = false
    this.#earlier.push(charged)
    const { target } = resumed.answered
    const own = new Fold(foldFacts(target.provider))
    const frames = new OpenFrames(resumed.answer.batches, resumed.answered.overtime)
    this.#serving = { answered: resumed.answered, frames, own, resumed }
    return true
  }

  #received(complete: boolean, billed?: Usage, unseenTokens = 0, { answered, own } = this.#serving): ReceivedReply {
    const reply = billed ? { ...own.reply(), usage: mergeUsage(own.usage, billed) } : own.reply()
    const served = answered.served ?? answered.servedBy(answered.target, reply.model)
    return {
      ...answered,
      served,
      measured: measured(answered, reply, { complete, unseenTokens, early: own.early }),
      ...(this.#firstEventMs !== undefined && { firstEventMs: this.#firstEventMs }),
      ...(this.#isDamaged && { damaged: true }),
    }
  }

  /** Settles a reply that broke off and ends its attempt: at once, or, while its provider may still count it, after the response. */
  async #settleBroken(error: RouterError): Promise<void> {
    const { overtime, handle, prepared } = this.#serving.answered
    this.#isSettled = true
    this.#isBroken = true
    overtime?.start(error)
    const settling = this.#settlePartial(error).finally(() => handle.ended())
    if (overtime?.isOpen) prepared.call.outlive(settling)
    else await settling
  }

  async #settlePartial(error: RouterError): Promise<void> {
    const serving = this.#serving
    await serving.answered.settlement.partial(await this.#readRest(serving, error), error)
  }

  /** Reads what follows of an attempt that has broken off, where it has overtime, and returns all that was received of it. */
  async #readRest(serving: Serving, error: RouterError): Promise<ReceivedReply> {
    const { frames, own, answered } = serving
    const rest = new UnseenRest(own)
    if (answered.overtime) await rest.read(frames.rest(), answered.target, answered.prepared.answerBounds.bytes)
    const isWhole = (answered.overtime !== undefined || error.pluginRefusal !== undefined) && own.complete
    return this.#received(isWhole, error.billed, rest.tokens, serving)
  }

  /** Returns the facts that the client receives at the end: the usage of all attempts. */
  #facts(settled: Settled): ReplyFacts {
    const { answered } = this.#serving
    if (this.#earlier.length === 0) return replyFacts(answered, settled)
    const usage = this.#earlier.reduce((sum, one) => addUsage(sum, one.usage), settled.usage)
    const nanoUsd = this.#earlier.reduce((sum, { cost }) => sum + cost.nanoUsd, settled.cost.nanoUsd)
    return replyFacts(answered, { usage, cost: { ...settled.cost, nanoUsd } })
  }

  /** Adds how the call was routed, where the client wants to know or several targets have served it. */
  #explained(facts: ReplyFacts): ReplyFacts {
    const { prepared, attempts } = this.#serving.answered
    const router = prepared.explanation?.facts()
    if (this.#earlier.length > 0) return { ...facts, router: { ...router, attempts } }
    return router ? { ...facts, router } : facts
  }
}
