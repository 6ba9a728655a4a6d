import { isObject, type JsonObject, parseJson } from './json.ts'
import type { CallForm, ToolCallPart } from './parts.ts'
import { type ClientTool, isProviderTool, type NeutralRequest } from './request.ts'

/** The forms that the client has for calls of functions, by the names of the functions: made once for each list of tools. */
const known = new WeakMap<NonNullable<NeutralRequest['tools']>, ReadonlyMap<string, CallForm>>()

const none: ReadonlyMap<string, CallForm> = new Map()

/** Returns the forms in which a client gets the calls of tools that are offered as functions, by the functions' names. */
export function callForms({ tools }: Pick<NeutralRequest, 'tools'>): ReadonlyMap<string, CallForm> {
  if (!tools) return none
  let forms = known.get(tools)
  if (!forms) {
    const offered = tools.flatMap((tool): ClientTool[] => (isProviderTool(tool) ? (tool.functions ?? []) : [tool]))
    forms = new Map(offered.flatMap((tool) => formOf(tool)))
    known.set(tools, forms)
  }
  return forms
}

function formOf({ name, kind, form }: ClientTool): [string, CallForm][] {
  if (form) return [[name, form]]
  return kind === 'custom' ? [[name, { kind, name }]] : []
}

/** The member of a function's arguments that is the free text of a custom tool. */
const input = 'input'

/** Returns the function that stands for a custom tool: its free text is an argument, and a grammar is part of the description. */
export function asFunction({ kind, format, description, parameters: _, ...tool }: ClientTool): ClientTool {
  const rule = grammarOf(format)
  const words = [description, rule && `The text must match this ${rule.name}:\n\n${rule.definition}`].filter(Boolean)
  return {
    kind: 'function',
    ...tool,
    ...(words.length > 0 && { description: words.join('\n\n') }),
    parameters: {
      type: 'object',
      properties: { [input]: { type: 'string', description: 'The whole input of the tool, as free text.' } },
      required: [input],
      additionalProperties: false,
    },
  }
}

/** Returns the grammar that a custom tool's input must match; undefined where any text will do. */
export function grammarOf(format: JsonObject | undefined): { name: string; definition: string } | undefined {
  const grammar = isObject(format?.grammar) ? format.grammar : format
  if (typeof grammar?.definition !== 'string') return undefined
  const { syntax } = grammar
  return { name: syntax === 'regex' ? 'regular expression' : 'Lark grammar', definition: grammar.definition }
}

/** Returns the free text of a custom tool as the arguments of the function that stands for it. */
export function textAsArguments(text: string): string {
  return JSON.stringify({ [input]: text })
}

/** Returns the free text in the arguments of a function that stands for a custom tool; models that wrote no JSON meant all of it. */
export function textInArguments(text: string): string {
  const read = parseJson(text)
  if (!isObject(read)) return typeof read === 'string' ? read : text
  if (typeof read[input] === 'string') return read[input]
  const values = Object.values(read)
  if (values.length === 0) return ''
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : text
}

/** Returns a call in the form in which its client gets it: the tool's own name, and the free text of a custom tool. */
export function inClientForm(call: ToolCallPart, form: CallForm): ToolCallPart {
  if (form.kind !== 'custom') return { ...call, form }
  const text = call.kind === 'custom' ? call.arguments : textInArguments(call.arguments)
  return { ...call, kind: 'custom', arguments: text, form }
}

const beginning = new RegExp(String.raw`^\s*\{\s*"${input}"\s*:\s*"`)

/** Reads the free text of a custom tool out of the arguments of a function, as they come. */
export class TextArguments {
  /** The text that has come so far. */
  text = ''
  /** The arguments that are not read yet. */
  #rest = ''
  #state: 'before' | 'inside' | 'over' = 'before'

  /** Returns what more of the arguments adds to the text. */
  take(fragment: string): string {
    if (this.#state === 'over') return ''
    this.#rest += fragment
    if (this.#state === 'before') {
      const match = this.#rest.length > 0 ? beginning.exec(this.#rest.slice(0, maxBeginning)) : null
      if (!match) {
        if (this.#rest.length > maxBeginning) this.#state = 'over'
        return ''
      }
      this.#rest = this.#rest.slice(match[0].length)
      this.#state = 'inside'
    }
    const { end, isOver } = readable(this.#rest)
    const read = parseJson(`"${this.#rest.slice(0, end)}"`)
    this.#rest = this.#rest.slice(end)
    // Broken JSON is read when it is whole.
    if (isOver || typeof read !== 'string') this.#state = 'over'
    const grown = typeof read === 'string' ? read : ''
    this.text += grown
    return grown
  }

  /** Returns what the whole arguments have beyond the text so far. */
  end(whole: string): string {
    return whole.startsWith(this.text) ? whole.slice(this.text.length) : ''
  }
}

/** Characters in which the text must have begun. */
const maxBeginning = 200

/** Returns how much of a JSON string can be read already: escapes and pairs of surrogates are not taken apart. */
function readable(text: string): { end: number; isOver: boolean } {
  let at = 0
  while (at < text.length) {
    if (text[at] === '"') return { end: at, isOver: true }
    const length = lengthOfCharacter(text, at)
    if (at + length > text.length) break
    at += length
  }
  return { end: at, isOver: false }
}

function lengthOfCharacter(text: string, at: number): number {
  if (text[at] !== '\\') return isHighSurrogate(text.charCodeAt(at)) ? 2 : 1
  if (text[at + 1] !== 'u') return 2
  return isHighSurrogate(Number.parseInt(text.slice(at + 2, at + 6), 16)) ? 12 : 6
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}
