import type { PluginLog, PluginReply } from 'inference-router/plugin'
import { LRUCache } from 'lru-cache'
import { type FileTier, openFileTier } from './file-tier.ts'

/** Replies by key. */
export type Kept = {
  /** Returns a reply that is not older than this. */
  get(key: string, oldestMs: number | undefined): PluginReply | undefined
  /** Returns whether it was kept: a reply may be too large. */
  put(key: string, reply: PluginReply, ttlMs: number): boolean
  close(): void
}

export type KeptOptions = { max_bytes: number; max_reply_bytes: number; file?: string; max_file_bytes: number }

type Entry = { reply: PluginReply; at: number; ends: number; bytes: number }

/** Opens the store of replies: in memory, and in a file where the options name one. */
export function openKept(options: KeptOptions, log: Pick<PluginLog, 'warn'>): Kept {
  const memory = new LRUCache<string, Entry>({ maxSize: options.max_bytes, sizeCalculation: ({ bytes }) => bytes })
  const file: FileTier | undefined = options.file === undefined ? undefined : openFileTier(options.file, options, log)
  return {
    get(key, oldestMs) {
      const now = Date.now()
      const holds = (entry: Entry | undefined) =>
        entry && entry.ends > now && now - entry.at <= (oldestMs ?? Number.POSITIVE_INFINITY) ? entry.reply : undefined
      // Another thread may have put a newer one into the file.
      return holds(memory.get(key)) ?? holds(fromFile(key))
    },
    put(key, reply, ttlMs) {
      const text = JSON.stringify(reply)
      if (text.length > options.max_reply_bytes) return false
      const now = Date.now()
      memory.set(key, { reply, at: now, ends: now + ttlMs, bytes: sizeOf(text) })
      file?.put(key, { text, at: now, ends: now + ttlMs })
      return true
    },
    close: () => file?.close(),
  }

  function fromFile(key: string): Entry | undefined {
    const found = file?.get(key)
    if (!found) return undefined
    const { text, at, ends } = found
    const entry = { reply: JSON.parse(text) as PluginReply, at, ends, bytes: sizeOf(text) }
    memory.set(key, entry)
    return entry
  }
}

/** Returns the size of an entry: its text has up to two bytes a character in memory, and the entry itself adds the rest. */
function sizeOf(text: string): number {
  return 2 * text.length + 500
}
