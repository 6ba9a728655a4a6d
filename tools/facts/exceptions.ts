import { readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { parse } from 'yaml'
import type { Disagreement, NewModel } from './compare.ts'
import type { FactName } from './listed.ts'

/** A difference from the lists that we keep, with the reason, the page on which it rests, and the day on which that was read. */
export type Exception = {
  /** Patterns of `provider/model`. */
  models: readonly string[]
  /** The facts that it is about; without it, that the catalog does not list the models. */
  facts?: readonly FactName[]
  because: string
  page?: string
  on: string
}

/** Reads exceptions.yaml. */
export function readExceptions(): Exception[] {
  return parse(readFileSync(join(import.meta.dirname, 'exceptions.yaml'), 'utf8')) as Exception[]
}

/** Finds the exception for a fact of a model, or for a model that is not listed. */
export function exceptionFor(
  exceptions: readonly Exception[],
  { provider, model, fact }: Pick<Disagreement | NewModel, 'provider' | 'model'> & { fact?: FactName },
): Exception | undefined {
  const id = `${provider}/${model}`
  return exceptions.find(
    ({ models, facts }) =>
      (fact === undefined ? facts === undefined : facts?.includes(fact)) &&
      models.some((pattern) => pattern === id || matchesGlob(id, pattern)),
  )
}
