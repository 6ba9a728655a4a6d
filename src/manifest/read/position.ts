import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
} from 'yaml'
import { maxDisputedLength } from './read-yaml.ts'

/** Place of a value in a file: names of members and indexes of items. */
export type Path = readonly (string | number)[]

/** A parsed text with the places of its lines. */
export type Parsed = { document: Document.Parsed; lines: LineCounter }

/** A place in a file; both count from 1. */
export type Place = { line: number; column: number }

/** Parses a text, keeping the place of everything in it. */
export function parseNodes(text: string): Parsed {
  const lines = new LineCounter()
  // The check compares each key with all others of its map. Of long texts js-yaml has made it.
  const uniqueKeys = text.length <= maxDisputedLength
  return { document: parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys }), lines }
}

/** The place of the value (or name) that a path leads to, or of the nearest parent that exists. */
export function placeOf(parsed: Parsed, path: Path, what: 'value' | 'name'): Place {
  const { node, name } = walk(parsed, path)
  const chosen = (what === 'name' && name) || node || name
  return place(parsed, chosen?.range?.[0] ?? 0)
}

/** The place of the character at `offset` of the text that a path leads to, as the YAML writes that text. */
export function placeInText(parsed: Parsed, text: string, path: Path, offset: number): Place {
  const { node } = walk(parsed, path)
  if (!isScalar(node) || !node.range) return placeOf(parsed, path, 'value')
  const [start, end] = node.range
  const written = text.slice(start, end)
  if (node.type === 'BLOCK_LITERAL') return inBlock(parsed, node, written, offset)
  return place(parsed, start + writtenOffset(written, offset, node.type))
}

type Found = { node: Node | null | undefined; name: Node | undefined }

function walk({ document }: Parsed, path: Path): Found {
  let found: Found = { node: document.contents, name: undefined }
  for (const step of path) {
    const next = child(found.node, step)
    if (!next) break
    found = next
  }
  return found
}

function child(node: Node | null | undefined, step: string | number): Found | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step)) as
      | Pair<Node, Node | null>
      | undefined
    // A name without a value stands for itself.
    return pair && { node: pair.value?.range ? pair.value : pair.key, name: pair.key }
  }
  const item = isSeq(node) ? (node.items[Number(step)] as Node | undefined) : undefined
  return item && { node: item, name: item }
}

/** Lines of a literal block are the text's lines, moved right by the indentation. */
function inBlock(parsed: Parsed, node: Scalar, written: string, offset: number): Place {
  const said = String(node.value)
  const before = said.slice(0, offset).split('\n')
  const header = place(parsed, node.range?.[0] ?? 0)
  const indent = indentation(written, said)
  return { line: header.line + before.length, column: indent + (before.at(-1) ?? '').length + 1 }
}

/** Returns the spaces before every line: those that the first line with any text has in the file and not in the text. */
function indentation(written: string, said: string): number {
  const spaces = (line: string | undefined) => (line === undefined ? 0 : line.length - line.trimStart().length)
  const content = written.split('\n').slice(1)
  const first = content.findIndex((line) => line.trim() !== '')
  return Math.max(0, spaces(content[first]) - spaces(said.split('\n')[first]))
}

const quoteForms: { [type: string]: RegExp } = {
  QUOTE_SINGLE: /''|./gsy,
  QUOTE_DOUBLE: /\\(?:x..|u.{4}|U.{8}|.)|./gsy,
}

/** Returns the position in the file's spelling of a text at which its character at `offset` stands. Folded lines are taken as they are. */
function writtenOffset(written: string, offset: number, type: Scalar['type']): number {
  const form = quoteForms[type ?? '']
  if (!form) return offset
  form.lastIndex = 1
  for (let count = 0; count < offset && form.exec(written); count++);
  return Math.min(form.lastIndex || written.length - 1, written.length)
}

function place({ lines }: Parsed, offset: number): Place {
  const { line, col } = lines.linePos(offset)
  return { line: Math.max(1, line), column: Math.max(1, col) }
}
