import type { PluginRequest, StreamedEvent } from 'inference-router/plugin'

/** The neutral form of a conversation, in the words of the contract. */
export type Chat = Extract<PluginRequest, { chat: unknown }>['chat']
export type OtherRequest = Exclude<PluginRequest, { chat: unknown }>
export type Part = Chat['messages'][number]['parts'][number]
export type ChatEvent = Exclude<StreamedEvent, { json: unknown }>
export type OtherEvent = Extract<StreamedEvent, { json: unknown }>
export type JsonValue = NonNullable<OtherEvent['json'][string]> | null
