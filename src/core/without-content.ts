/**
 * Returns a message of a provider without what it repeats of the request that it answers: for logs and for the ledger, which contain no
 * prompts. `content` is the request; names in it, such as those of models and tools, are no content. Where it is too long to be searched,
 * the message is cut at its first quote.
 */
export function withoutContent(sent: string, content: unknown): string {
  // Prompts of embeddings may be tokens.
  const message = sent.replace(tokenList, hidden)
  const found = textsIn(content)
  const texts = found && message.includes('\\') ? found.flatMap(formsOf) : found
  if (!texts) return message.replace(/(?<![\p{L}\p{N}])["'`“‘].*$/su, hidden)
  const short = texts.filter(({ length }) => length < minLength)
  const phrases = short.filter((text) => isPhrase.test(text) && message.includes(text))
  const left = phrases.reduce((text, phrase) => text.replaceAll(phrase, hidden), message)
  return withoutRuns(left, texts)
}

/** Returns a text, and its forms inside of JSON, with and without letters beyond ASCII. */
function formsOf(text: string): string[] {
  const escaped = JSON.stringify(text).slice(1, -1)
  const ascii = escaped.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [...new Set([text, escaped, ascii])]
}

const tokenList = /\d+(?:\s*,\s*\d+){7,}/g
const hidden = '[content]'
/** Minimum length of what counts as repeated: less than that any two texts have in common. Characters. */
const minLength = 16
/** Length of the pieces in which a request is looked up: of any run of `minLength` characters one whole piece is part. */
const pieceLength = minLength / 2
/** A short text that is more than a word. */
const isPhrase = /\S\s+\S/
/** Maximum length of a request that is searched, which takes some milliseconds. Characters. */
const maxSearched = 1_000_000
/** Members whose value names something, if it is one word: in a message it says what was wrong. */
const naming: ReadonlySet<string> = new Set(['model', 'name', 'type', 'role', 'id', 'object'])
const isWord = /^[\w.:/@+-]{1,128}$/
/** Members that may hold files, which messages do not repeat. */
const holding: ReadonlySet<string> = new Set(['data', 'url', 'image_url', 'file_data', 'b64_json'])
const isData = /^(?:data:[^\s]{50}|[A-Za-z0-9+/=_-]{64})/

/** Lists the texts of a request; undefined where they are too long. */
function textsIn(content: unknown): string[] | undefined {
  const found: string[] = []
  const pending: unknown[] = [content]
  let length = 0
  // A short text costs a search as well.
  const add = (text: string) => {
    found.push(text)
    length += text.length + minLength
  }
  while (pending.length > 0 && length <= maxSearched) {
    const value = pending.pop()
    if (typeof value === 'string') add(value)
    else if (Array.isArray(value)) {
      length += value.length
      if (length <= maxSearched) for (const item of value) pending.push(item)
    } else if (value !== null && typeof value === 'object') {
      length += minLength
      for (const [name, member] of Object.entries(value)) if (isContent(name, member)) pending.push(member)
    }
  }
  return length > maxSearched ? undefined : found
}

function isContent(name: string, value: unknown): boolean {
  if (typeof value !== 'string') return true
  return !(naming.has(name) && isWord.test(value)) && !(holding.has(name) && isData.test(value))
}

/** Hides the longest runs of a message that are in one of the texts. */
function withoutRuns(message: string, texts: readonly string[]): string {
  const places = placesIn(message)
  if (places.size === 0) return message
  const isHidden = new Uint8Array(message.length)
  for (const text of texts) {
    for (let at = 0; at + pieceLength <= text.length; at += pieceLength) {
      const piece = text.slice(at, at + pieceLength)
      for (const place of places.get(piece) ?? []) hideRun({ message, text, place, at }, isHidden)
    }
  }
  return joined(message, isHidden)
}

/** Lists where each piece of a message is in it. */
function placesIn(message: string): Map<string, number[]> {
  const places = new Map<string, number[]>()
  for (let at = 0; at + pieceLength <= message.length; at++) {
    const piece = message.slice(at, at + pieceLength)
    const known = places.get(piece)
    if (!known) places.set(piece, [at])
    // Of a message that repeats itself a few places are enough.
    else if (known.length < maxPlaces) known.push(at)
  }
  return places
}

const maxPlaces = 8

type Meeting = { message: string; text: string; place: number; at: number }

/** Marks the run around a place that a message and a text have in common, where it is long enough. */
function hideRun({ message, text, place, at }: Meeting, isHidden: Uint8Array): void {
  if (isHidden[place] === 1 && isHidden[place + pieceLength - 1] === 1) return
  let before = 0
  while (before < place && before < at && message[place - before - 1] === text[at - before - 1]) before++
  let after = pieceLength
  while (place + after < message.length && message[place + after] === text[at + after]) after++
  if (before + after >= minLength) isHidden.fill(1, place - before, place + after)
}

function joined(message: string, isHidden: Uint8Array): string {
  let text = ''
  for (let at = 0; at < message.length; at++) {
    if (isHidden[at] === 0) text += message[at]
    else if (at === 0 || isHidden[at - 1] === 0) text += hidden
  }
  return text
}
