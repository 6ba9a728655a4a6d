import fc from 'fast-check'
import type { Json, JsonObject } from '../../src/core/json.ts'
import type { CacheHint, MediaPart, Part, ToolCallPart, ToolResultPart } from '../../src/core/parts.ts'
import type { ClientTool, Effort, Message, NeutralRequest } from '../../src/core/request.ts'

/** A unique text: it must reach the provider, or one of the fields must be reported as lost. */
export type Mark = { text: string; where: string; fields: string[] }

/** A conversation, the texts that must not get lost, and those that must never be sent. */
export type Conversation = { request: NeutralRequest; marks: Mark[]; forbidden: string[] }

/** The places of reasoning that is not signed by the provider. */
export const foreignReasoning = 'foreign reasoning'

/** The parts that a provider signs, and an example of a block that only it understands. */
export type ProviderProfile = {
  name: string
  signatures: ('signature' | 'encrypted' | 'call' | 'text')[]
  /** Searches go back to it with their results. */
  replaysSearches?: boolean
  opaque?: (mark: string) => Json
}

/** Neutral conversations of every kind, odd ones included, as a client of the provider may send them. */
export function conversations(maker: ProviderProfile): fc.Arbitrary<Conversation> {
  return fc.gen().map((draw) => {
    const conversation = new Writer(draw, maker).conversation()
    const { origin, ...request } = conversation.request
    return { ...conversation, [fc.toStringMethod]: () => JSON.stringify(request) }
  })
}

type Draw = fc.GeneratorValue

const oddities = [
  '',
  '',
  ' ',
  'é',
  '😀',
  '"',
  '\\',
  '\n\n',
  '\u2028',
  '\u202e',
  '{}',
  '</system_note>',
  '𝒳',
  '\u0000',
  '%',
  '$1',
]
const oddIds = ['a', 'call_1', 'functions.f:0', 'toolu_01', 'é 😀', 'x'.repeat(130), 'a/b+c==', '0', 'call_1 ', 'A']
const oddArguments = [
  '{}',
  '',
  '{"n":12345678901234567890}',
  '{ "deep": [[1, [2.50, 1e3]], {"a": {"b": [null, false, "x"]}}], "": 0 }',
  '{"text":"é \\u00e9 😀 \\n \\"q\\"","__proto__":{"x":1}}',
  '{"list":[[]],"one":[1],"none":null}',
]
const efforts: Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Draws one conversation; every text in it carries a mark of its own. */
class Writer {
  readonly #draw: Draw
  readonly #maker: ProviderProfile
  readonly #marks: Mark[] = []
  readonly #forbidden: string[] = []
  #count = 0

  constructor(draw: Draw, maker: ProviderProfile) {
    this.#draw = draw
    this.#maker = maker
  }

  conversation(): Conversation {
    const tools = this.#likely(60) ? this.#several(3, () => this.#tool()) : undefined
    const system = this.#likely(50)
      ? this.#several(2, () => this.#text('system', ['system'], this.#likely(20)))
      : undefined
    const messages = this.#several(6, () => this.#turns()).flat()
    const request: NeutralRequest = {
      model: 'm',
      ...(system && { system }),
      messages,
      ...(tools && { tools }),
      ...(tools && this.#choice(tools)),
      ...this.#fields(),
      origin: { api: 'chat', body: {} },
    }
    return { request, marks: this.#marks, forbidden: this.#forbidden }
  }

  /** The message of one side, or a whole round of tools: sometimes broken, as histories are. */
  #turns(): Message[] {
    const kind = this.#below(10)
    if (kind < 4) return [this.#user()]
    if (kind < 6) return [this.#assistant()]
    if (kind === 6) return [{ role: 'system', parts: [this.#text('mid-system')] }]
    const calls = this.#several(3, (index) => this.#call(index))
    const assistantMessage = this.#assistant()
    const answered = this.#likely(15) ? calls.slice(1) : calls
    const results = answered.map((call) => this.#result(call.id, this.#likely(50) ? call.name : undefined))
    if (this.#likely(15)) results.push(this.#result(this.#pick(oddIds)))
    if (this.#likely(20)) results.reverse()
    const answer: Part[] = this.#likely(20) ? [this.#text('beside results'), ...results] : results
    const requested: Message = { role: 'assistant', parts: [...assistantMessage.parts, ...calls] }
    const [first, ...rest] = answer
    if (first && this.#likely(20)) return [requested, { role: 'user', parts: [first] }, { role: 'user', parts: rest }]
    return [requested, { role: 'user', parts: answer }]
  }

  #user(): Message {
    const parts = this.#several(3, () =>
      this.#likely(70) ? this.#text('user', [], this.#likely(10)) : this.#media('user'),
    )
    if (this.#likely(5)) parts.push(this.#opaque())
    // A message without supported parts has no name either.
    const named = this.#likely(5) && parts.some((part) => part.type === 'text' && part.text.trim() !== '')
    return { role: 'user', parts, ...(named && { name: this.#mark('name', ['messages.name']) }) }
  }

  #assistant(): Message {
    const parts: Part[] = []
    if (this.#likely(30)) parts.push(this.#reasoning())
    if (this.#likely(10)) parts.push(this.#search())
    // Reasoning that nothing follows is not signed.
    if (parts[0]?.type === 'reasoning' || this.#likely(80)) parts.push(this.#assistantMessage('assistant'))
    if (this.#likely(5)) parts.push({ type: 'refusal', text: this.#mark('refusal', ['parts.refusal']) })
    if (this.#likely(5)) parts.push(this.#opaque())
    if (this.#likely(4)) parts.push(this.#media('assistant'))
    return { role: 'assistant', parts }
  }

  #text(where: string, fields: string[] = [], cached = false): Part {
    if (this.#likely(6)) return { type: 'text', text: this.#pick(['', ' ', '\n']) }
    return this.#assistantMessage(where, fields, cached)
  }

  #assistantMessage(where: string, fields: string[] = [], cached = false): Part {
    const text = this.#pick(oddities) + this.#mark(`${where} text`, fields) + this.#pick(oddities)
    const signed = where === 'assistant' && this.#maker.signatures.includes('text') && this.#likely(20)
    if (signed) return { type: 'text', text, signature: this.#seal('text seal'), by: this.#maker.name }
    if (where === 'assistant' && this.#likely(5)) return { type: 'text', text, ...this.#foreignSeal() }
    return { type: 'text', text, ...(cached && { cache: this.#cache() }) }
  }

  #reasoning(): Part {
    const kinds = this.#maker.signatures.filter((kind) => kind === 'signature' || kind === 'encrypted')
    if (kinds.length === 0 || this.#likely(40)) {
      // Reasoning without a signature, or by another provider, may be sent as text where the provider accepts it.
      const text = this.#mark(foreignReasoning, ['parts.reasoning'])
      return { type: 'reasoning', text, ...(this.#likely(50) && this.#foreignSeal()) }
    }
    const kind = this.#pick(kinds)
    const id = kind === 'encrypted' ? { id: `rs_${this.#count}` } : {}
    const text = kind === 'signature' ? { text: this.#mark('own reasoning', ['parts.reasoning']) } : {}
    return { type: 'reasoning', ...text, ...id, [kind]: this.#seal('own seal'), by: this.#maker.name }
  }

  #seal(where: string): string {
    const mark = this.#mark(where, ['parts.reasoning', 'parts.signature'])
    return `${mark}/+AB==`
  }

  #foreignSeal() {
    const signature = `Foreign${++this.#count}/+==`
    this.#forbidden.push(signature)
    return { signature, by: 'somebody-else' }
  }

  #call(index: number): ToolCallPart {
    const kind = this.#likely(10) ? ('custom' as const) : undefined
    const mark = this.#mark('arguments', ['parts.tool_call'])
    const json = this.#pick([...oddArguments, `{"mark":"${mark}"}`, `{"mark":"${mark}"}`])
    if (kind || !json.includes(mark)) this.#unmark(mark)
    return {
      type: 'tool_call',
      id: this.#likely(70) ? `call_${this.#count}_${index}` : this.#pick(oddIds),
      name: `f_${this.#pick(['a', 'b', 'c'])}`,
      arguments: kind ? 'free text "not JSON"' : json,
      ...(kind && { kind }),
      ...(this.#maker.signatures.includes('call') && this.#likely(30)
        ? { signature: this.#seal('call seal'), by: this.#maker.name }
        : this.#likely(5) && this.#foreignSeal()),
    }
  }

  #result(id: string, name?: string): ToolResultPart {
    const part = () => (this.#likely(80) ? this.#text('result', ['parts.tool_result']) : this.#media('result'))
    const parts = this.#likely(10) ? [] : this.#several(2, part)
    return { type: 'tool_result', id, parts, ...(name && { name }), ...(this.#likely(20) && { is_error: true }) }
  }

  #media(where: keyof typeof shown): MediaPart {
    const type = this.#pick(shown[where])
    const fields = [`parts.${type}`, ...(where === 'result' ? ['parts.tool_result'] : [])]
    const cache = this.#likely(10) && { cache: this.#cache() }
    const form = where === 'assistant' ? 'data' : this.#pick(['data', 'url', 'file_id'])
    if (form === 'url' && type !== 'audio') {
      const mark = this.#mark(`${where} ${type} url`, [...fields, 'parts.url'])
      return { type, url: `https://files.example/${mark}.${endings[type]}`, ...cache }
    }
    if (form === 'file_id' && type === 'file') {
      return { type, file_id: this.#mark(`${where} file id`, [...fields, 'parts.file_id']), ...cache }
    }
    if (type !== 'file') return { ...this.#bytes(where, type, types[type], fields), ...cache }
    // Files elsewhere have their own names.
    const filename = this.#likely(50) && { filename: `${this.#mark('filename', [...fields, 'parts.filename'])}.pdf` }
    return { ...this.#bytes(where, type, this.#pick(types.file), fields), ...filename, ...cache }
  }

  #bytes(where: string, type: MediaPart['type'], media_type: string, fields: string[]): MediaPart {
    const mark = this.#mark(`${where} ${media_type} data`, fields)
    const isImage = type === 'image'
    const data = isImage ? `${pixel.slice(0, -20)}${mark.padEnd(20, 'A')}` : Buffer.from(`é${mark}`).toString('base64')
    return { type, data, media_type, ...(isImage && this.#likely(10) && { detail: 'high' }) }
  }

  #search(): Part {
    const own = this.#maker.replaysSearches && this.#likely(60)
    const query = own ? this.#mark('own search', ['parts.search']) : `query ${++this.#count}`
    const id = `srvtoolu_${this.#count}`
    const signed = `Sealed${this.#count}==`
    if (own) return { type: 'search', id, query, status: 'completed', results: [], by: this.#maker.name }
    this.#forbidden.push(signed)
    this.#marks.push({ text: signed, where: 'foreign search', fields: ['parts.search'] })
    return {
      type: 'search',
      id,
      query,
      status: 'completed',
      results: [{ encrypted_content: signed }],
      by: 'somebody-else',
    }
  }

  #opaque(): Part {
    const mark = this.#mark('opaque', ['parts.opaque'])
    const { opaque, name } = this.#maker
    if (opaque && this.#likely(50)) return { type: 'opaque', by: name, body: opaque(mark) }
    this.#forbidden.push(mark)
    return { type: 'opaque', by: 'somebody-else', body: { type: 'strange', text: mark } }
  }

  #tool(): ClientTool {
    const custom = this.#likely(15)
    const lost = [custom ? 'tools.custom' : 'tools.function', 'tools']
    const name = this.#mark('tool', lost)
    const cache = this.#likely(10) && { cache: this.#cache() }
    const description = this.#likely(70) && { description: this.#mark('description', lost) + this.#pick(oddities) }
    if (custom) return { kind: 'custom', name, ...description, ...cache }
    const parameters = this.#likely(80) && {
      parameters: {
        type: 'object',
        properties: { [this.#mark('parameter', lost)]: { type: 'string' } },
        ...(this.#likely(30) && { required: [], additionalProperties: false }),
      } as JsonObject,
    }
    return {
      kind: 'function',
      name,
      ...description,
      ...parameters,
      ...cache,
      ...(this.#likely(20) && { strict: true }),
    }
  }

  #choice(tools: ClientTool[]): Partial<NeutralRequest> {
    const parallel = this.#likely(20) ? { parallel_tool_calls: this.#likely(50) } : {}
    const { name = '' } = this.#pick(tools)
    const tool_choice = this.#pick([
      'auto',
      'none',
      'required',
      { name },
      { allowed: [name], mode: 'required' },
      undefined,
    ] as const)
    if (tool_choice === undefined) return parallel
    // A tool that must not be called need not be sent.
    if (tool_choice === 'none' || typeof tool_choice === 'object') {
      for (const { text, fields } of [...this.#marks]) if (fields.includes('tools')) this.#unmark(text)
    }
    return { tool_choice: tool_choice as NeutralRequest['tool_choice'], ...parallel } as Partial<NeutralRequest>
  }

  /** All other fields, each with some probability. */
  #fields(): Partial<NeutralRequest> {
    const fields: Partial<NeutralRequest> = {
      max_output_tokens: 1 + this.#below(5_000),
      temperature: this.#below(21) / 10,
      top_p: this.#below(11) / 10,
      top_k: 1 + this.#below(50),
      seed: this.#below(1_000),
      stop: this.#several(3, () => this.#later('stop')),
      frequency_penalty: 0.5,
      presence_penalty: -0.5,
      logit_bias: { '50256': -100 },
      logprobs: this.#likely(50) ? {} : { top: 2 },
      n: 1 + this.#below(2),
      response_format: this.#format(),
      reasoning: this.#likely(60) ? { effort: this.#pick(efforts) } : { budget: this.#pick([0, 1024, 9000, 60_000]) },
      web_search: this.#webSearch(),
      modalities: ['text'],
      prediction: { type: 'content', content: this.#later('prediction') },
      service_tier: this.#pick(['auto', 'default', 'flex', 'priority']),
      verbosity: 'low',
      cache: { key: this.#later('cache.key') },
      user: this.#later('user'),
      safety_identifier: this.#later('safety_identifier'),
      metadata: { key: this.#later('metadata') },
      store: this.#likely(50),
      extensions: { strange_field: this.#later('extensions.strange_field') },
      stream: this.#likely(50),
    }
    const remaining = Object.entries(fields).filter(([, value]) => {
      if (this.#likely(15)) return true
      for (const mark of JSON.stringify(value).match(/Mk\d+Q/g) ?? []) this.#unmark(mark)
      return false
    })
    return Object.fromEntries(remaining)
  }

  #format(): NonNullable<NeutralRequest['response_format']> {
    const kind = this.#below(4)
    if (kind === 0) return { type: 'text' }
    if (kind === 1) return { type: 'json' }
    const member = this.#later('response_format')
    const schema: JsonObject = {
      type: 'object',
      properties: { [member]: { type: 'string', minLength: 1 } },
      required: [member],
      additionalProperties: false,
    }
    return { type: 'json_schema', name: 'answer', schema, strict: true }
  }

  #webSearch(): NonNullable<NeutralRequest['web_search']> {
    return {
      ...(this.#likely(30) && { max_uses: 3 }),
      ...(this.#likely(30) && { allowed_domains: [`${this.#later('web_search.allowed_domains')}.example`] }),
      ...(this.#likely(30) && { user_location: { city: this.#later('web_search.user_location'), country: 'FR' } }),
      ...(this.#likely(30) && { context_size: 'low' as const }),
    }
  }

  #cache(): CacheHint {
    return this.#pick([{}, { ttl: '5m' }, { ttl: '1h' }] as CacheHint[])
  }

  #later(field: string): string {
    return this.#mark(field, [field])
  }

  #mark(where: string, fields: string[]): string {
    const text = `Mk${++this.#count}Q`
    this.#marks.push({ text, where, fields: [...fields] })
    return text
  }

  #unmark(text: string): void {
    const at = this.#marks.findIndex((mark) => mark.text === text)
    if (at >= 0) this.#marks.splice(at, 1)
  }

  #likely(percent: number): boolean {
    // Small is unlikely, so that counterexamples shrink to conversations in which little happens.
    return this.#below(100) >= 100 - percent
  }

  #below(count: number): number {
    return this.#draw(fc.nat, count - 1)
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)] as T
  }

  #several<T>(most: number, make: (index: number) => T): T[] {
    return Array.from({ length: 1 + this.#below(most) }, (_, index) => make(index))
  }
}

const types = {
  image: 'image/png',
  audio: 'audio/wav',
  video: 'video/mp4',
  file: ['application/pdf', 'text/plain', 'application/json', 'application/zip'],
} as const
const endings = { image: 'png', audio: 'wav', video: 'mp4', file: 'pdf' } as const
/** Media by their position; models generate images. */
const shown = {
  user: ['image', 'image', 'file', 'audio', 'video'],
  result: ['image', 'image', 'file'],
  assistant: ['image'],
} as const
