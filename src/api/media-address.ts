import { Buffer } from 'node:buffer'
import type { MediaPart } from '../core/parts.ts'
import { isTextType, textOfFile } from '../core/text-files.ts'
import { type Check, refuse } from './check.ts'

/** The bytes of a file as base64. */
export type FileData = Required<Pick<MediaPart, 'data' | 'media_type'>>

/** Checks whether a text is an address of its own, not data. Only its beginning is examined: data may be long. */
export function isAddress(text: string): boolean {
  return /^(?!data:)[a-z][a-z0-9+.-]*:\/\/./i.test(text.slice(0, 64))
}

/** An address. Throws RouterError 400 for any other text. */
export const address: Check<string> = (value, path) => {
  return typeof value === 'string' && isAddress(value) ? value : refuse(path, 'an http(s) URL', value)
}

/** Base64 text, which many take an address or a data URL for. Throws RouterError 400. */
export const base64: Check<string> = (value, path) => {
  const isOther = typeof value !== 'string' || isAddress(value) || value.slice(0, 5).toLowerCase() === 'data:'
  return isOther ? refuse(path, 'base64 text, without `data:` and no URL', value) : value
}

/** Characters of a data URL before its data: a media type and its parameters. */
const maxHeadLength = 1_000

/** The contents of a data URL. Throws RouterError 400. */
export function dataOf(url: string, path: string): FileData {
  const comma = url.slice(0, maxHeadLength).indexOf(',')
  if (comma < 0) refuse(path, 'a data URL of the form data:<type>;base64,<data>', url)
  const [type, ...parameters] = url.slice('data:'.length, comma).split(';')
  const body = url.slice(comma + 1)
  const base64 = parameters.some((parameter) => parameter.trim().toLowerCase() === 'base64')
  return { data: base64 ? body : percentDecoded(body), media_type: type?.trim().toLowerCase() || 'text/plain' }
}

/** RFC 2397 data without `;base64` is percent-encoded. */
function percentDecoded(body: string): string {
  if (!body.includes('%')) return Buffer.from(body).toString('base64')
  try {
    return Buffer.from(decodeURIComponent(body)).toString('base64')
  } catch {
    return Buffer.from(body).toString('base64')
  }
}

/** Media types of documents by file extension, where a client sends bare base64. */
const typesByExtension: ReadonlyMap<string, string> = new Map([
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['json', 'application/json'],
  ['log', 'text/plain'],
  ['tsv', 'text/tab-separated-values'],
  ['xml', 'application/xml'],
  ['yaml', 'application/yaml'],
  ['yml', 'application/yaml'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
])

/** Returns the file in a `file_data`: a data URL, an address, or bare base64 whose type follows from its name. Throws RouterError 400. */
export function fileAt(given: string, filename: string | undefined, path: string): { url: string } | FileData {
  if (given.slice(0, 5).toLowerCase() === 'data:') return dataOf(given, path)
  return isAddress(given) ? { url: given } : { data: given, media_type: typeByName(filename) }
}

/** The same `file_data` as every server reads it: bare base64 becomes a data URL. */
export function fileDataUrl(given: string, filename: string | undefined): string {
  const isBare = given.slice(0, 5).toLowerCase() !== 'data:' && !isAddress(given)
  return isBare ? dataUrl({ data: given, media_type: typeByName(filename) }) : given
}

/** A file as a data URL. */
export function dataUrl({ data, media_type }: FileData): string {
  return `data:${media_type};base64,${data}`
}

/** Returns the words of a text file in a data URL, its title first; undefined for any other file. */
export function textOfDataUrl(url: string, filename: string | undefined): string | undefined {
  if (url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const { data, media_type } = dataOf(url, 'file_data')
  return isTextType(media_type) ? textOfFile({ data, ...(filename !== undefined && { filename }) }) : undefined
}

function typeByName(filename: string | undefined): string {
  return typesByExtension.get(filename?.split('.').at(-1)?.toLowerCase() ?? '') ?? 'application/pdf'
}

/** Files that were fetched for a provider that cannot fetch them, by their addresses. */
export type FetchedFiles = ReadonlyMap<string, FileData>

/** An address as it is, or as the data URL of the file that was fetched from it. */
export function linkOrData(url: string, files: FetchedFiles | undefined): string {
  const file = files?.get(url)
  return file ? dataUrl(file) : url
}
