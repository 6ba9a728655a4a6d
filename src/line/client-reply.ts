import type { ReplyFacts } from '../api/client-api.ts'
import { asRouterError, RouterError } from '../core/errors.ts'
import { Fold } from '../core/fold.ts'
import type { Reply } from '../core/reply.ts'
import { withoutSecrets } from '../core/secrets.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { Answer } from '../upstream/call.ts'
import { type Asked, foldFacts, speaksSameFormat } from './provider-call.ts'
import type { Settled, Settlement } from './settlement.ts'

/** The client's JSON text of a whole answer; the row is on disk before it is given out. */
export async function wholeReply(
  answer: Answer & { kind: 'whole' },
  asked: Asked,
  keepSeals: (reply: Reply) => void,
): Promise<string> {
  const { call, turn, settlement } = asked
  const target = settlement.target as Target
  let text = ''
  try {
    keepSeals(answer.reply)
    await settlement.complete(answer.reply, (settled) => {
      const facts = replyFacts(asked, settled)
      const written = speaksSameFormat(target, call.face)
        ? call.face.editReply(turn.named(answer.body), facts)
        : call.face.writeReply(answer.reply, facts)
      text = JSON.stringify(written)
      return turn.keep(written, text, target)
    })
    return text
  } catch (thrown) {
    // The provider has answered and is paid, whatever kept us from passing it on.
    await settlement.partial(answer.reply, asRouterError(thrown))
    throw thrown
  }
}

/** The row is on disk before the last words go out; a reply that breaks never gets the words of a whole one. */
export async function* streamedReply(
  answer: Answer & { kind: 'stream' },
  asked: Asked,
  keepSeals: (reply: Reply) => void,
): AsyncGenerator<string, void> {
  const { call, request, turn, settlement } = asked
  const target = settlement.target as Target
  const same = speaksSameFormat(target, call.face)
  const writer = call.face.openStream(request, { model: targetId(target), id: call.id })
  const fold = new Fold(foldFacts(target))
  try {
    for await (const batch of answer.batches) {
      settlement.firstEventMs ??= settlement.elapsed()
      let text = ''
      for (const { payload, events } of batch) {
        for (const event of events) {
          const told = fold.take(event)
          if (!same) text += writer.events(told)
        }
        if (same) text += writer.frame(turn.named(payload))
      }
      if (text) yield text
    }
    if (!fold.complete) throw cutStream(target)
    const last = same ? '' : writer.events(fold.end())
    const reply = fold.reply()
    keepSeals(reply)
    const settled = await settlement.complete(reply, (known) => {
      const whole = turn.keeps && writer.reply?.(replyFacts(asked, known))
      return whole ? turn.keep(whole, JSON.stringify(whole), target) : undefined
    })
    yield last + writer.end(replyFacts(asked, settled))
  } catch (thrown) {
    const error = asRouterError(thrown)
    // A ledger that fails as well keeps the row for later: the client must still hear of the break.
    await settlement.partial(fold.reply(), error).catch(() => {})
    if (error.code !== 'client_gone') yield writer.fail(error)
  } finally {
    // A client that left ends this generator at a yield: what has passed is still paid.
    await settlement.partial(fold.reply(), new RouterError('client_gone', 'The client left.'))
  }
}

function replyFacts({ request, call, settlement }: Asked, { usage, cost }: Settled): ReplyFacts {
  const model = targetId(settlement.target as Target)
  return { model, usage, request, id: call.id, ...(!cost.unpriced && { costUsd: cost.nanoUsd / 1e9 }) }
}

/** What is said of an admitted call before its reply, or its error: what is left, who was asked, what was left out. */
export function replyHeaders({ limitHeaders, target, attempts, dropped }: Settlement): Record<string, string> {
  return {
    ...limitHeaders,
    ...(target && { 'x-router-model': withoutSecrets(targetId(target)), 'x-router-attempts': String(attempts) }),
    ...(dropped.length > 0 && { 'x-router-dropped': dropped.join(',') }),
  }
}

function cutStream({ provider }: Target): RouterError {
  const message = 'The provider ended its stream in the middle of the reply.'
  return new RouterError('provider_cut', message, { provider: provider.slug })
}
