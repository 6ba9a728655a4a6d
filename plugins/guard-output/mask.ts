import type { TextChange, TextChanges } from '../lib/changed-reply.ts'
import { mapJsonText } from '../lib/json-texts.ts'
import type { FindMasked } from './rules.ts'

/** Masks texts that may arrive in pieces: their ends are held back, as something may begin there that only what follows completes. */
export class Mask implements TextChange {
  readonly #find: FindMasked
  readonly #held: number
  readonly #onMasked: (by: string) => void

  constructor(find: FindMasked, held: number, onMasked: (by: string) => void) {
    this.#find = find
    this.#held = held
    this.#onMasked = onMasked
  }

  change(text: string, before = ''): string {
    if (text === '') return text
    let masked = ''
    let from = 0
    for (const { by, start: first, end: last } of this.#find(before + text)) {
      const start = Math.max(first - before.length, from)
      const end = last - before.length
      if (end <= start) continue
      masked += `${text.slice(from, start)}[${by}]`
      from = end
      this.#onMasked(by)
    }
    return from === 0 ? text : masked + text.slice(from)
  }

  heldFrom(text: string, before = ''): number {
    // Looking at a text takes longer than keeping it: it is looked at in pieces.
    if (text.length < 2 * this.#held) return 0
    let from = runStart(text, text.length - this.#held)
    const open = text.lastIndexOf(keyBegin, from)
    if (open >= 0 && text.length - open < maxKey && !keyEnd.test(text.slice(open))) from = open
    if (from === 0) return 0
    for (const { start, end } of this.#find(before + text)) {
      const first = Math.max(start - before.length, 0)
      if (first < from && end - before.length > from) from = first
    }
    return from
  }
}

/** Returns the changes that mask all texts. Those that are JSON are held back until they are complete. */
export function maskChanges(mask: Mask): TextChanges {
  const json = { change: (text: string) => mapJsonText(text, (one) => mask.change(one)), heldFrom: () => 0 }
  return { text: mask, json }
}

/** Returns where the word at a place begins, so that no token is cut: one in ASCII and of bounded length. */
function runStart(text: string, at: number): number {
  let start = at
  while (start > 0 && at - start < maxRun && isInRun(text.charCodeAt(start - 1))) start--
  if (at - start < maxRun) return start
  return at
}

function isInRun(code: number): boolean {
  return code > 32 && code < 127
}

/** A private key, whose lines are words. */
const keyBegin = '-----BEGIN '
const keyEnd = /-----END [A-Z0-9 ]{0,40}-----/

/** Lengths of the longest tokens and private keys. */
const maxRun = 12_000
const maxKey = 17_000
