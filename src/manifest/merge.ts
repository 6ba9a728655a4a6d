import type { Mapping } from '../mapping/mapping.ts'
import type { Layer } from './layer.ts'
import type { Problem } from './problem.ts'
import type { ChatEndpoint, Provider, Timeouts } from './provider.ts'
import type { Source } from './source.ts'

/** The limits of an attempt where a manifest says nothing. */
export const defaultTimeouts: Timeouts = {
  connectMs: 5_000,
  firstEventMs: 60_000,
  betweenEventsMs: 60_000,
  totalMs: 600_000,
}

/** What layers have in common, the later ones over the earlier ones: tables join by name, lists add up. */
export function stack(layers: readonly Layer[]): Pick<Provider, 'errors' | 'traits'> & { headers: Layer['headers'] } {
  return {
    headers: Object.assign({}, ...layers.map(({ headers }) => headers)),
    // Codes come from providers: a name that every object has must not be found in the table.
    errors: Object.assign(Object.create(null), ...layers.map(({ errors }) => errors)),
    traits: layers.flatMap(({ traits }) => traits),
  }
}

/** One endpoint made of all layers; missing, with the reasons, when something has been said by none of them. */
export function chatOf(layers: readonly Layer[], source: Source): { chat?: ChatEndpoint; problems: Problem[] } {
  const parts = layers.flatMap(({ chat }) => (chat ? [chat] : []))
  const last = <Name extends 'path' | 'request' | 'reply'>(name: Name) => parts.findLast((part) => part[name])?.[name]
  const path = last('path')
  const request = last('request')
  const reply = last('reply')
  const events = new Map(parts.flatMap((part) => [...part.events]))
  const absent = Object.entries({ path, request, reply, events: events.size > 0 || undefined })
    .filter(([, said]) => said === undefined)
    .map(([name]) => name)
  if (path === undefined || !request || !reply || absent.length > 0) {
    return { problems: absent.map((name) => missing(source, name, layers.length > 1)) }
  }
  const chat: ChatEndpoint = {
    path,
    stream: { path, format: 'sse', ...Object.assign({}, ...parts.map(({ stream }) => stream)) },
    request,
    reply,
    events,
    patch: Object.assign({}, ...parts.map(({ patch }) => patch)),
    losses: parts.flatMap((part) =>
      part.losses.map((loss) => (knows(part, request) ? loss : { ...loss, unmapped: true })),
    ),
    history: Object.assign({}, ...parts.map(({ history }) => history)),
  }
  return { chat, problems: [] }
}

/** A mapping deals with the losses of its own file; of those that another file adds it knows nothing. */
function knows({ request }: { request?: Mapping }, mapping: Mapping): boolean {
  return request === mapping
}

function missing(source: Source, name: string, hasDialect: boolean): Problem {
  const advice = hasDialect ? 'its dialect does not say it either' : 'or the manifest a `dialect` that says it'
  return source.problem(['endpoints', 'chat'], `\`endpoints.chat\` needs \`${name}\`, ${advice}`, 'name')
}
