import { api } from './api.ts'

/** A part of a stored message, in the neutral form of the router. */
export type StoredPart = { type: string } & Record<string, unknown>
export type StoredMessage = { role: 'user' | 'assistant' | 'system'; parts: StoredPart[] }
/** A stored conversation; of other operations the fields of their API are stored. */
export type StoredChat = {
  model?: string
  system?: StoredPart[]
  messages?: StoredMessage[]
  tools?: Record<string, unknown>[]
} & Record<string, unknown>
export type StoredReply = { parts?: StoredPart[]; finish?: string } & Record<string, unknown>

/** The content of a call that a plugin has stored. */
export type Stored = {
  id: string
  stored_by: string
  operation: string
  /** The API of the client. */
  api: string
  /** The name that was called. */
  asked: string
  request: StoredChat | null
  reply: StoredReply | null
  omitted_bytes?: number
}

/** Reads what is stored of a call, which is an entry in the audit log. Throws ApiError. */
export function readStored(call: string, signal?: AbortSignal): Promise<Stored> {
  return api<Stored>(`v1/manage/calls/${encodeURIComponent(call)}/content`, { ...(signal && { signal }) })
}

/** Returns a member of a part that is a text. */
export function textIn(part: Readonly<Record<string, unknown>>, name = 'text'): string {
  const value = part[name]
  return typeof value === 'string' ? value : ''
}

/** Describes a part that is not a text, such as `image, [5000 characters of data]`. */
export function mediaText(part: StoredPart): string {
  const facts = ['filename', 'media_type', 'url', 'data', 'file_id'].map((name) => textIn(part, name))
  return [part.type, ...facts].filter((text) => text !== '').join(', ')
}
