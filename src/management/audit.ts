import type { AuditEntry } from '../store/audit.ts'
import { timeText } from './key-entry.ts'
import type { ManagementContext, ManageRoute } from './manage.ts'
import { pageOf } from './page.ts'

/** Serves `/v1/manage/audit`: the audit log of the organization, newest first. */
export function auditRoutes({ store }: ManagementContext): ManageRoute[] {
  const entry = ({ id, at, actor, action, subject, before, after }: AuditEntry) => {
    return { id, at: timeText(at), actor, action, subject, before, after }
  }
  return [
    {
      path: '/v1/manage/audit',
      handle: (request) =>
        pageOf(request, {
          name: 'entries',
          read: store.audit.page,
          isCursor: store.audit.has,
          idOf: ({ id }) => id,
          entry,
        }),
    },
  ]
}
