import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parse } from 'yaml'
import type { Json } from '../../src/core/json.ts'
import type { ListedModel } from './listed.ts'
import { readGenaiPrices } from './readers/genai-prices.ts'
import { readLitellm } from './readers/litellm.ts'
import { readModelPrices, readModelsDev, readPiAi } from './readers/models-dev.ts'
import { readLlmGateway, readLlmPrices, readPortkey } from './readers/others.ts'

/** A package that has a list. */
export type ListPackage = { npm?: string; pypi?: string; version: string }

/** A public list as lists.yaml describes it. */
export type ListSource = {
  name: string
  origin: string
  as_of: string
  package?: ListPackage
  format: string
  path: string
  /** The member of `listed_as` in catalog files whose names it uses. */
  listed_as?: 'litellm' | 'models_dev'
  /** True if it drops models when they are retired. */
  prunes?: boolean
  /** True if it keeps retired models: what it alone lists is not new. */
  history?: boolean
  names?: { readonly [provider: string]: string | readonly string[] }
}

/** A list with its models. */
export type List = ListSource & { models: ListedModel[] }

/** Reads lists.yaml. */
export function listSources(): ListSource[] {
  const { lists } = parse(readFileSync(join(import.meta.dirname, 'lists.yaml'), 'utf8')) as {
    lists: { [name: string]: Omit<ListSource, 'name'> }
  }
  return Object.entries(lists).map(([name, source]) => ({ ...source, name }))
}

/** The folder of a list inside the cache. */
export function folderOfList(cache: string, { name, package: { version } = { version: 'files' } }: ListSource): string {
  return join(cache, `${name}-${version}`)
}

/**
 * Reads a list from its folder (or from one file of its format), with the prices in force on a day; undefined where it is not there.
 */
export async function readList(source: ListSource, folder: string, day: string): Promise<List | undefined> {
  const inside = join(folder, source.path)
  const path = existsSync(inside) ? inside : folder
  if (!existsSync(path)) return undefined
  const read = readers[source.format]
  if (!read) throw new Error(`The list ${source.name} has the format '${source.format}', which nothing reads.`)
  return { ...source, models: await read(path, day) }
}

type Reader = (path: string, day: string) => ListedModel[] | Promise<ListedModel[]>

const readers: { readonly [format: string]: Reader } = {
  litellm: (path) => readLitellm(jsonAt(path)),
  'models-dev': (path) => readModelsDev(jsonAt(path)),
  'model-prices': (path, day) => readModelPrices(jsonAt(path), day),
  'genai-prices': (path, day) => readGenaiPrices(readFileSync(path, 'utf8'), day),
  'pi-ai': (path) => jsonFiles(path).flatMap(({ json }) => readPiAi(json)),
  portkey: (path) => jsonFiles(path).flatMap(({ name, json }) => readPortkey(json, name)),
  'llm-prices': (path) => jsonFiles(path).flatMap(({ json }) => readLlmPrices(json)),
  llmgateway: async (path) => {
    const { models } = (await import(pathToFileURL(path).href)) as { models: unknown }
    // Dates become texts.
    return readLlmGateway(JSON.parse(JSON.stringify(models)) as Json)
  },
}

function jsonAt(path: string): Json {
  return JSON.parse(readFileSync(path, 'utf8')) as Json
}

function jsonFiles(folder: string): { name: string; json: Json }[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return names.map((name) => ({ name: name.slice(0, -'.json'.length), json: jsonAt(join(folder, name)) }))
}
