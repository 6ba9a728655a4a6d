import { durationMs } from '../../core/time.ts'
import type { Job } from '../operation.ts'
import type { MappingReader } from './mapping-reader.ts'
import type { Path } from './position.ts'
import type { JobFile } from './types.ts'

/** Reads the part of a job that one file describes. */
export function readJob(reader: MappingReader, at: Path, file: JobFile): Partial<Job> {
  const { poll, hosts, cancel, every, within } = file
  const [id, done, failed] = (['id', 'done', 'failed'] as const).map((name) => reader.read([...at, name], file[name]))
  const everyMs = every === undefined ? undefined : durationMs(every)
  const withinMs = within === undefined ? undefined : durationMs(within)
  return {
    ...(id && { id }),
    ...(done && { done }),
    ...(failed && { failed }),
    ...(poll !== undefined && { poll }),
    ...(hosts && { hosts }),
    ...(cancel !== undefined && { cancel }),
    ...(everyMs !== undefined && { everyMs }),
    ...(withinMs !== undefined && { withinMs }),
  }
}

/** Joins what files describe of a job, in their order; `missing` names a member that it needs. */
export function joinJob(parts: readonly (Partial<Job> | undefined)[]): { job?: Job; missing?: string } {
  if (!parts.some(Boolean)) return {}
  const job: Partial<Job> = Object.assign({}, ...parts)
  const lacked = (['id', 'poll', 'done'] as const).find((name) => job[name] === undefined)
  return lacked ? { missing: `job.${lacked}` } : { job: { ...defaultPace, ...job } as Job }
}

/** Polling of a job, its interval and its total time, where its manifest does not state them. */
const defaultPace = { everyMs: 1_000, withinMs: 300_000 }

/** Returns what cannot work in a job; undefined where it can. */
export function jobMistake({ poll, cancel, hosts }: Job): string | undefined {
  if (!poll.includes('{id}')) return 'needs `{id}` in `job.poll`'
  if (cancel?.includes('{id}') === false) return 'needs `{id}` in `job.cancel`'
  if (hosts && poll !== '{id}') return 'has `job.hosts`, which matters only where `job.poll` is `"{id}"`: a whole URL'
  return undefined
}
