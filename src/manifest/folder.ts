import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Problem, readingFailure } from './problem.ts'
import { readSource, type Source } from './source.ts'

/** Previously parsed files by path; a file with the same text is not parsed a second time. */
export type KnownSources = ReadonlyMap<string, Source>

/** All YAML files of a folder, by name. A folder that does not exist is empty. */
export async function readFolder(
  folder: string,
  known: KnownSources = new Map(),
): Promise<{ sources: Source[]; problems: Problem[] }> {
  const { names, problems } = await namesIn(folder)
  problems.push(...names.filter((name) => name.endsWith('.yml')).map((name) => wrongEnding(join(folder, name))))
  const files = names.filter((name) => name.endsWith('.yaml')).map((name) => join(folder, name))
  const read = await Promise.all(files.map((file) => readSourceFile(file, known.get(file))))
  return {
    sources: read.flatMap((one) => one.source ?? []),
    problems: [...problems, ...read.flatMap((one) => one.problems)],
  }
}

/** One file; a file that was deleted since its folder was listed yields neither a source nor a problem. */
export async function readSourceFile(file: string, known?: Source): Promise<{ source?: Source; problems: Problem[] }> {
  try {
    const text = await readFile(file, 'utf8')
    return { source: known?.text === text ? known : readSource(file, text), problems: [] }
  } catch (error) {
    return { problems: isGone(error) ? [] : [unreadable(file, error)] }
  }
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
