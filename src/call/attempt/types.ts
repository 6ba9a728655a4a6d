import type { ClientApi, ReplyFacts } from '../../api/client-api.ts'
import type { RouterError } from '../../core/errors.ts'
import type { Fold } from '../../core/fold.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { ClientNames } from '../../manifest/run/fit-names.ts'
import type { ProviderRequest } from '../../manifest/run/translate.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import type { Explanation } from '../../routing/explanation.ts'
import type { SentResponse } from '../../store/responses.ts'
import type { AnswerBounds } from '../../upstream/answer-body.ts'
import type { CallMedia } from '../../upstream/files/inline.ts'
import type { WholeAnswer } from '../../upstream/provider-answer.ts'
import type { ForwardedHeader } from '../../upstream/provider-request.ts'
import type { StreamFrame } from '../../upstream/stream-frames.ts'
import type { Admission, Call, Turn } from '../types.ts'

/** A conversation whose body has been read: everything that does not depend on the target. */
export type PreparedCall = {
  call: Pick<Call, 'id' | 'requestId' | 'strict' | 'headers' | 'forwardedHeaders' | 'trace' | 'signal' | 'outlive'> & {
    clientApi: ClientApi
  }
  request: NeutralRequest
  turn: Turn
  explanation?: Explanation | undefined
  /** The plugins that see the call. */
  plugins?: CallPlugins | undefined
  /** A plugin has changed the request: the client's body no longer describes the request. */
  isRewritten?: boolean | undefined
  media: CallMedia
  answerBounds: AnswerBounds
  /** Remembers the state that a provider holds for the organization from now on, by the ids in its reply. */
  holds(provider: string, ids: readonly string[]): void
  /** The length that the reply of a target may have, and the reservation for it. */
  admission: Omit<Admission, 'settle' | 'recorded' | 'charge'>
}

/** A call as it is translated for one target; `length` is an output limit in place of the client's own. */
export type TargetedCall = Omit<PreparedCall, 'admission'> & { length?: number }

/** Translation in both directions between a client's call and one target: the request, and the answer whole or streamed. */
export type Translation = {
  /** Returns the provider's body, and the neutral names of the fields that it leaves out. Throws RouterError. */
  request(): ProviderRequest | Promise<ProviderRequest>
  /** The client's headers to forward to the provider. */
  forwardedHeaders: readonly ForwardedHeader[]
  /** Checks whether the client gets the provider's own body, edited: then the neutral form of a reply is for the call itself. */
  edits(): boolean
  /** Returns the client's names of the tools that have others in the body which `request` has returned. */
  clientNames(): ClientNames | undefined
  /** Returns a whole answer as the client's JSON. */
  whole(answer: WholeAnswer, facts: ReplyFacts): JsonObject
  /** Returns the translation that writes a whole answer which plugins have changed. */
  changed?(): Pick<Translation, 'whole' | 'responseToStore'>
  /** Returns a writer for one streamed answer of a model, by its name for clients. */
  stream(model: string): StreamTranslation
  /** Returns a response in its stored form, `text` being its JSON; undefined when it is not to be stored. */
  responseToStore(response: JsonObject, text: string): MaybePromise<SentResponse | undefined>
}

/** Writes one streamed answer as the text of server-sent events. */
export type StreamTranslation = {
  /** Folds the events of one frame and writes it; empty when no part of it is for the client. */
  translate(frame: StreamFrame, fold: Fold): string
  /** Returns the next text of frames that are written in more than one step; empty when there is none. */
  more?(): string
  /** Closes the parts that are still open. */
  close(fold: Fold): string
  /** Remembers what the provider keeps of the part that has come: where the reply breaks off, and before its end. */
  keep?(): void
  /** Returns the end of a complete reply: usage, cost, terminator. */
  end(facts: ReplyFacts): string
  /** Returns the end of a broken reply: an error, and no success terminator. */
  fail(error: RouterError): string
  /** Returns the whole reply as it was streamed, in APIs that store replies. */
  reply?(facts: ReplyFacts): JsonObject
}
