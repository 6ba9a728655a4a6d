import type { Part, SearchPart } from './parts.ts'

type Search = Omit<SearchPart, 'type' | 'by'>

/** Whether a part is a search that has begun and is not over: other parts may begin before it ends. */
export function isRunning(part: Part): boolean {
  return part.type === 'search' && (part.status === 'in_progress' || part.status === 'searching')
}

/** Whether it is known how a search ended, and what it was for. */
export function isOver({ status, query, results }: Search): boolean {
  return (status === 'completed' || status === 'failed') && (query !== undefined || results !== undefined)
}

/** Whether a part does not end the one before: a search that is told only when it is over, in the middle of a text. */
export function isAside(part: Part, before: Part | undefined): boolean {
  return before?.type === 'text' && part.type === 'search' && isOver(part)
}

/** Takes what a provider tells about a search; one that is over does not begin again. */
export function updateSearch(part: SearchPart, { status, ...others }: Search): void {
  Object.assign(part, others)
  const begins = status === 'in_progress' || status === 'searching'
  if (status !== undefined && (part.status === undefined || !begins || isRunning(part))) part.status = status
}
