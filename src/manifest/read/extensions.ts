import type { OwnFunctions } from '../../mapping/own-functions.ts'

/** What manifests can use that is not the router's: of plugins. */
export type Extensions = {
  functions: OwnFunctions | undefined
  /** Authentication schemes by name. */
  schemes: Readonly<Record<string, SchemeHeaders>>
}

/** The headers that authenticate a request, of the values that a manifest has under `auth`. */
export type SchemeHeaders = (
  request: { method: string; url: string; headers: Readonly<Record<string, string>>; body: string | undefined },
  values: Readonly<Record<string, string>>,
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>

/** Whether there is nothing besides the router's own. */
export function isBare({ functions, schemes }: Extensions): boolean {
  return functions === undefined && Object.keys(schemes).length === 0
}

export const noExtensions: Extensions = { functions: undefined, schemes: {} }
