import { type TraceContext, traceHeaders } from '../../core/trace.ts'
import type { HttpClient } from '../../upstream/http-client.ts'

/** The client for each attempt of a call, in their order: it tells the provider where the attempt is in the trace. */
export function attemptClients(httpClient: HttpClient, trace: TraceContext | undefined): () => HttpClient {
  if (!trace) return () => httpClient
  const base = httpClient.base ?? httpClient
  let attempt = 0
  return () => {
    const own = traceHeaders(trace, ++attempt)
    return {
      ...httpClient,
      base,
      send: (request) => httpClient.send({ ...request, headers: { ...request.headers, ...own } }),
    }
  }
}
