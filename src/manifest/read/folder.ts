import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Problem, readingFailure } from '../check/problem.ts'
import type { FileKind } from '../check/schema.ts'
import type { FileCache } from './file-cache.ts'
import { type KnownValue, readSource, type Source } from './source.ts'

/** Previously parsed files by path; a file with the same text is not parsed a second time. */
export type KnownSources = ReadonlyMap<string, Source>

/** The texts of all files by path, where they are not to be read from the disk. */
export type Texts = ReadonlyMap<string, string>

/** Earlier results that need not be computed again: of this process about paths, of any process about files of a kind. */
export type Earlier = { known?: KnownSources; cache?: FileCache; texts?: Texts | undefined; kind: FileKind }

/** All YAML files of a folder, by name. A folder that does not exist is empty. */
export async function readFolder(
  folder: string,
  earlier?: Earlier,
): Promise<{ sources: Source[]; problems: Problem[] }> {
  const { names, problems } = earlier?.texts ? namesAmong(earlier.texts, folder) : await namesIn(folder)
  problems.push(...names.filter((name) => name.endsWith('.yml')).map((name) => wrongEnding(join(folder, name))))
  const files = names.filter((name) => name.endsWith('.yaml')).map((name) => join(folder, name))
  const read = await Promise.all(files.map((file) => readSourceFile(file, earlier)))
  return {
    sources: read.flatMap((one) => one.source ?? []),
    problems: [...problems, ...read.flatMap((one) => one.problems)],
  }
}

/** Reads one file; a file that was deleted since its folder was listed yields neither a source nor a problem. */
export async function readSourceFile(
  file: string,
  earlier?: Earlier,
): Promise<{ source?: Source; problems: Problem[] }> {
  try {
    const text = earlier?.texts?.get(file) ?? (await readFile(file, 'utf8'))
    const known = earlier?.known?.get(file)
    return { source: known?.text === text ? known : readSource(file, text, keptValue(text, earlier)), problems: [] }
  } catch (error) {
    return { problems: isGone(error) ? [] : [unreadable(file, error)] }
  }
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

function namesAmong(texts: Texts, folder: string): { names: string[]; problems: Problem[] } {
  const paths = [...texts.keys()].filter((path) => dirname(path) === folder)
  return { names: paths.map((path) => basename(path)).sort(), problems: [] }
}

async function namesIn(folder: string): Promise<{ names: string[]; problems: Problem[] }> {
  try {
    const names = await readdir(folder)
    return { names: names.filter((name) => !name.startsWith('.')).sort(), problems: [] }
  } catch (error) {
    return { names: [], problems: isGone(error) ? [] : [unreadable(folder, error)] }
  }
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
