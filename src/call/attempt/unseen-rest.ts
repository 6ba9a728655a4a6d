import { asRouterError } from '../../core/errors.ts'
import type { ProviderEvent } from '../../core/events.ts'
import { Fold } from '../../core/fold.ts'
import type { Target } from '../../manifest/target.ts'
import { estimateOutputTokens } from '../../money/estimate-tokens.ts'
import type { Overtime } from '../../upstream/http/overtime.ts'
import type { ProviderAnswer } from '../../upstream/provider-answer.ts'
import { foldFacts } from '../../upstream/provider-stream.ts'
import type { StreamFrame } from '../../upstream/stream-frames.ts'
import type { MeasuredUsage } from '../types.ts'
import { requireBounded } from './broken-stream.ts'
import { measuredReply } from './measured-reply.ts'
import type { PreparedCall } from './types.ts'

/**
 * The rest of a stream that no client receives, read in overtime. It folds what counts: usage, the end, uses of tools. Of texts it keeps
 * only how many tokens they have, by an estimate.
 */
export class UnseenRest {
  readonly #fold: Fold
  #text = ''
  #tokens = 0

  constructor(fold: Fold) {
    this.#fold = fold
  }

  /** The estimated tokens of all texts. */
  get tokens(): number {
    return this.#tokens + estimateOf(this.#text)
  }

  /** Reads to the end, or until the connection is closed; how it ends does not matter. */
  async read(batches: AsyncIterator<readonly StreamFrame[]>, target: Target, maxSize: number): Promise<void> {
    try {
      for (let next = await batches.next(); !next.done; next = await batches.next()) {
        for (const { events } of next.value) for (const event of events) this.#take(event)
        requireBounded(this.#fold, target, maxSize)
      }
    } catch (thrown) {
      const { billed } = asRouterError(thrown)
      if (billed) this.#fold.take({ usage: billed })
      await batches.return?.()
    }
  }

  #take(event: ProviderEvent): void {
    const { text = '', refusal = '', reasoning, tool } = event
    const input = typeof tool?.arguments === 'string' ? tool.arguments : ''
    this.#text += text + refusal + (reasoning?.text ?? reasoning?.summary ?? '') + input
    this.#fold.take(countedIn(event))
    if (this.#text.length < estimatedAtOnce) return
    this.#tokens += estimateOf(this.#text)
    this.#text = ''
  }
}

/** Frames of an answer as they arrive until its call is over; without overtime they end then, otherwise the rest can be read. */
export class OpenFrames implements AsyncIterable<StreamFrame[]> {
  readonly #frames: AsyncIterator<StreamFrame[]>
  readonly #overtime: Overtime | undefined
  #pending: Promise<IteratorResult<StreamFrame[]>> | undefined

  constructor(frames: AsyncIterable<StreamFrame[]>, overtime: Overtime | undefined) {
    this.#frames = frames[Symbol.asyncIterator]()
    this.#overtime = overtime
  }

  [Symbol.asyncIterator](): AsyncIterator<StreamFrame[]> {
    const overtime = this.#overtime
    const source = this.#frames
    if (!overtime) return source
    return {
      next: async () => {
        this.#pending ??= source.next()
        const next = await overtime.unlessOver(this.#pending)
        this.#pending = undefined
        return next
      },
    }
  }

  /** Returns the frames that have not been read, where there is overtime. */
  rest(): AsyncIterator<StreamFrame[]> {
    const source = this.#frames
    return {
      next: async () => {
        const next = this.#pending ?? source.next()
        this.#pending = undefined
        return await next
      },
      return: async () => (await source.return?.()) ?? { done: true, value: undefined },
    }
  }

  /** Closes the connection, where there is overtime: the answer goes on elsewhere. */
  close(): void {
    if (!this.#overtime) return
    this.#overtime.cancel()
    this.#frames.return?.().catch(() => {})
  }
}

/** Measures an answer that no client receives, of an attempt that began at that time; a stream is read to its end. */
export async function measureUnseen(
  answer: ProviderAnswer,
  target: Target,
  { admission, answerBounds, begunMs }: Pick<PreparedCall, 'admission' | 'answerBounds'> & { begunMs: number },
): Promise<MeasuredUsage> {
  if (answer.kind === 'whole') return measuredReply(answer.reply, target, admission, { complete: true, ms: 0 })
  const fold = new Fold(foldFacts(target.provider))
  const rest = new UnseenRest(fold)
  await rest.read(answer.batches[Symbol.asyncIterator](), target, answerBounds.bytes)
  const { complete, early } = fold
  const received = { complete, early, unseenTokens: rest.tokens, ms: performance.now() - begunMs }
  return measuredReply(fold.reply(), target, admission, received)
}

/** Number of characters that are estimated together: the estimate of each piece is rounded up. */
const estimatedAtOnce = 4_000

function estimateOf(text: string): number {
  return estimateOutputTokens([{ type: 'text', text }])
}

/** Returns the members of an event that usage depends on. */
function countedIn({
  at,
  model,
  usage,
  finish,
  raw,
  done,
  search,
  opaque,
  whole,
  media,
}: ProviderEvent): ProviderEvent {
  const event: ProviderEvent = {}
  if (at !== undefined) event.at = at
  if (model !== undefined) event.model = model
  if (usage) event.usage = usage
  if (finish) event.finish = finish
  if (raw !== undefined) event.raw = raw
  if (done) event.done = done
  if (search) event.search = search
  if (opaque) event.opaque = opaque
  if (whole?.type === 'search' || whole?.type === 'opaque') event.whole = whole
  if (whole?.type === 'image' && whole.id !== undefined) event.whole = { type: 'image', id: whole.id }
  if (media?.id !== undefined) event.media = { type: media.type, id: media.id }
  return event
}
