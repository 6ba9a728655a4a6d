import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Problem, readingFailure } from '../check/problem.ts'
import type { FileKind } from '../check/schema.ts'
import type { FileCache } from './file-cache.ts'
import { type KnownValue, readSource, type Source, unusableSource } from './source.ts'

/** Previously parsed files by path; a file with the same text is not parsed a second time. */
export type KnownSources = ReadonlyMap<string, Source>

/** The texts of all files by path, where they are not to be read from the disk. */
export type Texts = ReadonlyMap<string, string>

/** Earlier results that need not be computed again: of this process about paths, of any process about files of a kind. */
export type Earlier = { known?: KnownSources; cache?: FileCache; texts?: Texts | undefined; kind: FileKind }

/**
 * All YAML files of a folder, by name; one that cannot be used is a source with problems. A folder that does not exist is empty, and one
 * that cannot be read has the files that it had before.
 */
export async function readFolder(
  folder: string,
  earlier?: Earlier,
): Promise<{ sources: Source[]; problems: Problem[] }> {
  const { names, problem } = earlier?.texts ? namesAmong(earlier.texts, folder) : await namesIn(folder)
  if (problem) return { sources: knownIn(folder, earlier), problems: [problem] }
  const problems = names.filter((name) => name.endsWith('.yml')).map((name) => wrongEnding(join(folder, name)))
  const files = names.filter((name) => name.endsWith('.yaml')).map((name) => join(folder, name))
  const sources = await Promise.all(
    files.map(async (file) => (await readSourceFile(file, earlier)) ?? unusableSource(file, gone)),
  )
  return { sources, problems }
}

const gone = 'cannot be read: it was removed meanwhile, or it is a link to a file that does not exist'

/** Reads one file; undefined for a file that does not exist. Never rejects. */
export async function readSourceFile(file: string, earlier?: Earlier): Promise<Source | undefined> {
  try {
    const text = earlier?.texts?.get(file) ?? (await readText(file))
    const known = earlier?.known?.get(file)
    return known?.text === text ? known : readSource(file, text, keptValue(text, earlier))
  } catch (error) {
    return isGone(error) ? undefined : unusableSource(file, unreadable(file, error).message)
  }
}

/** Maximum size of a file: a larger one would block the event loop while it is parsed. */
const maxBytes = 1024 * 1024

/** Returns the text of a file. Rejects for what is no file, such as a device or a pipe, and for one that is too large. */
export async function readText(file: string): Promise<string> {
  const facts = await stat(file)
  if (facts.isDirectory()) throw new Error('it is a folder')
  if (!facts.isFile()) throw new Error('it is not a regular file')
  if (facts.size > maxBytes) throw new Error('it has more than 1 MB')
  return await readFile(file, 'utf8')
}

/**
 * Keeps a file in which nothing was found wrong, so that it is neither parsed nor checked a second time. `seen` is what its mappings see
 * of its dialects.
 */
export function keepSound(source: Source, { cache, kind }: Earlier, seen = ''): void {
  if (source.sound === seen) return
  source.sound = seen
  const { value, text } = source
  if (cache && isDeepStrictEqual(JSON.parse(JSON.stringify(value)), value)) cache.write([kind, text], { value, seen })
}

function keptValue(text: string, earlier: Earlier | undefined): KnownValue | undefined {
  return earlier?.cache?.read([earlier.kind, text]) as KnownValue | undefined
}

type Names = { names: string[]; problem?: Problem }

function namesAmong(texts: Texts, folder: string): Names {
  const paths = [...texts.keys()].filter((path) => dirname(path) === folder)
  return { names: paths.map((path) => basename(path)).sort() }
}

async function namesIn(folder: string): Promise<Names> {
  try {
    const names = await readdir(folder)
    return { names: names.filter((name) => !name.startsWith('.')).sort() }
  } catch (error) {
    return { names: [], ...(!isGone(error) && { problem: unreadable(folder, error) }) }
  }
}

function knownIn(folder: string, { known = new Map() }: Partial<Earlier> = {}): Source[] {
  return [...known.values()].filter(({ file }) => dirname(file) === folder && file.endsWith('.yaml'))
}

function wrongEnding(file: string): Problem {
  const message = 'this file is not read: its name must end in .yaml'
  return { file, line: 1, column: 1, message, severity: 'error' }
}

function unreadable(file: string, error: unknown): Problem {
  const message = `cannot be read: ${readingFailure(error)}`
  return { file, line: 1, column: 1, message, severity: 'error' }
}

function isGone(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}
