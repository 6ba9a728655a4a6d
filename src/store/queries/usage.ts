import type { Connection } from '../connection.ts'
import { type Queries, queries } from './query-thread.ts'
import { type UsageQuery, type UsageRow, usageReporter } from './usage-query.ts'

/** Usage reports. */
export type Usage = Queries<UsageQuery, UsageRow>

/** Usage reports of a database. */
export function usage(db: Connection): Usage {
  return queries(db, 'usage', (own) => usageReporter(own))
}
