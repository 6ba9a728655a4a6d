import type { LoopbackProvider } from '../../helpers/provider.ts'

/**
 * One reply of a model. Providers that sign thoughts sign them here; after a search, of the web or of files, the text cites
 * its source.
 */
export type Reply = {
  thought?: string
  search?: string
  fileSearch?: string
  text?: string
  calls?: ReplyCall[]
  cited?: boolean
  /** Why it was cut short. */
  ended?: 'length' | 'filter'
  /** Tokens of the prompt that came from a cache, where the wire's `cost` has their price. */
  cached?: number
}

/** One answer of a provider: a reply, none, a stream that stays open, breaks or fails after its first texts, a refusal. */
export type Step = Reply | 'silence' | 'stay' | 'break' | 'fail' | Refusal

/** A refusal with this status. */
export type Refusal = { refuse: number; retryAfter?: string }

/** A call; `nameless` ones have no id where the format lets them. */
export type ReplyCall = { id: string; nameless?: true; name: string; arguments: { [name: string]: unknown } }

/** Features that a provider's format lacks: such a cell names the field that is reported as lost. */
export type Lack = 'search' | 'file' | 'citations' | 'custom tools'

/** A wire format as its provider documents it. */
export type Wire = {
  dialect: string
  slug: string
  /** Environment variables with the address of the played provider left out. */
  env: { [name: string]: string }
  models: { plain: string; thinker: string; searcher: string; seer?: string }
  lacks: { [lack in Lack]?: true }
  /** Where every request goes, and the headers that it has. */
  address: { path: RegExp; headers?: { [name: string]: string | RegExp } }
  /** The finish reason of a reply that was cut short. */
  ends: { length: string; filter?: string }
  /** The cost of `counted` with ten tokens from a cache. USD. */
  cost?: number
  /** How its provider reports an error: with a status, and inside a stream. */
  failures?: { refusal(status: number): { status: number; headers?: object; body: object }; frame: string }
  /** Whether the request is for a stream. */
  isStream(path: string, body: Body): boolean
  whole(reply: Reply): object
  /** The bytes of a stream, frame by frame. */
  frames(reply: Reply): (string | Buffer)[]
  contentType: string
  read(body: Body): Arrived
  /** How reasoning is sent back to its provider, anywhere in the body. */
  thoughtSent(thought: string): string
}

// biome-ignore lint/suspicious/noExplicitAny: bodies may have any shape.
export type Body = any

/** What reached a provider, in words that are the same for every format. Neighbouring turns of one role are one. */
export type Arrived = {
  system: string
  tools: string[]
  hasSchema: boolean
  searches: boolean
  /** The most tokens of output, and the texts that end it; undefined where the format has no such thing. */
  limit: number | undefined
  stops?: string[] | undefined
  /** Whether a tool must be called. */
  mustCall?: boolean
  turns: ArrivedTurn[]
}

export type ArrivedTurn = {
  role: 'user' | 'assistant'
  text: string
  /** Base64 of pictures, or their addresses. */
  images: string[]
  files: number
  calls: { id?: string; name: string; arguments: unknown }[]
  results: { id?: string; text: string; images?: number }[]
}

/** The source that every cited text names. */
export const source = { url: 'https://example.com/ruby', title: 'Ruby', quote: 'Ruby is at 4.0' }

/** The file that every search of files finds, in which a text is cited. */
export const file = { file_id: 'file-ruby', filename: 'ruby.md', text: 'Ruby is at 4.0' }

/** The counts of every simulated provider. Tokens. */
export const counted = { input: 40, output: 12 }

/** The finish reason of a complete reply without tool calls. */
export function endOf({ ended }: Reply, { length, filter = length }: Wire['ends'], done: string): string {
  return ended === 'length' ? length : ended === 'filter' ? filter : done
}

/** The signature of a thought. */
export function signatureOf(thought: string): string {
  return Buffer.from(`signature of ${thought}`).toString('base64')
}

/** A text in the pieces of a stream. */
export function pieces(text: string): string[] {
  const size = Math.max(1, Math.ceil(text.length / 3))
  return [text.slice(0, size), text.slice(size, 2 * size), text.slice(2 * size)].filter(Boolean)
}

/** A frame of server-sent events. */
export function frame(payload: object, event?: string): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(payload)}\n\n`
}

/** Turns, with those of one role in a row joined. */
export function joined(turns: ArrivedTurn[]): ArrivedTurn[] {
  const all: ArrivedTurn[] = []
  for (const turn of turns) {
    const last = all.at(-1)
    if (last?.role !== turn.role) all.push(turn)
    else
      Object.assign(last, {
        text: last.text + turn.text,
        images: [...last.images, ...turn.images],
        files: last.files + turn.files,
        calls: [...last.calls, ...turn.calls],
        results: [...last.results, ...turn.results],
      })
  }
  return all
}

/** A turn with the given members only. */
export function turn(role: string, reply: Partial<ArrivedTurn>): ArrivedTurn {
  const side = role === 'assistant' || role === 'model' ? 'assistant' : 'user'
  return { text: '', images: [], files: 0, calls: [], results: [], ...reply, role: side }
}

/** The text of a string, of a block or of blocks. */
export function wordsOf(content: Body): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map(wordsOf).join('')
  if (content === null || typeof content !== 'object') return ''
  return wordsOf(content.text ?? content.content ?? content.output ?? content.data ?? '')
}

/** The text of text blocks only. */
export function textIn(content: Body): string {
  if (typeof content === 'string') return content
  const blocks: Body[] = Array.isArray(content) ? content : []
  return blocks.map((block) => (typeof block.text === 'string' && !block.thought ? block.text : '')).join('')
}

/** The base64 of a data URL, or the address. */
export function pictureIn(url: string): string {
  return url.replace(/^data:[^,]*,/, '')
}

/** A provider that replies in given steps and records its requests. */
export type FakeProvider = LoopbackProvider & {
  wire: Wire
  /** Sets the next replies; forgets earlier requests. */
  play(...steps: Step[]): void
  arrived(index: number): Arrived
  /** All steps were used. */
  done(): boolean
}
