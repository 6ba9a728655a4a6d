import type { ProviderEvent } from './events.ts'

/** About how many characters an event adds to a reply; each value beside its texts counts as some. */
export function sizeOfEvent(event: ProviderEvent): number {
  let size = event.text?.length ?? 0
  // Nearly every event of a stream has a text alone.
  for (const name in event) if (grows.has(name)) size += sizeOf(event[name as keyof ProviderEvent])
  return size
}

/** What a part takes beside its content. */
export const sizeOfPart = 200

const content = ['refusal', 'reasoning', 'tool', 'citation', 'search', 'media', 'opaque', 'whole', 'logprobs'] as const
const grows: ReadonlySet<string> = new Set<keyof ProviderEvent>([...content, 'extensions'])

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return sizeOfOne
  let size = sizeOfOne
  for (const member of Object.values(value)) size += sizeOf(member)
  return size
}

const sizeOfOne = 16
