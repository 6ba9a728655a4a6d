import type { ClientApi } from '../api/client-api.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { CallMedia } from '../upstream/inline.ts'
import type { PassedHeader } from '../upstream/post.ts'
import type { Turn } from './conversations.ts'

/** One client request. `signal` is aborted when the client disconnects or the process stops. */
export type Call = {
  id: string
  clientApi: ClientApi
  secret: string | undefined
  readBody(): Promise<unknown>
  /** Refuse the call, instead of only reporting the loss, when the provider does not support a part of the request. */
  strict: boolean
  /** The client's headers for a provider of the same format. */
  forwardedHeaders?: readonly PassedHeader[]
  /** The `x-router-tags` header, stored with the ledger row. */
  tags?: string | undefined
  signal: AbortSignal
}

/** A call whose body has been read: everything that does not depend on the target. */
export type PreparedCall = { call: Call; request: NeutralRequest; turn: Turn; media: CallMedia }

/** The response to a call: JSON text, or the texts of server-sent events as they are produced. */
export type CallResponse = { headers: Readonly<Record<string, string>>; body: string | AsyncGenerator<string, void> }
