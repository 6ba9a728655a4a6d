import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { type Check, filledText, list, object, oneOf, refuse, required } from '../check.ts'
import { tokensOfText } from './shared.ts'

/** Maximum number of inputs in one request, the same as OpenAI's. */
const maxInputs = 2_048

/** A text, tokens, or a list of texts, lists of tokens, and contents of texts and images. */
export const embeddingInput: Check<Json> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  const items = list(value, path)
  if (items.length === 0) return refuse(path, 'a list that is not empty', value)
  if (isTokens(items)) return items
  if (items.length > maxInputs) refuse(path, `a list of at most ${maxInputs} inputs`, value)
  return items.map((item, index) => readItem(item, `${path}[${index}]`))
}

const readItem: Check<Json> = (item, path) => {
  if (isObject(item)) {
    const parts = required(item.content, `${path}.content`, 'a list of parts', list)
    if (parts.length === 0) refuse(`${path}.content`, 'a list that is not empty', parts)
    return { content: parts.map((part, index) => contentPart(part, `${path}.content[${index}]`)) }
  }
  if (Array.isArray(item) && item.length > 0 && isTokens(item)) return item
  return filledText(item, path)
}

/** A text or an image. */
export const contentPart: Check<JsonObject> = (value, path) => {
  const part = object(value, path)
  const type = required(part.type, `${path}.type`, "'text' or 'image_url'", oneOf(['text', 'image_url']))
  if (type === 'text') return { type, text: required(part.text, `${path}.text`, 'a string', filledText) }
  const image = required(part.image_url, `${path}.image_url`, 'an object with a url', object)
  return { type, image_url: { url: required(image.url, `${path}.image_url.url`, 'an address', filledText) } }
}

/** Checks whether a list is one input of token ids. */
export function isTokens(items: readonly Json[]): boolean {
  return items.every((item) => Number.isInteger(item) && (item as number) >= 0)
}

/** Returns the number of vectors that an input yields. */
export function inputsIn(input: Json | undefined): number {
  return Array.isArray(input) && !isTokens(input) ? input.length : 1
}

/** Counts the images in an input. */
export function imagesIn(input: Json | undefined): number {
  return partsOf(input).filter(({ type }) => type === 'image_url').length
}

/** The most tokens of the texts of an input: no text has more of them than bytes. Servers put a few around each. */
export function maxTokensIn(input: Json | undefined): number {
  return sumOver(input, (text) => Buffer.byteLength(text) + 8)
}

/** The texts of an input. */
export function textsIn(input: Json | undefined): string[] {
  const texts: string[] = []
  sumOver(input, (text) => texts.push(text))
  return texts
}

/** The estimated tokens of the texts of an input. */
export function tokensIn(input: Json | undefined): number {
  return sumOver(input, tokensOfText)
}

function sumOver(input: Json | undefined, measure: (text: string) => number): number {
  if (typeof input === 'string') return measure(input)
  if (isObject(input)) return sumOver(textsOf(input), measure)
  if (!Array.isArray(input)) return 0
  if (isTokens(input)) return input.length
  return input.reduce((sum: number, item) => sum + sumOver(item, measure), 0)
}

function textsOf(input: JsonObject): string[] {
  return partsOf([input]).flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
}

function partsOf(input: Json | undefined): JsonObject[] {
  const contents = Array.isArray(input) ? input.filter(isObject) : []
  return contents.flatMap(({ content }) => (Array.isArray(content) ? content.filter(isObject) : []))
}
