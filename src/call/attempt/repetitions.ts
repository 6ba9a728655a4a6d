import type { StreamFrame } from '../../upstream/stream-frames.ts'
import type { TextPattern } from '../../upstream/text-pattern.ts'

/** Writes the frames that repeat an earlier one but for their text as that one was written, with their own text. */
export class Repetitions {
  #known: { pattern: TextPattern; before: string; after: string } | undefined

  /** Learns a frame as it was written; those that repeat it differ from it in their text alone. */
  learn({ pattern, events }: StreamFrame, written: string): void {
    const [event] = events
    if (!pattern || !event?.text) return
    const at = written.indexOf(`"${event.text}"`) + 1
    const isOnce = at > 0 && !written.includes(`"${event.text}"`, at)
    const end = at + event.text.length
    this.#known = isOnce ? { pattern, before: written.slice(0, at), after: written.slice(end) } : undefined
  }

  /** Writes a frame that repeats the one that was learned; undefined for any other. */
  write({ pattern, events }: StreamFrame): string | undefined {
    const known = this.#known
    return pattern && known?.pattern === pattern ? `${known.before}${events[0]?.text}${known.after}` : undefined
  }
}
