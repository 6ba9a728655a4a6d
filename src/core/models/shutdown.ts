import type { ModelEntry } from './model.ts'

/** Whether the provider serves the model no more at a moment (Unix milliseconds). */
export function isShutDown({ shutdown }: Pick<ModelEntry, 'shutdown'>, at: number): boolean {
  return shutdown !== undefined && Date.parse(shutdown) <= at
}

/** The next moment after this one (both Unix milliseconds) at which one of these models is shut down; Infinity when none is. */
export function nextShutdown(entries: readonly Pick<ModelEntry, 'shutdown'>[], at: number): number {
  const days = entries.flatMap(({ shutdown }) => (shutdown === undefined ? [] : [Date.parse(shutdown)]))
  return days.reduce((next, day) => (day > at && day < next ? day : next), Infinity)
}

/** What a caller of a model that is shut down is told: `id` is the model's, with its provider. */
export function shutdownMessage(
  id: string,
  { shutdown, successor }: Pick<ModelEntry, 'shutdown' | 'successor'>,
): string {
  const provider = id.slice(0, id.indexOf('/') + 1)
  const instead =
    successor === undefined ? 'GET /v1/models lists what there is' : `call '${provider}${successor}' instead`
  return `The model '${id}' was shut down by its provider on ${shutdown}: ${instead}.`
}
