import { type Operation, operations } from '../../core/operation.ts'
import type { Problem } from '../check/problem.ts'
import type { Job, OperationEndpoint, OperationEndpoints } from '../operation.ts'
import type { Layer } from './layer.ts'
import type { PartialOperation } from './operation-layer.ts'
import type { Source } from './source.ts'

/**
 * The endpoints for operations that are described for a provider; those that its own files name are `offered`, with a problem for
 * each that nothing describes enough.
 */
export function operationsOf(
  layers: readonly Layer[],
  source: Source,
): { endpoints: OperationEndpoints; problems: Problem[] } {
  const offered = new Set(layers.flatMap(({ offers }) => offers))
  const withheld = new Set(layers.flatMap(({ withholds }) => withholds))
  const endpoints: { [name in Operation]?: OperationEndpoint } = {}
  const problems: Problem[] = []
  for (const name of Object.keys(operations) as Operation[]) {
    if (withheld.has(name)) continue
    const parts = layers.flatMap((layer) => layer.operations[name] ?? [])
    const { endpoint, missing } = join(parts)
    const isOffered = offered.has(name)
    const mistake = endpoint ? mistakeIn(name, endpoint) : `needs \`${missing}\``
    if (endpoint) endpoints[name] = { ...endpoint, offered: isOffered }
    if (isOffered && mistake !== undefined)
      problems.push(source.problem(['endpoints', name], `\`endpoints.${name}\` ${mistake}`, 'name'))
  }
  return { endpoints, problems }
}

/** What cannot work in an endpoint, whatever the provider is like. */
function mistakeIn(name: Operation, { body, request, answer, reply, job }: Described): string | undefined {
  if (answer === 'bytes' && !reply && name !== 'speech')
    return 'needs `reply`: its answers are bytes, and clients get JSON'
  if (body === 'bytes' && !request && !withFiles.has(name))
    return 'needs `request`: its body is bytes, and clients send no file'
  if (job && !job.poll.includes('{id}')) return 'needs `{id}` in `job.poll`'
  if (job?.cancel?.includes('{id}') === false) return 'needs `{id}` in `job.cancel`'
  if (job?.hosts && job.poll !== '{id}')
    return 'has `job.hosts`, which matters only where `job.poll` is `"{id}"`: a whole URL'
  return undefined
}

/** The operations whose fields have a file. */
const withFiles: ReadonlySet<Operation> = new Set<Operation>(['transcribe', 'image_edit'])

/** Whether there is any endpoint. */
export function hasAny(endpoints: OperationEndpoints): boolean {
  return Object.keys(endpoints).length > 0
}

function join(parts: readonly PartialOperation[]): { endpoint?: Described; missing?: string } {
  const all: PartialOperation = Object.assign({}, ...parts)
  const { path, patch: _, losses: __, stream: ___, job: ____, ...rest } = all
  if (path === undefined) return { missing: 'path' }
  const stream = Object.assign({}, ...parts.map((part) => part.stream))
  const job: Partial<Job> = Object.assign({}, ...parts.map((part) => part.job))
  const lacked = (['id', 'poll', 'done'] as const).find((name) => job[name] === undefined)
  const hasJob = parts.some((part) => part.job)
  if (hasJob && lacked) return { missing: `job.${lacked}` }
  const endpoint: Described = {
    body: 'json',
    answer: 'json',
    ...rest,
    path,
    patch: Object.assign({}, ...parts.map(({ patch }) => patch)),
    losses: parts.flatMap(({ losses }) => losses),
    ...((rest.answer === 'events' || parts.some((part) => part.stream)) && {
      stream: { path, format: 'sse', ...stream },
    }),
    ...(hasJob && { job: { ...defaultPace, ...job } as Job }),
  }
  return { endpoint }
}

type Described = Omit<OperationEndpoint, 'offered'>

/** How often a job is asked for, and for how long, where its manifest does not say it. */
const defaultPace = { everyMs: 1_000, withinMs: 300_000 }
