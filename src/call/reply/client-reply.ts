import type { Reply } from '../../core/reply.ts'
import { completionTokens } from '../../core/usage.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import { SeenChat } from '../../plugin/call-view.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { WholeAnswer } from '../../upstream/provider-answer.ts'
import { clientText } from '../attempt/client-text.ts'
import type { GoOn } from '../call-kind.ts'
import type { ReceivedReply } from '../types.ts'
import { type AnsweredAttempt, measured, replyFacts } from './answered-attempt.ts'

/** Returns the client's JSON text of a whole answer, once the ledger row is on disk; or, where it cannot be read, what goes on. */
export async function wholeReply(answer: WholeAnswer, answered: AnsweredAttempt): Promise<string | GoOn> {
  const { translation, settlement, remember, prepared, handle } = answered
  const { reply } = answer
  let text = ''
  try {
    const showing = prepared.plugins ? shownReply(answer, prepared.plugins, answered.mayRetry?.()) : answer
    const shown = showing instanceof Promise ? await showing : showing
    remember(reply)
    const { usage, cost } = await settlement.complete(received(answered, reply), (settled) => {
      const router = prepared.explanation?.facts()
      const writing = shown === answer ? translation : (translation.changed?.() ?? translation)
      const written = writing.whole(shown, replyFacts(answered, settled))
      return andThen(clientText(written), (own) => {
        text = own
        const storing = () => writing.responseToStore(written, own)
        if (!router) return storing()
        return andThen(clientText({ ...written, router }), (explained) => {
          text = explained
          return storing()
        })
      })
    })
    handle.produced?.(completionTokens(usage), cost.estimated === true)
    return text
  } catch (thrown) {
    return await answered.giveUp(received(answered, reply), thrown)
  }
}

/** Returns the usage of a whole reply. */
function received(answered: AnsweredAttempt, reply: Reply): ReceivedReply {
  const { target, attempts, dropped, times, served } = answered
  return { target, attempts, dropped, times, served, measured: measured(answered, reply, { complete: true }) }
}

/** Lets plugins change an answer; what identifies and counts it stays. */
function shownReply(answer: WholeAnswer, plugins: CallPlugins, mayRetry?: boolean): MaybePromise<WholeAnswer> {
  if (!plugins.have('reply') && !plugins.have('check')) return answer
  const { reply, whole = () => reply } = answer
  const seen = new SeenChat(whole)
  return andThen(plugins.reply(seen, undefined, mayRetry), (shown) => {
    const isSame = shown === seen || !('chat' in shown) || shown.chat === seen.chat
    // A provider's own body has members that they have not seen.
    if (isSame && !plugins.guards) return answer
    const { id, created, usage } = reply
    return { ...answer, reply: { ...('chat' in shown ? shown.chat : seen.chat), id, created, usage } }
  })
}
