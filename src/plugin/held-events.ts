import { hasContent } from '../core/events.ts'
import { type AddedText, textsOfEvent } from './answer-texts.ts'
import type { CheckedText, Hold, StreamedEvent } from './contract.ts'

/** The most characters, and the longest time in milliseconds, that a plugin may keep back. */
export const maxHeldCharacters = 20_000
export const maxHeldMs = 120_000

/** Part of an answer that is kept back where a plugin does not say how much. */
export const usualHold: Hold = { characters: 200 }

const usualMs = 10_000
/** Characters that follow a text which does not grow: what is written beside it must not keep it back for good. */
const restTimes = 8
/** Length after which a sentence counts as ended. */
const maxSentence = 2_000
/** Characters of a text that is sent which are shown with what follows. */
const maxBefore = 1_000

type Frame = readonly StreamedEvent[]

/** Events that arrived together, and what they add to the texts. Events without content wait for others: a refusal may be all that follows. */
type Held = { frame: Frame; texts: readonly AddedText[]; hasContent: boolean; since: number }

/** A text that grows: what is kept back of it, and the end of what has been sent. */
type Channel = { kind: AddedText['kind']; held: string; before: string }

/** The events of a streamed answer that are kept back, in their order, until the plugin has seen what follows them. */
export class HeldEvents {
  readonly #hold: Hold
  readonly #maxMs: number
  readonly #queue: Held[] = []
  readonly #channels = new Map<string, Channel>()
  /** Characters in the queue, and those that came since the texts were last looked at. */
  #size = 0
  #unseen = 0

  constructor(hold: Hold) {
    this.#hold = hold
    this.#maxMs = hold.maxMs ?? usualMs
  }

  add(frame: Frame): void {
    const texts = frame.flatMap(textsOfEvent)
    for (const { kind, text, channel } of texts) {
      this.#size += text.length
      this.#unseen += text.length
      if (channel === undefined) continue
      const known = this.#channels.get(channel)
      if (known) known.held += text
      else this.#channels.set(channel, { kind, held: text, before: '' })
    }
    const isContent = frame.some((event) => 'json' in event || hasContent(event))
    this.#queue.push({ frame, texts, hasContent: isContent, since: performance.now() })
  }

  /** Returns the milliseconds until what is held has to be sent; undefined where nothing is. */
  get dueMs(): number | undefined {
    const [first] = this.#queue
    return first && Math.max(0, first.since + this.#maxMs - performance.now())
  }

  /** Checks whether something can be sent once the plugin has seen the texts; pieces smaller than what is kept back are not worth a look. */
  get isReady(): boolean {
    const isEnough = 'sentences' in this.#hold || this.#unseen >= this.#hold.characters || this.#size === 0
    return isEnough && this.#readyCount() > 0
  }

  /** Returns all texts that are held, as far as they go. */
  texts(): CheckedText[] {
    this.#unseen = 0
    const grown = [...this.#channels.values()].filter(({ held }) => held !== '')
    const complete = this.#queue.flatMap(({ texts }) => texts.filter(({ channel }) => channel === undefined))
    return [
      ...grown.map(({ kind, held: text, before }) => ({ kind, text, before })),
      ...complete.map(({ kind, text }) => ({ kind, text, before: '' })),
    ]
  }

  /** Removes the frames that may be sent, or all of them, and returns them. */
  release(all: boolean): Frame[] {
    const count = all ? this.#queue.length : this.#readyCount()
    return this.#queue.splice(0, count).map(({ frame, texts }) => {
      for (const { text, channel: name } of texts) {
        this.#size -= text.length
        const channel = name === undefined ? undefined : this.#channels.get(name)
        if (!channel) continue
        channel.before = (channel.before + text).slice(-maxBefore)
        channel.held = channel.held.slice(text.length)
      }
      return frame
    })
  }

  /** Counts the frames at the front of the queue of which enough is known. */
  #readyCount(): number {
    const reached = new Map<string, Reached>()
    let left = this.#size
    let count = 0
    for (const [index, { texts, hasContent }] of this.#queue.entries()) {
      for (const { text, channel } of texts) {
        left -= text.length
        if (channel !== undefined && !this.#isSettled(this.#reach(channel, text, reached), left)) return count
      }
      if (hasContent) count = index + 1
    }
    return count
  }

  #reach(name: string, { length }: string, reached: Map<string, Reached>): Reached {
    const { held = '' } = this.#channels.get(name) ?? {}
    const place = reached.get(name) ?? { at: 0, length: held.length, ended: this.#endOf(held) }
    place.at += length
    reached.set(name, place)
    return place
  }

  /** Returns how far a text may be sent whatever its length is. */
  #endOf(held: string): number {
    return 'sentences' in this.#hold ? endOfSentences(held) : 0
  }

  /** Checks whether a text may be sent up to a place in it; `left` are the characters of all texts that follow. */
  #isSettled({ at, length, ended }: Reached, left: number): boolean {
    if (at <= ended) return true
    const following = 'characters' in this.#hold ? this.#hold.characters : maxSentence
    return length - at >= following || left >= following * restTimes
  }
}

/** Place in a text that grows, its length, and the place up to which its sentences are whole. */
type Reached = { at: number; length: number; ended: number }

/** Returns the end of the last whole sentence in a text. */
function endOfSentences(text: string): number {
  let end = 0
  for (const { index, 0: match } of text.matchAll(sentenceEnd)) end = index + match.length
  return end
}

const sentenceEnd = /[.!?…]["'”’)\]]*\s+|[。！？]|\n/g
