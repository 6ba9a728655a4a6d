import { timeText } from './key-entry.ts'
import { json, type ManagementContext, type ManageRoute } from './manage.ts'

/** `/v1/manage/health`: what takes no calls, or not all: addresses, credentials and targets of providers. */
export function providerHealthRoutes({ troubled }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/health',
      handle: () =>
        json({
          troubled: troubled().map(({ until, reason, ...known }) => ({
            ...known,
            until: until === undefined ? null : timeText(until),
            reason: reason ?? null,
          })),
        }),
    },
  ]
}
