import type { Problem } from '../manifest/check/problem.ts'
import type { LoadedPlugin } from '../plugin/loaded.ts'

/** Names that files of a snapshot would give a meaning, had they no errors: calls to them are refused with the place of the error. */
export type Unavailable = {
  /** The error because of which a provider is not in use, by slug; also of those that are switched off. */
  providers: ReadonlyMap<string, Problem>
  /** The error because of which a plugin is not in use, and what that means for calls, by name. */
  plugins: ReadonlyMap<string, { problem: Problem; onError: LoadedPlugin['onError'] }>
}

export const nothingUnavailable: Unavailable = { providers: new Map(), plugins: new Map() }

/** Checks whether the same names are unavailable, for the same reasons. */
export function areSameUnavailable(one: Unavailable, other: Unavailable): boolean {
  return textOf(one) === textOf(other)
}

function textOf({ providers, plugins }: Unavailable): string {
  return JSON.stringify([[...providers].sort(bySlug), [...plugins].sort(bySlug)])
}

function bySlug([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1
}
