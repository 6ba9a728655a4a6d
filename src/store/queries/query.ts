/** The answer would be too large, or takes too long. */
export class QueryTooLarge extends Error {}

/**
 * Function that answers queries on a connection. Throws QueryTooLarge and the engine's errors. `readAhead` prepares later answers while there is
 * no query, a little at a time, and returns whether there is more to do.
 */
export type Reader<Query, Row> = ((query: Query) => Row[]) & { readAhead?: () => boolean }

/** Kind of queries that a worker answers, and the path of its database. */
export type QueryWorker = { path: string; kind: 'usage' | 'calls' | 'all-calls' | 'latency' | 'targets' }

/** A reply of the thread: rows, and whether there are more of the same query. */
export type QueryAnswer<Row> =
  | { rows: Row[]; more: boolean }
  | { tooLarge: string }
  | { failure: string; reason: string | undefined }

/** A message to the thread: a query, or a request for more rows of the previous one. */
export type QueryMessage = { query: unknown } | 'more'
