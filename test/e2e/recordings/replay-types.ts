import type { Answer } from './replay-answers.ts'
import type { ReplyFacts } from './replay-client.ts'

/** The contents of a recording that a client must receive; `usage` by neutral class, `total` in the recording's own form. */
export type Expected = {
  reply: ReplyFacts
  id: string | undefined
  /** The provider's own finish reason, where it differs from the neutral one. */
  raw: string | undefined
  stop: string | undefined
  usage: { [name: string]: number }
  /** All tokens as the provider sums them up; undefined when it does not. */
  total: number | undefined
  /** The same answer the other way: whole where the recording is a stream, streamed where it is whole. */
  otherWay: Answer
  /** The transcript of audio. */
  transcript?: string
  /** The contents of the other way (whole or streamed), where it has more. */
  replyOtherWay?: ReplyFacts
}
