import type { AuditEntry } from '../store/audit.ts'
import { timeText } from './key-entry.ts'
import { json, type ManagementRooms, type ManageRoute } from './manage.ts'
import { pageOf } from './page.ts'

/** `/v1/manage/audit`: every change in the organization, the newest first. */
export function auditRoutes({ store }: ManagementRooms): ManageRoute[] {
  const entry = ({ id, at, actor, action, subject, before, after }: AuditEntry) => {
    return { id, at: timeText(at), actor, action, subject, before, after }
  }
  return [
    {
      path: '/v1/manage/audit',
      answer: (asked) =>
        json(
          pageOf(asked, {
            name: 'entries',
            read: store.audit.page,
            isCursor: store.audit.has,
            idOf: ({ id }) => id,
            entry,
          }),
        ),
    },
  ]
}
