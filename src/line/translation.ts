import type { ClientApi, ReplyFacts } from '../api/client-api.ts'
import type { RouterError } from '../core/errors.ts'
import type { Fold } from '../core/fold.ts'
import type { JsonObject } from '../core/json.ts'
import type { Target } from '../manifest/target.ts'
import type { ProviderRequest } from '../manifest/translate.ts'
import type { StoredResponse } from '../store/responses.ts'
import type { StreamFrame, WholeAnswer } from '../upstream/call.ts'
import type { PassedHeader } from '../upstream/post.ts'
import type { PreparedCall } from './call.ts'
import { nativeTranslation } from './native.ts'
import { translatedTranslation } from './translated.ts'

/** Both directions between a client's call and one target: the request, and the answer whole or streamed. */
export type Translation = {
  /** The provider's body, and the neutral names of what it leaves out. Throws RouterError. */
  request(): Promise<ProviderRequest>
  /** The client's headers to forward to the provider. */
  forwardedHeaders: readonly PassedHeader[]
  /** A whole answer as the client's JSON. */
  whole(answer: WholeAnswer, facts: ReplyFacts): JsonObject
  /** A writer for one streamed answer. */
  stream(): StreamTranslation
  /** The row of a response, `text` being its JSON; undefined when it is not to be stored. */
  stored(response: JsonObject, text: string): StoredResponse | undefined
}

/** Writes one streamed answer as the text of server-sent events. */
export type StreamTranslation = {
  /** Folds the events of one frame and writes it; empty when the client gets nothing of it. */
  frame(frame: StreamFrame, fold: Fold): string
  /** Closes the parts that are still open. */
  close(fold: Fold): string
  /** The end of a complete reply: usage, cost, terminator. */
  end(facts: ReplyFacts): string
  /** The end of a broken reply: an error, and no success terminator. */
  fail(error: RouterError): string
  /** The whole reply as it was streamed, in APIs that store replies. */
  reply?(facts: ReplyFacts): JsonObject
}

/** The translation for one attempt: bodies of the same format are edited, all others are translated by mappings. */
export function translationOf(target: Target, prepared: PreparedCall): Translation {
  return speaksSameFormat(target, prepared.call.clientApi)
    ? nativeTranslation(target, prepared)
    : translatedTranslation(target, prepared)
}

/** Whether a target's own format is that of the client API. */
export function speaksSameFormat({ provider }: Pick<Target, 'provider'>, clientApi: ClientApi): boolean {
  return provider.sameAs === clientApi.api
}
